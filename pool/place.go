package pool

import (
	"cmp"
	"fmt"
	"slices"

	"virdeck/model"
)

// fill makes what is missing: declared ordinals from the lowest, then extras.
func (p *planner) fill() {
	room, extras := p.room()
	for _, e := range p.ms {
		p.count(e)
	}
	for n := 1; n <= p.spec.Count; n++ {
		if p.at[n] == nil && !p.add(n, &room, CauseScale, "declared, and not there") {
			return
		}
	}
	for n := p.spec.Count + 1; extras < p.want; n++ {
		if p.at[n] != nil {
			continue
		}
		cause, why := p.whyExtra(extras)
		if !p.add(n, &room, cause, why) {
			return
		}
		extras++
	}
}

// count adds a member to what weighs on its host.
func (p *planner) count(e *entry) {
	p.all[e.Host]++
	if p.declared(e) {
		p.members[e.Host]++
	}
}

// room returns how many members may be made, and how many extras there are. What
// cannot leave does not count, lest it keeps out what it waits for.
func (p *planner) room() (room, extras int) {
	n := 0
	for _, e := range p.ms {
		switch {
		case p.writtenOff(e), e.fate == surplus && (e.kept || e.back || !p.up(e.Host)):
		case e.fate == stays && !p.declared(e):
			extras++
		default:
			n++
		}
	}
	return p.spec.Count + p.spec.Surge - n - min(extras, p.spec.Surge+p.lost), extras
}

// whyExtra is what one more extra is for.
func (p *planner) whyExtra(have int) (Cause, string) {
	i := 0
	for _, e := range p.ms {
		if p.declared(e) && p.writtenOff(e) {
			if i == have {
				return CauseFailover, fmt.Sprintf("stands in for %s, whose host %s does not answer", p.spec.Member(e.Ordinal), e.Host)
			}
			i++
		}
	}
	for _, e := range p.ms {
		if e.fate == renews && e.serving() {
			return e.cause, fmt.Sprintf("stands in while others are replaced (%s)", e.why)
		}
	}
	return CauseScale, "stands in"
}

func (p *planner) add(n int, room *int, c Cause, why string) bool {
	e := &entry{Member: Member{Ordinal: n}, fate: stays}
	if *room <= 0 {
		p.wait(e, "at most %d members: waits until one of them is gone", p.spec.Count+p.spec.Surge)
		return false
	}
	host, ok := p.place(n)
	if !ok {
		p.wait(e, "no host of the pool answers")
		return false
	}
	*room--
	e.Host = host
	p.count(e)
	p.ms = append(p.ms, e) // out of order, which only this file sees
	p.at[n] = e
	p.d.Add = append(p.d.Add, p.action(e, c, why))
	return true
}

// place chooses a host for a new member: the one with the fewest members of this
// pool, then of all pools; then the one that the ordinal would have come to in an
// empty pool, so that most successors come to where their predecessors were.
// Extras do not weigh against declared ones: they will be gone.
func (p *planner) place(n int) (model.HostName, bool) {
	load := p.members
	if n > p.spec.Count {
		load = p.all
	}
	var fit []model.HostName
	for _, h := range p.spec.Hosts {
		if p.up(h) && !slices.Contains(fit, h) {
			fit = append(fit, h)
		}
	}
	if len(fit) == 0 {
		return "", false
	}
	home := p.spec.Hosts[(n-1)%len(p.spec.Hosts)]
	away := func(h model.HostName) int {
		if h == home {
			return 0
		}
		return 1
	}
	return slices.MinFunc(fit, func(a, b model.HostName) int {
		return cmp.Or(cmp.Compare(load[a], load[b]), cmp.Compare(p.hosts[a].Others, p.hosts[b].Others), cmp.Compare(away(a), away(b)))
	}), true
}
