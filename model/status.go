package model

import (
	"net/netip"
	"time"
)

// StatusVersion is the version of the schema of Status. It grows when a field
// changes its meaning or goes; new fields leave it as it is.
const StatusVersion = 1

// Status is the documented form of a snapshot for other programs: what
// `virdeck status --json` prints. Times are RFC 3339 with fractions, durations
// are milliseconds, absent values are left out.
type Status struct {
	Version  int            `json:"version"`
	Fleet    string         `json:"fleet"`
	Virdeck  string         `json:"virdeck"`
	At       time.Time      `json:"at"`
	Observer bool           `json:"observer"` // true: one short look by a process of its own
	Demo     bool           `json:"demo,omitempty"`
	DryRun   bool           `json:"dry_run,omitempty"` // nothing is written to any host
	Counts   map[string]int `json:"counts"`
	Health   FleetStatus    `json:"health"`
	Hosts    []HostStatus   `json:"hosts"`
	Proxies  []ProxyStatus  `json:"proxies"`
	Ops      []OpStatus     `json:"ops"`
	Notices  []string       `json:"notices"`
	Pools    []PoolStatus   `json:"pools"`
	Plan     []PlanStatus   `json:"plan"` // what is wanted and not yet so
}

// FleetStatus is the witnesses' word.
type FleetStatus struct {
	Control string `json:"control"`
	Frozen  bool   `json:"frozen"`
	Why     string `json:"why,omitempty"`
	Brake   bool   `json:"brake"`
}

// HostStatus is one host.
type HostStatus struct {
	Name      string        `json:"name"`
	UUID      string        `json:"uuid,omitempty"`
	Misconfig string        `json:"misconfigured,omitempty"`
	ReadOnly  string        `json:"read_only,omitempty"` // why nothing is written to it although its answers count
	ARPBroken bool          `json:"arp_unreadable,omitempty"`
	LastGood  *time.Time    `json:"last_good,omitempty"`
	Link      *LinkJSON     `json:"link,omitempty"` // none for the group of external proxies
	Events    []EventStatus `json:"events"`

	Orphans []OrphanStatus `json:"orphans"`          // domains with our mark that no proxy owns
	Budget  *BudgetStatus  `json:"budget,omitempty"` // none for the group of external proxies
}

// LinkJSON is the link of a host.
type LinkJSON struct {
	State       string     `json:"state"`
	Generation  uint64     `json:"generation"`
	Since       time.Time  `json:"since"`
	Error       string     `json:"error,omitempty"`
	Phase       string     `json:"phase,omitempty"`
	NextRetry   *time.Time `json:"next_retry,omitempty"`
	InFlight    int        `json:"in_flight"`
	RoundTripMS float64    `json:"round_trip_ms"`
	Endpoint    string     `json:"endpoint"`
	EventsOff   string     `json:"events_off,omitempty"` // which events the host does not tell, and why
}

// ProxyStatus is one proxy.
type ProxyStatus struct {
	Name        string            `json:"name"`
	Host        string            `json:"host"`
	Backing     string            `json:"backing"`
	Domain      string            `json:"domain,omitempty"`
	DomainState string            `json:"domain_state,omitempty"`
	State       string            `json:"state"`
	Marks       []string          `json:"marks"`
	Reason      string            `json:"reason"`
	Since       time.Time         `json:"since"`
	IP          string            `json:"ip,omitempty"`
	IPSource    string            `json:"ip_source,omitempty"`
	Candidate   string            `json:"candidate,omitempty"`
	Incarnation string            `json:"incarnation,omitempty"`
	Port        uint16            `json:"port"`
	Pool        string            `json:"pool"`
	Labels      map[string]string `json:"labels,omitempty"`
	Hold        *HoldStatus       `json:"hold,omitempty"`
	ReadError   string            `json:"read_error,omitempty"`
	Sources     []SourceStatus    `json:"sources"`
	Conditions  []CondStatus      `json:"conditions"`
	Health      HealthStatus      `json:"health"`
	Rotation    RotationStatus    `json:"rotation"`
	Events      []EventStatus     `json:"events"`
	Managed     *ManagedStatus    `json:"managed,omitempty"` // of managed proxies alone
}

// HoldStatus is a held address.
type HoldStatus struct {
	Polls int       `json:"polls"`
	Of    int       `json:"of"`
	Since time.Time `json:"since"`
	Probe string    `json:"probe,omitempty"`
}

// SourceStatus is what one source last said.
type SourceStatus struct {
	Source    string     `json:"source"`
	Kind      string     `json:"kind"`
	Addresses []string   `json:"addresses"`
	Ignored   []string   `json:"ignored,omitempty"`
	Code      int        `json:"code,omitempty"`
	Message   string     `json:"message,omitempty"`
	At        *time.Time `json:"at,omitempty"`
	TookMS    float64    `json:"took_ms,omitempty"`
}

// CondStatus is one condition.
type CondStatus struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// HealthStatus is what probes say.
type HealthStatus struct {
	Proven      bool       `json:"proven"`
	Passes      int        `json:"passes"`
	Fails       int        `json:"fails"`
	LastPassed  bool       `json:"last_passed"`
	Culprit     string     `json:"culprit,omitempty"`
	LastReason  string     `json:"last_reason,omitempty"`
	LastAt      *time.Time `json:"last_at,omitempty"`
	TookMS      float64    `json:"took_ms,omitempty"`
	ExitIP      string     `json:"exit_ip,omitempty"`
	PassPercent int        `json:"pass_percent"`
	Waiting     string     `json:"waiting,omitempty"`
}

// RotationStatus is the membership and the reason for it.
type RotationStatus struct {
	In     bool      `json:"in"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// EventStatus is one event.
type EventStatus struct {
	At       time.Time `json:"at"`
	From     string    `json:"from,omitempty"`
	To       string    `json:"to,omitempty"`
	What     string    `json:"what"`
	Evidence []string  `json:"evidence,omitempty"`
}

// OpStatus is one operator's command.
type OpStatus struct {
	ID     uint64 `json:"id"`
	Verb   string `json:"verb"`
	Target string `json:"target"`
	By     string `json:"by"`
	State  string `json:"state"`
	Phase  string `json:"phase,omitempty"`
	Result string `json:"result,omitempty"`
}

// NewStatus turns a snapshot into its documented form.
func NewStatus(s *Snapshot) Status {
	out := Status{
		Version: StatusVersion, Fleet: s.Fleet, Virdeck: s.Version, At: s.At, Demo: s.Demo,
		Counts: map[string]int{},
		Health: FleetStatus{
			Control: s.Health.Control.String(), Frozen: s.Health.Frozen,
			Why: s.Health.FrozenWhy, Brake: s.Health.BrakeOn,
		},
		Hosts: []HostStatus{}, Proxies: []ProxyStatus{}, Ops: []OpStatus{}, Notices: []string{},
		DryRun: s.DryRun, Pools: []PoolStatus{}, Plan: []PlanStatus{},
	}
	for st, n := range s.CountStates() {
		out.Counts[st.String()] = n
	}
	for _, h := range s.Hosts {
		out.Hosts = append(out.Hosts, hostStatus(h))
		for _, p := range h.Proxies {
			out.Proxies = append(out.Proxies, proxyStatus(p))
		}
	}
	for _, o := range s.Ops {
		out.Ops = append(out.Ops, OpStatus{
			ID: uint64(o.ID), Verb: o.Command.Verb.String(), Target: o.Command.Target(),
			By: o.Command.By, State: o.State.String(), Phase: o.Phase, Result: o.Result,
		})
	}
	for _, n := range s.Notices {
		out.Notices = append(out.Notices, n.Text)
	}
	for _, p := range s.Pools {
		out.Pools = append(out.Pools, poolStatus(p))
	}
	for _, it := range s.Plan {
		out.Plan = append(out.Plan, planStatus(it))
	}
	return out
}

func hostStatus(h *HostView) HostStatus {
	hs := HostStatus{
		Name: string(h.Name), UUID: h.UUID, Misconfig: h.Misconfig, ReadOnly: h.Twin, ARPBroken: h.ARPBroken,
		LastGood: timePtr(h.LastGood), Events: events(h.Events), Orphans: []OrphanStatus{},
	}
	for _, o := range h.Orphans {
		hs.Orphans = append(hs.Orphans, OrphanStatus{
			Domain: o.Domain, Proxy: string(o.Owner.Proxy), Mark: markStatus(o.Owner), Since: timePtr(o.First), Wait: o.Wait,
		})
	}
	if !h.External {
		b := budgetStatus(h.Budget)
		hs.Budget = &b
		l := h.Link
		hs.Link = &LinkJSON{
			State: l.State.String(), Generation: l.Generation, Since: l.Since, Phase: l.Phase,
			NextRetry: timePtr(l.NextRetry), InFlight: l.InFlight, RoundTripMS: ms(l.RoundTrip),
			Endpoint: l.Endpoint, EventsOff: l.EventsOff,
		}
		if l.State != LinkUp {
			hs.Link.Error = l.LastError
		}
	}
	return hs
}

func proxyStatus(p *ProxyView) ProxyStatus {
	ps := ProxyStatus{
		Name: string(p.Spec.Name), Host: string(p.Spec.Host), Backing: p.Spec.Backing.String(),
		Domain: p.Spec.Domain, State: p.State.String(), Marks: []string{}, Reason: p.Reason,
		Since: p.Since, IP: addr(p.IP), Candidate: addr(p.Candidate),
		Incarnation: string(p.Incarnation), Port: p.Spec.Port, Pool: p.Spec.Pool,
		Labels: p.Spec.Labels, ReadError: p.ReadError, Sources: []SourceStatus{},
		Conditions: []CondStatus{}, Events: events(p.Events),
		Rotation: RotationStatus{In: p.Health.InRotation, Reason: p.Health.Reason, Since: p.Health.Since},
	}
	if p.Spec.Backing == BackingExternal {
		ps.IP = addr(p.Spec.Address)
	} else {
		ps.DomainState = p.Domain.String()
		if p.IP.IsValid() {
			ps.IPSource = p.IPSource.String()
		}
	}
	for _, m := range p.Marks {
		ps.Marks = append(ps.Marks, m.Word())
	}
	if p.Hold.Active {
		ps.Hold = &HoldStatus{Polls: p.Hold.Polls, Of: p.Hold.Of, Since: p.Hold.Since, Probe: p.Hold.Probe}
	}
	for _, o := range p.Outcomes {
		ps.Sources = append(ps.Sources, sourceStatus(o))
	}
	for _, c := range p.Conditions {
		ps.Conditions = append(ps.Conditions, CondStatus{
			Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.Since,
		})
	}
	h := p.Health
	ps.Health = HealthStatus{
		Proven: h.Proven, Passes: h.Passes, Fails: h.Fails, LastPassed: h.Last.Passed,
		LastReason: h.Last.Reason, LastAt: timePtr(h.Last.Started), TookMS: ms(h.Last.Took),
		ExitIP: addr(h.Last.ExitIP), PassPercent: h.PassPercent, Waiting: h.Waiting,
	}
	if h.Last.Culprit != CulpritNone {
		ps.Health.Culprit = h.Last.Culprit.String()
	}
	ps.Managed = managedStatus(p.Managed)
	return ps
}

func sourceStatus(o Outcome) SourceStatus {
	ss := SourceStatus{
		Source: o.Source.String(), Kind: o.Kind.String(), Addresses: []string{},
		Code: o.Code, Message: o.Message, At: timePtr(o.At), TookMS: ms(o.Took),
	}
	for _, a := range o.Addresses {
		ss.Addresses = append(ss.Addresses, a.String())
	}
	for _, i := range o.Ignored {
		ss.Ignored = append(ss.Ignored, i.Address.String()+" ("+i.Why+")")
	}
	return ss
}

func events(evs []Event) []EventStatus {
	out := make([]EventStatus, 0, len(evs))
	for _, e := range evs {
		out = append(out, EventStatus{At: e.At, From: e.From, To: e.To, What: e.What, Evidence: e.Evidence})
	}
	return out
}

func addr(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func timePtr(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
