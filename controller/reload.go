package controller

import (
	"errors"
	"fmt"
	"time"

	"virdeck/model"
)

// reloadLimit is how long Apply waits for a changed host to come to rest.
const reloadLimit = 30 * time.Second

// Apply makes d the declared fleet, and s the settings, but for those that hold
// from start to end: Fleet, Version, Demo, Observer, Takeover, DryRun, Workers.
// What is the same in both keeps its state, its counters and its place in the
// rotation. Proxies that are not declared any more leave the rotation at once; the
// VMs of managed ones are removed after the grace for orphans, and stay if they
// are declared again before that. It blocks until changed hosts have come to
// rest, and may be called by one goroutine at a time. An error says what was not
// applied; the rest was, and the next Apply of the same applies what was not.
func (c *Controller) Apply(d Declared, s Settings) error {
	was := c.settings()
	s.Fleet, s.Version, s.Demo, s.Observer, s.Takeover, s.DryRun, s.Workers =
		was.Fleet, was.Version, was.Demo, was.Observer, was.Takeover, was.DryRun, was.Workers
	c.set.Store(&s)
	if old := c.declared.Swap(&d); c.empty && d.makes() && !old.makes() {
		c.settled.Store(false) // what was declared until now has claimed no marks
		c.fresh.Store(true)
	}
	c.ledger.set(d.Budget)
	errs := c.applyHosts(&d)
	want := d.singles()
	var gone []*proxy
	for _, h := range c.hosts() {
		if d.has(h) { // else it could not be let go yet, and its proxies go with it, not before
			gone = append(gone, h.reapply(&d, want, time.Now())...)
		}
	}
	c.drop(gone)
	c.declare()
	for _, h := range c.hosts() {
		h.refreshAll()
	}
	c.kickManage()
	return errors.Join(errs...)
}

// reapply compares a host's proxies with what is declared, and returns those
// that are to be forgotten at once.
func (h *host) reapply(d *Declared, want map[model.ProxyName]model.ManagedSpec, now time.Time) (gone []*proxy) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.proxies {
		if p.m != nil && p.m.pool != "" {
			h.reapplyMember(p, d, want, now)
			continue
		}
		w, ok := want[p.spec.Name]
		made := p.m != nil && !p.m.adopted
		managed := ok && w.Backing == model.BackingManaged
		switch {
		case made && managed && w.Host == h.name:
			p.m.retired, p.m.grace = false, time.Time{}
			h.respec(p, w.ProxySpec, d.buildSpec(w.Template, w.Name, w.Port), now)
		case made && managed:
			h.letGo(p, fmt.Sprintf("is declared on %s now: its VM here goes first", w.Host), time.Time{}, now)
		case made:
			h.outdate(p, d, want, now)
		case !ok && h.c.isConsoleAdopted(p.spec.Name):
		case !ok || !h.stands(p, w.ProxySpec):
			gone = append(gone, p)
		default:
			if p.m != nil { // it was promoted
				w.Backing = model.BackingManaged
			}
			h.respec(p, w.ProxySpec, model.BuildSpec{}, now)
		}
	}
	return gone
}

// stands reports whether a proxy that virdeck did not make is declared as w on
// the same domain, or still has none. The lock is held.
func (h *host) stands(p *proxy, w model.ProxySpec) bool {
	switch w.Backing {
	case model.BackingExternal:
		return p.spec.Backing == model.BackingExternal
	case model.BackingAdopted:
		return p.spec.Backing != model.BackingExternal && w.Host == h.name && w.Domain == p.spec.Domain
	case model.BackingManaged:
	}
	return false
}

// outdate lets go of a managed proxy that is not declared as what it is any more:
// at once if its name is another proxy's now. The lock is held.
func (h *host) outdate(p *proxy, d *Declared, want map[model.ProxyName]model.ManagedSpec, now time.Time) {
	_, single := want[p.spec.Name]
	if _, member := d.member(p.spec.Name); single || member {
		h.letGo(p, "is declared as another proxy now: its VM goes first", time.Time{}, now)
		return
	}
	h.retire(p, now)
}

// retire lets go of a managed proxy that is not declared any more, in case it was
// a mistake after a grace. The lock is held.
func (h *host) retire(p *proxy, now time.Time) {
	grace := h.c.settings().OrphanGrace
	h.letGo(p, fmt.Sprintf("is not declared any more: its VM is removed in %s", grace), now.Add(grace), now)
}

// letGo takes a managed proxy out of the rotation, and has its VM removed at some
// time. The lock is held.
func (h *host) letGo(p *proxy, why string, grace, now time.Time) {
	if p.m.retired {
		return
	}
	p.m.retired, p.m.grace, p.m.drainEnd = true, grace, now.Add(p.m.drain)
	h.tellSame(p, note{what: why}, now)
	h.refresh(p, now)
}

// reapplyMember takes in what the pool of a member says now; whether it has a
// place in it is the planner's to say. The lock is held.
func (h *host) reapplyMember(p *proxy, d *Declared, want map[model.ProxyName]model.ManagedSpec, now time.Time) {
	spec, ok := d.pool(p.m.pool)
	if !ok {
		h.outdate(p, d, want, now)
		return
	}
	if p.m.retired && !p.m.grace.IsZero() { // the pool has come back
		p.m.retired, p.m.grace = false, time.Time{}
	}
	p.m.drain = spec.DrainTime
	w := poolProxy(spec, p.m.ordinal, h.name)
	h.respec(p, w, d.buildSpec(spec.Template, w.Name, w.Port), now)
}

// respec takes in a spec of the same proxy in the same place. The lock is held.
func (h *host) respec(p *proxy, w model.ProxySpec, build model.BuildSpec, now time.Time) {
	if m := p.m; m != nil && !m.adopted {
		w.Domain, w.Creds, w.Port = p.spec.Domain, p.spec.Creds, p.spec.Port // those of its VM; see buildAs
		build.Creds = p.spec.Creds
		if m.spec.Hash() != build.Hash() { // a spec that was refused has changed
			m.failure = failure{}
		}
		m.spec = build
	}
	if p.spec.Equal(w) {
		return
	}
	p.spec = w
	h.settle(p, now)
}

// applyHosts adds, takes away and reopens hosts. What it could not do it does
// the next time: it compares with what is, not with what was declared before.
func (c *Controller) applyHosts(d *Declared) (errs []error) {
	for _, hs := range d.Hosts {
		h := c.host(hs.Name)
		switch {
		case h == nil:
			h = newHost(c, hs)
			c.lay(func(t *topology) { t.addHost(h) })
			c.running.launch(h)
		case h.via().spec.Key != hs.Key:
			errs = append(errs, h.reopen(hs))
		}
	}
	for _, h := range c.hosts() {
		if d.has(h) {
			continue
		}
		if err := h.rest(reloadLimit); err != nil {
			errs = append(errs, err)
			continue
		}
		c.shelve(h)
		c.machines.drop(h.name)
		c.lay(func(t *topology) { t.dropHost(h) })
		h.close()
	}
	return errs
}
