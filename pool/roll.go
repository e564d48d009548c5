package pool

import (
	"cmp"
	"fmt"
	"slices"
)

// roll begins to replace members that are to be replaced.
func (p *planner) roll() {
	var todo []*entry
	covers := -p.lost // extras that serve, less those that stand in for lost members
	for _, e := range p.ms {
		switch {
		case e.fate == renews && !e.Deleting && !e.back && e.Draining.IsZero():
			todo = append(todo, e)
		case e.fate == stays && !p.declared(e) && e.serving():
			covers++
		}
	}
	// those that nobody misses come first
	slices.SortStableFunc(todo, func(a, b *entry) int { return cmp.Compare(rank(b), rank(a)) })
	for i, e := range todo {
		if why := p.holds(e, covers); why != "" {
			if rest := len(todo) - i - 1; rest > 0 {
				why += fmt.Sprintf("; %d more after it", rest)
			}
			p.wait(e, "%s: %s", e.why, why)
			return
		}
		p.inFlight++
		switch {
		case e.Failed:
			p.d.Delete = append(p.d.Delete, p.leaving(e))
		default:
			if e.serving() {
				p.in--
			}
			p.d.Drain = append(p.d.Drain, p.leaving(e))
		}
	}
}

// holds tells why the member must not be replaced now; empty if it may be.
func (p *planner) holds(e *entry, covers int) string {
	if most := max(1, p.spec.Surge); p.inFlight >= most {
		return fmt.Sprintf("at most %d replaced at once, waits until %s", most, p.between())
	}
	switch {
	case !e.serving():
		return ""
	case p.spec.Surge > 0 && covers < p.inFlight+1:
		return "waits until " + p.ready(p.spec.Count+1)
	case p.in-1 < p.least:
		return fmt.Sprintf("min_available %d: waits until %s", p.least, p.ready(1))
	}
	return ""
}

// between names a member that is between two VMs.
func (p *planner) between() string {
	for n := 1; n <= p.spec.Count; n++ {
		e := p.at[n]
		if e == nil || !e.Held && !e.serving() && (e.Deleting || e.fate == renews && !e.Draining.IsZero() || e.fate == stays && !e.Proven) {
			return p.ready(n)
		}
	}
	for _, a := range p.d.Drain { // it was decided just now
		if a.Ordinal <= p.spec.Count {
			return string(a.Name) + " is in rotation"
		}
	}
	return "those are in rotation"
}
