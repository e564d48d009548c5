package model

import "time"

// PlanItem is one thing that the controller would do to a host, with the reason
// and, where it is not done yet, with what it waits for.
type PlanItem struct {
	Host    HostName
	Proxy   ProxyName // empty for domains that no proxy declares
	Domain  string
	Verb    PlanVerb
	Why     string
	Wait    string    // why it is not done yet; empty: it is due, or under way
	Since   time.Time // when it was begun; zero before
	Step    Progress  // of what is under way
	Dry     bool      // nothing will be done: this virdeck only plans
	Counted bool      // it counts against the replacement budget
}

// PlanVerb is what is to be done.
type PlanVerb string

// The verbs of a plan.
const (
	PlanCreate  PlanVerb = "create"
	PlanStart   PlanVerb = "start"
	PlanStop    PlanVerb = "stop"
	PlanRestart PlanVerb = "restart"
	PlanReplace PlanVerb = "replace"
	PlanDelete  PlanVerb = "delete"
	PlanDrain   PlanVerb = "drain"
	PlanOrphan  PlanVerb = "remove orphan"
	PlanNothing PlanVerb = "wait" // something is wanted, and cannot be said to be one of the others
)

// ManagedView is what belongs to a managed proxy alone.
type ManagedView struct {
	UID       string
	Adopted   bool // promoted: virdeck did not make its VM, and cannot make it again
	Domain    string
	Template  string
	SpecHash  string // wanted
	BuiltHash string // of the VM that is there, by its mark; empty if unknown
	Owner     Owner
	Wish      string // run, stop, gone
	Built     bool   // complete once
	Write     string // what is under way; empty if nothing is
	WriteFrom time.Time
	Step      Progress
	LastError string // of the last write, in the host's words
	Latched   bool   // it is not tried again before the spec changes or an operator asks
	Fails     int    // writes that failed in a row
	RetryAt   time.Time
	Plan      string // what is wanted and why, or why not now; empty if nothing is
	CreatedAt time.Time
}

// PoolView is one pool as screens show it.
type PoolView struct {
	Name      string
	Template  string
	Count     int // declared
	Members   int // present, those on their way out included
	In        int // in rotation
	Wait      []string
	Budget    BudgetView
	Placement map[HostName]int
}

// BudgetView is a replacement budget: of a host or a pool.
type BudgetView struct {
	Used   int
	Of     int
	Window time.Duration
	Next   time.Time // when the next one comes free; zero if one is
}

// OrphanView is a domain with our mark that no proxy owns.
type OrphanView struct {
	Domain string
	Owner  Owner
	First  time.Time // when it was found so
	Wait   string    // why it is still there
}
