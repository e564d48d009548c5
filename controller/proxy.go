package controller

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"virdeck/health"
	"virdeck/model"
	"virdeck/store"
)

// eventsKept is how many events of each proxy and host are kept.
const eventsKept = 50

// proxy is a declared proxy with everything known of it. Its host's mutex
// guards it.
type proxy struct {
	spec     model.ProxySpec
	st       status
	m        *managed    // nil for those that are not managed
	saved    store.Proxy // what of it the store has
	unsaved  bool        // something may have changed since
	marked   time.Time   // when virdeck last changed its domain's mark on an operator's word
	drained  bool
	restored bool                             // was in rotation before the restart; until it is first tracked
	tracked  map[netip.Addr]model.Incarnation // what health was told to probe
	rival    model.ProxyName                  // who holds the address that this one claims
	claimed  model.ProxyName                  // who holds the address that its sources name beside its own
	told     netip.Addr                       // the last such address that was told of
	next     time.Time                        // next scheduled address poll
	due      bool                             // the queued read is a scheduled one
	fresh    bool                             // the queued read must not use a recent listing
	doubted  time.Time                        // when a failing hop last asked for a read
	waiting  []model.OpID                     // ops that the next read ends

	state  model.State
	since  time.Time
	inRot  bool
	conds  []model.Condition
	events []model.Event
	view   *model.ProxyView
}

// effective returns the address that is probed and served.
func (p *proxy) effective() netip.Addr { return p.spec.EffectiveHost(p.st.ip) }

// syncHealth makes the health engine probe exactly the addresses that the
// proxy has. When there is none left, its counters are pruned and it is
// forgotten, here and now. The host's mutex is held.
func (h *host) syncHealth(p *proxy) {
	want := map[netip.Addr]model.Incarnation{}
	if a := p.effective(); a.IsValid() && p.rival == "" {
		want[a] = p.st.incarnation
	}
	if p.st.candidate.IsValid() {
		want[p.st.candidate] = p.st.incarnation
	}
	if len(want) == 0 {
		if len(p.tracked) > 0 {
			h.c.health.ForgetProxy(p.spec.Name)
		}
		p.tracked = nil
		return
	}
	for a, inc := range p.tracked {
		if w, ok := want[a]; !ok || w != inc {
			h.c.health.Untrack(health.Key{Proxy: p.spec.Name, Address: a})
		}
	}
	for a := range want {
		h.c.health.Track(health.Subject{
			Proxy: p.spec.Name, Host: p.spec.Host, Address: a, Port: p.spec.Port, Kind: p.spec.Probe, Creds: p.spec.Creds,
			Restored: p.restored && a == p.effective(),
		})
	}
	p.tracked, p.restored = want, false
}

// healthOf returns the health of the proxy's present address.
func (h *host) healthOf(p *proxy) model.Health {
	a := p.effective()
	if !a.IsValid() {
		return model.Health{PassPercent: -1, Reason: "no address"}
	}
	v, ok := h.c.health.Health(health.Key{Proxy: p.spec.Name, Address: a})
	if !ok {
		v.Reason = "not probed"
	}
	return v
}

// tell records an event and logs it.
func (h *host) tell(p *proxy, from, to, what string, evidence []string, now time.Time) {
	ev := model.Event{
		Seq: h.c.seq.Add(1), At: now, Host: h.name, Proxy: p.spec.Name, From: from, To: to, What: what, Evidence: evidence,
	}
	p.events = keep(p.events, ev)
	attrs := []any{"host", string(h.name), "proxy", string(p.spec.Name), "what", what}
	if from != to {
		attrs = append(attrs, "from", from, "to", to)
	}
	if len(evidence) > 0 {
		attrs = append(attrs, "evidence", evidence)
	}
	if to == model.StateDemoted.String() || to == model.StateFailed.String() || to == model.StateTransient.String() {
		h.c.log.Warn("proxy changed", attrs...)
		return
	}
	h.c.log.Info("proxy changed", attrs...)
}

// keep appends to a bounded list without touching a slice that a snapshot
// shares.
func keep(evs []model.Event, ev model.Event) []model.Event {
	if len(evs) >= eventsKept {
		evs = evs[len(evs)-eventsKept+1:]
	}
	return append(slices.Clip(evs), ev)
}

// refresh derives state, conditions and view anew, and tells of a change. The
// host's mutex is held.
func (h *host) refresh(p *proxy, now time.Time) {
	p.unsaved = true
	hl := h.healthOf(p)
	readErr, failed := p.st.readErr, !p.st.failed.IsZero()
	if h.misconfig != "" {
		readErr, failed = h.misconfig, true
	}
	inRot := hl.InRotation && !p.drained && p.rival == "" && !p.leaving()
	hl.InRotation = inRot
	facts := model.Facts{
		Drained: p.drained, HasAddress: p.effective().IsValid() && p.rival == "",
		Serving: hl.Last.Passed, Demoted: hl.Demoted || p.st.out != "", InRotation: inRot, Proven: hl.Proven || hl.Unverified,
		ReadFailed: failed, NotAskedOnly: p.st.notAsked, Provisioning: p.st.provisioning,
		Held: p.st.hold.Active, Unverified: hl.Unverified, Conflict: p.rival != "" || p.claimed != "",
		Deleting: p.leaving(), WriteFailed: p.m != nil && p.m.latched,
	}
	state, marks := model.Derive(facts)
	reason := h.reason(p, state, hl, readErr)
	if p.drained {
		hl.Reason = "drained by an operator"
	}
	if p.m != nil && inRot {
		p.m.proven = true
	}
	if state != p.state || inRot != p.inRot {
		from := p.state.String()
		if p.state == 0 {
			from = ""
		}
		if state != p.state {
			p.since = now
		}
		if from != "" { // the first derivation is no change
			h.tell(p, from, state.String(), changeText(p.state, state, p.inRot, inRot, reason), h.evidence(p, hl, readErr), now)
		}
		p.state, p.inRot = state, inRot
	}
	p.conds = conditions(p, hl, readErr, now)
	outs := p.st.outcomeList()
	for i := range outs {
		if outs[i].Kind == model.OutcomeNone && p.spec.Backing == model.BackingExternal {
			outs[i].Kind, outs[i].Message = model.OutcomeNotApplicable, "no VM"
		}
	}
	hold := p.st.hold
	if hold.Active {
		hold.Probe = probeWord(hl)
	}
	p.view = &model.ProxyView{
		Spec: p.spec, State: state, Marks: marks, Reason: reason, Since: p.since,
		IP: p.effective(), IPSource: p.st.ipSource, IPAt: p.st.ipAt, Candidate: p.st.candidate,
		Domain: p.st.domain, DomainNote: p.st.domainNote, UUID: p.st.uuid, Incarnation: p.st.incarnation,
		Outcomes: outs, Conditions: p.conds, Health: hl, Drained: p.drained, Hold: hold, Managed: p.m.view(p),
		ReadError: readErr, ReadFailed: p.st.failed, LastRead: p.st.lastRead, NextLook: p.next, Events: p.events,
	}
	h.dirty = true
	h.c.touch()
}

func changeText(from, to model.State, was, is bool, reason string) string {
	switch {
	case from == to && is:
		return "enters the rotation: " + reason
	case from == to:
		return "leaves the rotation: " + reason
	case was && is:
		return reason + " (stays in rotation)"
	case was:
		return reason + " (out of rotation)"
	case is:
		return reason + " (in rotation)"
	}
	return reason
}

// reason says in one line why the proxy is in its state.
func (h *host) reason(p *proxy, s model.State, hl model.Health, readErr string) string {
	switch s {
	case model.StateDrained:
		return "drained by an operator"
	case model.StateTransient:
		if p.st.lastRead.IsZero() && !p.effective().IsValid() {
			return "never read yet, nothing is known: " + readErr
		}
		return "everything known is kept: " + readErr
	case model.StateDemoted:
		if p.m != nil && p.m.foreign != "" {
			return p.m.foreign
		}
		if p.st.out != "" {
			return p.st.out
		}
		return hl.Reason
	case model.StateProvisioning:
		if readErr != "" {
			return "boots, as far as is known; could not be asked: " + readErr
		}
		return "runs, and no source names an address yet"
	case model.StatePending:
		switch {
		case p.rival != "":
			return fmt.Sprintf("address %s is held by %s", p.st.ip, p.rival)
		case p.m.says() != "":
			return p.m.says()
		case p.st.domain == model.DomainMissing:
			return fmt.Sprintf("domain %s is not defined on this host", p.spec.Domain)
		case p.st.domain == model.DomainShutoff, p.st.domain == model.DomainCrashed:
			return "domain is " + p.st.domain.String()
		case p.st.domain == model.DomainPaused:
			return join("domain is paused", ": ", p.st.domainNote)
		}
		return "not looked at yet"
	case model.StateUnproven:
		if hl.Fails > 0 {
			return fmt.Sprintf("has not passed %d probes in a row: %s", hl.Rise, hl.Last.Reason)
		}
		return fmt.Sprintf("passed %d of %d probes", hl.Passes, hl.Rise)
	case model.StateReady:
		if p.st.domain == model.DomainPaused {
			return join("probes pass, though the domain is paused", ": ", p.st.domainNote)
		}
		if p.st.hold.Active {
			return fmt.Sprintf("address held, poll %d of %d; %s", p.st.hold.Polls, p.st.hold.Of, probeWord(hl))
		}
		if p.st.missing.n >= 2 {
			return "domain not listed on this host; its address still passes probes"
		}
		switch {
		case hl.Waiting != "":
			return "probes fail, kept: " + hl.Waiting
		case !hl.Last.Passed && !hl.Last.Started.IsZero() && !hl.Last.Culprit.ProxysFault():
			return fmt.Sprintf("kept: the last probe says nothing of it (%s: %s)", hl.Last.Culprit, hl.Last.Reason)
		case hl.Fails > 0:
			return fmt.Sprintf("failed %d of %d probes that would demote it: %s", hl.Fails, hl.Fall, hl.Last.Reason)
		}
		return "probes pass"
	case model.StateDeleting:
		return join("its VM is being removed", ": ", p.m.says())
	case model.StateFailed:
		return p.m.lastErr
	}
	return ""
}

// evidence gathers what an operator would ask for next.
func (h *host) evidence(p *proxy, hl model.Health, readErr string) []string {
	var out []string
	if readErr != "" {
		out = append(out, "read: "+readErr)
	}
	out = append(out, hl.Evidence...)
	out = append(out, outcomeLines(p.st.outcomeList())...)
	return append(out, probeWord(hl))
}
