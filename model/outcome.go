package model

import (
	"fmt"
	"net/netip"
	"time"
)

func unknown(what string, v int) string { return fmt.Sprintf("unknown-%s-%d", what, v) }

// Source is one place that can say which address a VM has.
type Source int

// The sources, in the order in which they are shown.
const (
	SourceLease Source = iota // DHCP lease of a libvirt network
	SourceAgent               // QEMU guest agent
	SourceARP                 // the host's neighbour table
)

// Sources returns all sources in display order.
func Sources() []Source { return []Source{SourceLease, SourceAgent, SourceARP} }

// String returns "lease", "agent" or "arp".
func (s Source) String() string {
	switch s {
	case SourceLease:
		return "lease"
	case SourceAgent:
		return "agent"
	case SourceARP:
		return "arp"
	}
	return unknown("source", int(s))
}

// ParseSource is the inverse of Source.String.
func ParseSource(s string) (Source, bool) {
	for _, src := range Sources() {
		if src.String() == s {
			return src, true
		}
	}
	return 0, false
}

// OutcomeKind is what became of asking one source.
type OutcomeKind int

const (
	// OutcomeNone means: the source has not been asked since this proxy is known.
	OutcomeNone OutcomeKind = iota
	// OutcomeAddresses means: the source named at least one usable address.
	OutcomeAddresses
	// OutcomeEmpty means: the source answered, and named no usable address.
	OutcomeEmpty
	// OutcomeFailed means: the source was asked and gave an error.
	OutcomeFailed
	// OutcomeNotAsked means: the source was not asked for a reason of ours (no free
	// slot, another operation on the domain, the caller's own deadline). It says
	// nothing about the guest.
	OutcomeNotAsked
	// OutcomeNotApplicable means: the source cannot know this guest (no agent channel,
	// no libvirt network with DHCP, or turned off by configuration).
	OutcomeNotApplicable
)

// String returns the word used in the JSON schema.
func (k OutcomeKind) String() string {
	switch k {
	case OutcomeNone:
		return "none"
	case OutcomeAddresses:
		return "addresses"
	case OutcomeEmpty:
		return "empty"
	case OutcomeFailed:
		return "failed"
	case OutcomeNotAsked:
		return "not_asked"
	case OutcomeNotApplicable:
		return "not_applicable"
	}
	return unknown("outcome", int(k))
}

// Outcome is what one source last said. A failure is data to show, not only an
// error to handle.
type Outcome struct {
	Source    Source
	Kind      OutcomeKind
	Addresses []netip.Addr  // usable addresses only; set for OutcomeAddresses
	Ignored   []Ignored     // addresses that do not count, with the reason
	Code      int           // libvirt error code, 0 if none
	Message   string        // verbatim; may hold hostile bytes, strip before drawing
	At        time.Time     // when the answer came
	Took      time.Duration // how long the source took to answer
}

// Ignored is an address that a source named and that does not count.
type Ignored struct {
	Address netip.Addr
	Why     string // "loopback", "link-local", "not a NIC of this domain", ...
}

// DomainState is libvirt's state of a domain.
type DomainState int

// The values are ours, not libvirt's; the provider maps them.
const (
	DomainUnknown DomainState = iota
	DomainRunning
	DomainPaused
	DomainShutoff
	DomainCrashed
	DomainMissing // looked for through a live link, and not there
)

// String returns the word that the screens use.
func (s DomainState) String() string {
	switch s {
	case DomainUnknown:
		return "unknown"
	case DomainRunning:
		return "running"
	case DomainPaused:
		return "paused"
	case DomainShutoff:
		return "shut off"
	case DomainCrashed:
		return "crashed"
	case DomainMissing:
		return "missing"
	}
	return unknown("domain-state", int(s))
}

// InstanceState is the provider's one-word judgement of a VM.
type InstanceState int

const (
	// InstanceUnknown means: nothing was learned. The zero value, so that a forgotten
	// assignment can never read as a fact.
	InstanceUnknown InstanceState = iota
	// InstanceRunning means: active, and an address is known.
	InstanceRunning
	// InstanceProvisioning means: active, at least one source answered, none names an
	// address.
	InstanceProvisioning
	// InstancePaused means: active but its CPUs stand still.
	InstancePaused
	// InstanceStopped means: shut off or crashed.
	InstanceStopped
)

// String returns a word for logs and tests.
func (s InstanceState) String() string {
	switch s {
	case InstanceUnknown:
		return "unknown"
	case InstanceRunning:
		return "running"
	case InstanceProvisioning:
		return "provisioning"
	case InstancePaused:
		return "paused"
	case InstanceStopped:
		return "stopped"
	}
	return unknown("instance-state", int(s))
}

// Incarnation tells one run of a domain from the next: it changes each time the
// domain starts. Empty while the domain does not run. Two equal values prove
// "the same run" only within an unbroken observation (one link generation),
// since a rebooted host counts its domain IDs from 1 again.
type Incarnation string

// Instance is what the provider saw of one VM. The provider fills in what it
// learned even when it returns an error beside it.
type Instance struct {
	Name        string // domain name
	UUID        string // textual, lower case
	State       InstanceState
	Domain      DomainState
	Reason      string // libvirt's reason for Domain, in words ("I/O error", "migration")
	Incarnation Incarnation
	Generation  uint64       // of the link through which it was seen
	Address     netip.Addr   // the chosen one; invalid if none
	Won         Source       // the source that named Address; meaningless without one
	Candidates  []netip.Addr // all usable addresses, deduplicated, best first
	Outcomes    []Outcome    // at most one per source, display order; only sources that were considered
	At          time.Time
	Owner       Owner  // the mark in the domain's metadata; zero if it has none
	OwnerKnown  bool   // the metadata was read; without it a zero Owner says nothing
	OwnerNote   string // why a mark that is there is nobody's or, if it is not known, was refused; empty otherwise
}
