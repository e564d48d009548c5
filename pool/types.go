package pool

import (
	"time"

	"virdeck/model"
)

// Spec is a pool as it is declared.
type Spec struct {
	model.PoolSpec
	Hash string // BuildSpec.Hash of what members are to be made of
}

// Member is a member that is there: it has a record, whether its VM is made
// already or not. A member is there until nothing of it is left.
type Member struct {
	Ordinal int
	Host    model.HostName
	// Hash is of the spec that its VM was made from; empty while there is none,
	// since it will be made from the wanted one.
	Hash    string
	Created time.Time // for MaxAge

	InRotation bool // gets traffic
	Passing    bool // its probes pass: it would be in rotation if nobody drained it
	Proven     bool // has been in rotation since it was created
	Failed     bool // making it failed for good, latched: no VM serves
	Held       bool // drained, stopped or deleted by an operator, who alone takes it back

	// Draining is since when it is drained on a decision of Plan; zero: it is not.
	Draining time.Time
	// Tunnels is the number of open ones; negative where it is not known, as when
	// clients have the address from a list.
	Tunnels int
	// Deleting says that its removal has begun, which cannot be taken back.
	Deleting bool
}

// serving reports whether it counts as available.
func (m *Member) serving() bool {
	return m.InRotation && m.Draining.IsZero() && !m.Deleting && !m.Failed && !m.Held
}

// Host is a configured host, of this pool or of another.
type Host struct {
	Name model.HostName
	// DownSince is since when it has not answered; zero: it answers.
	DownSince time.Time
	// Others is the number of managed VMs on it beside this pool's; of two hosts
	// with equally many members, the one with fewer gets the next.
	Others int
}

// Cause is why an Action is proposed.
type Cause int

// The causes.
const (
	CauseScale    Cause = iota // the declared count, or what an earlier replacement left to be made
	CauseTemplate              // another template, or a change of it
	CauseHosts                 // its host is none of the pool's any more
	CauseAge                   // older than MaxAge
	CauseFailover              // stands in for one whose host does not answer
)

// Declared reports whether the cause is a change of the configuration. That is
// an operator's own command, which the budget counts and does not limit.
func (c Cause) Declared() bool {
	switch c {
	case CauseScale, CauseTemplate, CauseHosts:
		return true
	case CauseAge, CauseFailover:
		return false
	}
	return false
}

// String returns the word used in logs.
func (c Cause) String() string {
	switch c {
	case CauseScale:
		return "scale"
	case CauseTemplate:
		return "template"
	case CauseHosts:
		return "hosts"
	case CauseAge:
		return "age"
	case CauseFailover:
		return "failover"
	}
	return "unknown"
}

// Action is one thing to do with one member.
type Action struct {
	Ordinal int
	Name    model.ProxyName
	Host    model.HostName // where it is; of an Add, where it is to be
	Cause   Cause
	Why     string
}

// Wait is something that is wanted and has to wait.
type Wait struct {
	Name model.ProxyName // whom it is about; empty: the pool
	Why  string          // begins with what it waits for
}

// Decision is what to do with a pool now. Each action is complete in itself:
// what is not carried out is proposed again.
type Decision struct {
	Add     []Action // make a record on the host; its VM follows from that
	Drain   []Action // take it out of the rotation, and note the time
	Undrain []Action // withdraw that
	Delete  []Action // remove it: drained, or nothing of it serves
	Waits   []Wait   // in the order of ordinals
	// Again is when time alone may change the decision; zero: never.
	Again time.Time
}

// Empty reports whether there is nothing to do.
func (d Decision) Empty() bool {
	return len(d.Add)+len(d.Drain)+len(d.Undrain)+len(d.Delete) == 0
}
