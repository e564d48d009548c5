package pool

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"virdeck/model"
)

// fate is what is to become of a member.
type fate int

const (
	stays   fate = iota
	renews       // declared, and to be replaced by one of the same name
	surplus      // not declared
)

type entry struct {
	Member
	fate  fate
	cause Cause  // of renews
	why   string // of renews
	back  bool   // was just taken back
	kept  bool   // surplus that min_available keeps
}

// planner is one run of Plan. Its parts run in the order of the methods in Plan
// and each sees what those before have decided.
type planner struct {
	spec  Spec
	now   time.Time
	hosts map[model.HostName]Host
	ms    []*entry // by ordinal
	at    map[int]*entry
	least int // MinAvailable, never above count

	in   int // in rotation, less what has been decided so far
	want int // extras to be made
	d    Decision

	members, all map[model.HostName]int // on a host, for placing: declared ones, and with extras

	// Of the declared ordinals, without those that an operator holds:
	lost      int // written off by failover
	inFlight  int // between two VMs
	outdatedN int // to be replaced, now or later
	servingN  int // to be replaced now, and in rotation
	moving    int // to be replaced, or between two VMs
	back      int // there, and out of the rotation
	uncovered int // to be replaced, or out of the rotation, or not there
}

// Plan compares the members that are there with the declared pool. members and
// hosts may be in any order; hosts has every configured host, of other pools
// too. A member on a host that is not in hosts is as one whose host does not
// answer, for ever: a caller that has given it up leaves it out. Ordinals are
// unique.
func Plan(spec Spec, members []Member, hosts []Host, now time.Time) Decision {
	p := planner{
		spec: spec, now: now, hosts: map[model.HostName]Host{}, at: map[int]*entry{},
		members: map[model.HostName]int{}, all: map[model.HostName]int{},
	}
	p.spec.Count, p.spec.Surge = max(0, spec.Count), max(0, spec.Surge)
	p.least = min(max(0, spec.MinAvailable), p.spec.Count)
	for _, h := range hosts {
		p.hosts[h.Name] = h
	}
	for _, m := range members {
		e := &entry{Member: m}
		p.ms = append(p.ms, e)
		p.at[m.Ordinal] = e
		if m.serving() {
			p.in++
		}
	}
	slices.SortFunc(p.ms, func(a, b *entry) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	p.judgeDeclared()
	p.judgeExtras()
	p.takeBack()
	p.remove()
	p.scaleDown()
	p.roll()
	p.fill()
	slices.SortStableFunc(p.d.Waits, func(a, b Wait) int { return cmp.Compare(p.ordinal(a), p.ordinal(b)) })
	return p.d
}

func (p *planner) ordinal(w Wait) int {
	n, _ := p.spec.Ordinal(w.Name)
	return n
}

func (p *planner) declared(e *entry) bool { return e.Ordinal >= 1 && e.Ordinal <= p.spec.Count }

// up reports whether the host answers.
func (p *planner) up(h model.HostName) bool {
	host, ok := p.hosts[h]
	return ok && host.DownSince.IsZero()
}

// writtenOff reports whether failover does not count on the member any more.
func (p *planner) writtenOff(e *entry) bool {
	if !p.spec.Failover || e.serving() || e.Passing || e.Held || p.up(e.Host) {
		return false
	}
	since := p.hosts[e.Host].DownSince
	if since.IsZero() { // not configured
		return true
	}
	due := since.Add(p.spec.FailoverAfter)
	if p.now.Before(due) {
		p.again(due)
		return false
	}
	return true
}

// outdated tells why another VM is to take the member's place, if it is.
func (p *planner) outdated(e *entry) (Cause, string, bool) {
	due := e.Created.Add(p.spec.MaxAge)
	switch {
	case e.Hash != "" && e.Hash != p.spec.Hash:
		return CauseTemplate, "its template has changed", true
	case !slices.Contains(p.spec.Hosts, e.Host):
		return CauseHosts, fmt.Sprintf("host %s is none of the pool's", e.Host), true
	case p.spec.MaxAge > 0 && p.declared(e) && !p.now.Before(due):
		return CauseAge, "it is older than " + short(p.spec.MaxAge), true
	case p.spec.MaxAge > 0 && p.declared(e):
		p.again(due)
	}
	return 0, "", false
}

// judgeDeclared decides about the ordinals from 1 to count, and counts.
func (p *planner) judgeDeclared() {
	for n := 1; n <= p.spec.Count; n++ {
		e := p.at[n]
		if e == nil {
			p.inFlight++
			p.moving++
			p.uncovered++
			continue
		}
		if p.writtenOff(e) {
			p.lost++
		}
		var due bool
		e.cause, e.why, due = p.outdated(e)
		up := p.up(e.Host)
		switch {
		case e.Deleting:
			e.fate = renews
		case due && e.Held:
			p.wait(e, "an operator has taken it out: replaced when it is back (%s)", e.why)
		case due && !up:
			p.wait(e, "host %s does not answer: replaced after that (%s)", e.Host, e.why)
		case due:
			e.fate = renews
		}
		if e.Held {
			continue
		}
		between := up && (e.Deleting || e.fate == renews && !e.Draining.IsZero() || e.fate == stays && !e.Proven)
		due = due && !e.Deleting
		if between {
			p.inFlight++
		}
		if due {
			p.outdatedN++
		}
		if due && e.fate == renews && e.serving() {
			p.servingN++
		}
		if due || between {
			p.moving++
		}
		if !e.serving() {
			p.back++
		}
		if due || !e.serving() {
			p.uncovered++
		}
	}
}

// judgeExtras decides which of the members beyond count stay for now.
func (p *planner) judgeExtras() {
	p.want = p.lost
	if p.servingN > 0 {
		p.want += min(p.spec.Surge, p.servingN+p.inFlight)
	}
	idle := p.lost // whether they serve or not: one that is there is not thrown away for a blink
	if p.outdatedN > 0 {
		idle += min(p.spec.Surge, p.moving)
	}
	most := p.spec.Surge + p.lost
	if p.spec.Failover { // a lost member is back, and serves not yet
		most = max(most, p.back)
	}
	covering := min(most, p.uncovered)

	var fit []*entry
	for _, e := range p.ms {
		if p.declared(e) {
			continue
		}
		e.fate = surplus
		if _, _, due := p.outdated(e); !due && !e.Held && !e.Deleting && e.Ordinal > 0 && !p.writtenOff(e) {
			fit = append(fit, e)
		}
	}
	slices.SortStableFunc(fit, func(a, b *entry) int { return cmp.Compare(rank(a), rank(b)) })
	why := ""
	for i, e := range fit {
		switch {
		case i < idle:
			e.fate = stays
		case i < covering && e.serving():
			e.fate = stays
			if why == "" {
				why = "surplus; stays until " + p.ready(1)
			}
			p.wait(e, "%s", why)
		}
	}
}

// rank puts those that serve before the others.
func rank(e *entry) int {
	if e.serving() {
		return 0
	}
	return 1
}

// takeBack undrains what is wanted again, and what is missed.
func (p *planner) takeBack() {
	coming := 0
	undrain := func(e *entry, why string) {
		if e.Passing && !e.Failed && !e.Held {
			coming++
		}
		e.back, e.Draining = true, time.Time{}
		p.d.Undrain = append(p.d.Undrain, p.action(e, e.cause, why))
	}
	for _, e := range p.ms {
		if e.fate == stays && !e.Draining.IsZero() && !e.Deleting {
			undrain(e, "it is wanted again")
		}
	}
	for _, e := range p.ms {
		if e.fate == stays || e.Draining.IsZero() || e.Deleting || !e.Passing || e.Failed || e.Held {
			continue
		}
		if p.in+coming < p.least {
			undrain(e, fmt.Sprintf("only %d in rotation, and min_available is %d", p.in+coming, p.least))
		}
	}
}

// remove deletes what has been drained, and surplus that is dead.
func (p *planner) remove() {
	for _, e := range p.ms {
		drained := !e.Draining.IsZero() && (!e.Proven || e.Failed || e.Tunnels == 0)
		due := e.Draining.Add(p.spec.DrainTime)
		switch {
		case e.fate == stays || e.Deleting || e.back:
		case e.Draining.IsZero() && (e.fate != surplus || !e.Failed):
		case !p.up(e.Host):
			p.wait(e, "host %s does not answer: removed after that", e.Host)
		case e.Draining.IsZero(): // surplus, and nothing of it serves
			p.d.Delete = append(p.d.Delete, p.action(e, CauseScale, "surplus, and it failed"))
		case drained || !p.now.Before(due):
			p.d.Delete = append(p.d.Delete, p.leaving(e))
		default:
			p.again(due)
		}
	}
}

// scaleDown drains surplus members, the highest ordinal first.
func (p *planner) scaleDown() {
	why := ""
	for _, e := range slices.Backward(p.ms) {
		if e.fate != surplus || e.Deleting || e.back || e.Failed || !e.Draining.IsZero() {
			continue
		}
		if e.serving() {
			if p.in-1 < p.least {
				e.kept = true
				if why == "" { // it is the same for all
					why = fmt.Sprintf("min_available %d: waits until %s", p.least, p.ready(1))
				}
				p.wait(e, "%s", why)
				continue
			}
			p.in--
		}
		p.d.Drain = append(p.d.Drain, p.leaving(e))
	}
}

// leaving is the action that sends a member away.
func (p *planner) leaving(e *entry) Action {
	if e.fate == renews {
		return p.action(e, e.cause, e.why)
	}
	return p.action(e, CauseScale, "surplus")
}

func (p *planner) action(e *entry, c Cause, why string) Action {
	return Action{Ordinal: e.Ordinal, Name: p.spec.Member(e.Ordinal), Host: e.Host, Cause: c, Why: why}
}

func (p *planner) wait(e *entry, format string, args ...any) {
	p.d.Waits = append(p.d.Waits, Wait{Name: p.spec.Member(e.Ordinal), Why: fmt.Sprintf(format, args...)})
}

func (p *planner) again(t time.Time) {
	if p.d.Again.IsZero() || t.Before(p.d.Again) {
		p.d.Again = t
	}
}

// ready says what has to happen first: "web-5 is in rotation", of the first
// ordinal, from from on, that is not.
func (p *planner) ready(from int) string {
	n := from
	for ; n <= p.spec.Count; n++ {
		if e := p.at[n]; e == nil || !e.serving() && !e.Held {
			break
		}
	}
	for ; n > p.spec.Count; n++ { // of the extras, the first that is not, or not yet made
		if e := p.at[n]; e == nil || e.fate == stays && !e.serving() {
			break
		}
	}
	e := p.at[n]
	text := string(p.spec.Member(n)) + " is in rotation"
	switch {
	case e == nil:
	case e.Failed:
		text += " (it failed)"
	case !p.up(e.Host):
		text += fmt.Sprintf(" (host %s does not answer)", e.Host)
	}
	return text
}
