package model

import "time"

// MarkPhase is how far the making of a managed VM has come.
type MarkPhase string

// The phases of an Owner mark.
const (
	PhaseNew      MarkPhase = "new"      // defined; its volumes may be missing or half full
	PhaseReady    MarkPhase = "ready"    // volumes are complete; it may be started
	PhaseDeleting MarkPhase = "deleting" // being removed; never started again
)

// Owner is what the metadata of a domain says about whose it is. Only a domain
// whose Owner names this fleet and this controller is ever changed or deleted.
type Owner struct {
	Fleet      string
	Proxy      ProxyName
	UID        string // of the proxy; another VM for the same name has another one
	Controller string // id of the controller that made it
	SpecHash   string // of the BuildSpec it was made from
	Pool       string
	Phase      MarkPhase
	CreatedAt  time.Time // of the proxy's record, whole seconds, UTC
}

// Zero reports whether there is no mark.
func (o Owner) Zero() bool { return o == Owner{} }

// Progress is how far a long step has come.
type Progress struct {
	Step  string // "upload base image", "define domain", ...
	Done  int64  // bytes
	Total int64  // bytes; 0 where a step is not counted
}
