package model

import (
	"net/netip"
	"time"
)

// Snapshot is the whole fleet at one instant. It is immutable once published:
// hosts and proxies that did not change are shared with the snapshot before it,
// so comparing pointers tells what changed.
type Snapshot struct {
	Fleet   string
	Version string // of virdeck
	Demo    bool
	Gen     uint64 // counts publications
	At      time.Time
	Started time.Time // of the engine
	Hosts   []*HostView
	Ops     []Op // newest last
	Health  FleetHealth
	Notices []Notice
	Timing  Timing
	Plan    []PlanItem // what is wanted and not yet so
	Pools   []PoolView
	DryRun  bool // nothing is written to any host
}

// Timing is the part of the settings that screens and readers need to make
// sense of ages.
type Timing struct {
	Poll           time.Duration
	AddressRefresh time.Duration
	AddressHold    int
	ProbeInterval  time.Duration
	ProbeTimeout   time.Duration
}

// HostView is one host with its proxies.
type HostView struct {
	Name       HostName
	External   bool // the group of external proxies; it has no link
	URI        string
	Sources    []Source
	Link       LinkStatus
	UUID       string    // pinned at first contact; empty before
	Misconfig  string    // why the host's answers are not used (another UUID, reads refused)
	Shows      string    // UUID of the machine that answers, if it is not the pinned one
	Twin       string    // why nothing is written to the host although its answers count
	ARPBroken  bool      // libvirt cannot read this host's neighbour table
	LastGood   time.Time // of the last bulk look that succeeded
	Domains    int       // domains on the host, declared or not; -1 unknown
	Undeclared []string  // names of domains that no proxy declares; hostile bytes possible
	Orphans    []OrphanView
	Budget     BudgetView
	Proxies    []*ProxyView
	Events     []Event // of the link, oldest first, bounded
}

// ProxyView is one proxy as the console and the JSON status show it.
type ProxyView struct {
	Spec        ProxySpec
	State       State
	Marks       []Mark
	Reason      string // one line: why this state
	Since       time.Time
	IP          netip.Addr // status.IP, held ones included
	IPSource    Source     // that last named IP
	IPAt        time.Time  // when a source last confirmed it
	Candidate   netip.Addr // a new address that is being proven beside IP
	Domain      DomainState
	DomainNote  string
	UUID        string
	Incarnation Incarnation
	Outcomes    []Outcome // one per source, display order, always all of them
	Conditions  []Condition
	Health      Health
	Drained     bool
	Managed     *ManagedView // nil for others
	Hold        Hold
	ReadError   string    // why the last read said nothing; empty after a good one
	ReadFailed  time.Time // since when reads fail; zero if they do not
	LastRead    time.Time // last good read
	NextLook    time.Time // next scheduled address poll
	Events      []Event   // oldest first, bounded
}

// Hold is the state of a held address.
type Hold struct {
	Active bool
	Polls  int // scheduled address polls without an address, so far
	Of     int // polls that must have passed before it can be cleared
	Since  time.Time
	Probe  string // what the probes through it say
}

// Event is a change with the evidence that caused it.
type Event struct {
	Seq      uint64
	At       time.Time
	Host     HostName
	Proxy    ProxyName // empty for events of a host
	From, To string    // states or link states; equal if none changed
	What     string    // one line
	Evidence []string
}

// NoticeLevel orders notices.
type NoticeLevel int

// The levels.
const (
	NoticeInfo NoticeLevel = iota
	NoticeWarn
	NoticeAlert // shown in large letters
)

// Notice is a standing remark about the whole fleet.
type Notice struct {
	Level  NoticeLevel
	Text   string
	Since  time.Time
	Reload bool     // it is about a configuration file that is not applied
	Plan   []string // what reload would change, one line each; empty if the text says it
}

// Counts is the number of proxies by state.
type Counts map[State]int

// CountStates counts the proxies of a snapshot by state.
func (s *Snapshot) CountStates() Counts {
	c := Counts{}
	for _, h := range s.Hosts {
		for _, p := range h.Proxies {
			c[p.State]++
		}
	}
	return c
}

// Host returns a host by name, or nil.
func (s *Snapshot) Host(name HostName) *HostView {
	for _, h := range s.Hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// Proxy returns a proxy and its host by name, or nils.
func (s *Snapshot) Proxy(name ProxyName) (*ProxyView, *HostView) {
	for _, h := range s.Hosts {
		for _, p := range h.Proxies {
			if p.Spec.Name == name {
				return p, h
			}
		}
	}
	return nil, nil
}

// Outcome returns what a source last said of the proxy; of kind OutcomeNone if
// it never did.
func (p *ProxyView) Outcome(s Source) Outcome {
	for _, o := range p.Outcomes {
		if o.Source == s {
			return o
		}
	}
	return Outcome{Source: s}
}
