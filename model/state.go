package model

// State is the one word that an operator sees for a proxy. It is derived by
// Derive from everything else and never stored on its own.
type State int

// The states, in the order in which Derive tries them: the first match wins.
const (
	StateDeleting State = iota + 1
	StateDrained
	StateFailed
	StateDemoted
	StateTransient
	StateProvisioning
	StatePending
	StateUnproven
	StateReady
)

// States returns all states in the order of their precedence.
func States() []State {
	return []State{StateDeleting, StateDrained, StateFailed, StateDemoted, StateTransient,
		StateProvisioning, StatePending, StateUnproven, StateReady}
}

// String returns the word shown on screens and in JSON.
func (s State) String() string {
	switch s {
	case StateDeleting:
		return "deleting"
	case StateDrained:
		return "drained"
	case StateFailed:
		return "failed"
	case StateDemoted:
		return "demoted"
	case StateTransient:
		return "transient"
	case StateProvisioning:
		return "provisioning"
	case StatePending:
		return "pending"
	case StateUnproven:
		return "unproven"
	case StateReady:
		return "ready"
	}
	return unknown("state", int(s))
}

// Sign returns the one-cell sign that stands beside the word, so that a state
// never depends on colour.
func (s State) Sign() string {
	switch s {
	case StateDeleting:
		return "-"
	case StateDrained:
		return "◌"
	case StateFailed:
		return "×"
	case StateDemoted:
		return "▼"
	case StateTransient:
		return "~"
	case StateProvisioning:
		return "+"
	case StatePending:
		return "·"
	case StateUnproven:
		return "?"
	case StateReady:
		return "●"
	}
	return " "
}

// Mark is a one-letter remark beside a state.
type Mark byte

// The marks.
const (
	MarkStale       Mark = '~' // reads fail, while the state is another's
	MarkHeld        Mark = 'h' // the address is held: the sources have gone quiet
	MarkUnverified  Mark = 'u' // known from before a restart, not yet probed since
	MarkWriteFailed Mark = '!' // the last write failed, although the proxy serves
	MarkConflict    Mark = '=' // another proxy claims the same address
)

// Word names the mark for JSON and for screen readers.
func (m Mark) Word() string {
	switch m {
	case MarkStale:
		return "stale"
	case MarkHeld:
		return "held"
	case MarkUnverified:
		return "unverified"
	case MarkWriteFailed:
		return "write-failed"
	case MarkConflict:
		return "conflict"
	}
	return unknown("mark", int(m))
}

// Facts is everything that Derive looks at.
type Facts struct {
	Deleting      bool // being removed
	Drained       bool // the operator's wish
	WriteFailed   bool // Reconciled is false, latched
	HasAddress    bool // EffectiveHost is not empty
	Serving       bool // probes pass through the address
	Demoted       bool // out of rotation on evidence
	InRotation    bool // the present membership
	Proven        bool // has passed rise probes in this incarnation at this address
	ReadFailed    bool // the last read failed and says nothing
	NotAskedOnly  bool // the last read failed because no source could be asked
	Running       bool // last known: the domain runs
	Provisioning  bool // last good read: runs, and has no address
	EverSeen      bool // any good read yet
	Held          bool
	Unverified    bool
	Conflict      bool
	DomainMissing bool
}

// Derive returns the state and the marks that the facts amount to. It is pure.
func Derive(f Facts) (State, []Mark) {
	s := deriveState(f)
	var marks []Mark
	if f.ReadFailed {
		switch s {
		case StateDrained, StateDemoted, StateFailed:
			marks = append(marks, MarkStale)
		case StateProvisioning:
			if f.NotAskedOnly {
				marks = append(marks, MarkStale)
			}
		case StateDeleting, StateTransient, StatePending, StateUnproven, StateReady:
		}
	}
	if f.Held && f.HasAddress {
		marks = append(marks, MarkHeld)
	}
	if f.Unverified {
		marks = append(marks, MarkUnverified)
	}
	if f.WriteFailed && s != StateFailed {
		marks = append(marks, MarkWriteFailed)
	}
	if f.Conflict {
		marks = append(marks, MarkConflict)
	}
	return s, marks
}

func deriveState(f Facts) State {
	switch {
	case f.Deleting:
		return StateDeleting
	case f.Drained:
		return StateDrained
	case f.WriteFailed && !f.Serving:
		return StateFailed
	case f.Demoted:
		return StateDemoted
	// A guest that was last seen booting and of which nobody could be asked
	// since is still booting as far as anyone knows: the mark says how old
	// that knowledge is.
	case f.ReadFailed && f.NotAskedOnly && f.Provisioning && !f.HasAddress:
		return StateProvisioning
	case f.ReadFailed:
		return StateTransient
	case f.HasAddress && f.Proven && f.InRotation:
		return StateReady
	case f.HasAddress:
		return StateUnproven
	case f.Provisioning:
		return StateProvisioning
	default:
		return StatePending
	}
}
