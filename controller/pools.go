package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"virdeck/model"
	"virdeck/pool"
)

// poolsPass carries out what the planner says of each pool. Each of its actions
// is complete in itself, and what is not carried out is proposed again.
func (c *Controller) poolsPass(now time.Time) {
	d := c.declared.Load()
	views := []model.PoolView{}
	for _, spec := range d.Pools {
		c.addMarked(spec)
		members := c.members(spec.Name)
		hosts := c.poolHosts(spec.Name)
		ps := pool.Spec{PoolSpec: spec, Hash: d.buildSpec(spec.Template, "", spec.Port).Hash()}
		dec := pool.Plan(ps, members, hosts, now)
		if why := cmp.Or(c.rival(spec.Name, ""), c.blind()); why != "" && len(dec.Add) > 0 {
			dec.Add = nil
			dec.Waits = append(dec.Waits, pool.Wait{Why: why})
		}
		if why := c.passive(); why != "" { // what would be made is shown as records; whoever serves goes on
			for _, a := range slices.Concat(dec.Drain, dec.Delete) {
				dec.Waits = append(dec.Waits, pool.Wait{Name: a.Name, Why: "would leave: " + a.Why + "; " + why})
			}
			dec.Drain, dec.Delete = nil, nil
		}
		dec.Waits = append(dec.Waits, c.carryOut(spec, dec, now)...)
		views = append(views, c.poolView(spec, members, dec, now))
	}
	c.retirePools(d, now)
	c.poolViews.Store(&views)
}

// addMarked gives a place to members that the marks on the hosts tell of, where
// the store has forgotten them.
func (c *Controller) addMarked(spec model.PoolSpec) {
	if !c.fresh.Load() {
		return
	}
	for _, h := range c.hosts() {
		for _, in := range h.markedNow() {
			n, ok := spec.Ordinal(in.Owner.Proxy)
			if ok && c.ours(in.Owner) && in.Owner.Pool == spec.Name && c.hostOf(in.Owner.Proxy) == nil {
				c.addMember(spec, n, h.name)
			}
		}
	}
}

// members returns the members of a pool that are there.
func (c *Controller) members(name string) []pool.Member {
	var out []pool.Member
	for _, h := range c.hosts() {
		h.each(func(p *proxy) {
			if p.m != nil && p.m.pool == name {
				out = append(out, h.member(p))
			}
		})
	}
	return out
}

// member describes one to the planner. The lock is held.
func (h *host) member(p *proxy) pool.Member {
	m := p.m
	return pool.Member{
		Ordinal: m.ordinal, Host: h.name, Hash: m.hash, Created: m.created,
		InRotation: p.inRot, Passing: p.view.Health.Last.Passed, Proven: m.proven, Failed: p.state == model.StateFailed,
		Held: p.drained || m.wish != wishRun, Draining: m.poolDrain, Tunnels: -1, Deleting: m.retired,
	}
}

// poolHosts describes all hosts to the planner.
func (c *Controller) poolHosts(name string) []pool.Host {
	var out []pool.Host
	for _, h := range c.hosts() {
		if h.external() {
			continue
		}
		ph := pool.Host{Name: h.name, DownSince: h.lostSince()}
		h.each(func(p *proxy) { ph.Others += boolInt(p.m != nil && p.m.pool != name) })
		out = append(out, ph)
	}
	return out
}

// carryOut does what the planner proposes, and returns what keeps it from some.
func (c *Controller) carryOut(spec model.PoolSpec, d pool.Decision, now time.Time) (waits []pool.Wait) {
	held := func(a pool.Action) bool {
		why := ""
		if !a.Cause.Declared() {
			why = c.budgetHold(a.Host, spec.Name, now)
		}
		if why != "" {
			waits = append(waits, pool.Wait{Name: a.Name, Why: why})
		}
		return why != ""
	}
	for _, a := range d.Undrain {
		c.onMember(a, func(h *host, p *proxy) {
			p.m.poolDrain, p.m.poolWhy, p.m.drainEnd = time.Time{}, "", time.Time{}
			h.tellSame(p, note{what: "stays after all: " + a.Why}, now)
		})
	}
	for _, a := range d.Drain {
		if held(a) {
			continue
		}
		c.onMember(a, func(h *host, p *proxy) {
			p.m.poolDrain, p.m.poolWhy, p.m.drainEnd = now, a.Why, now.Add(p.m.drain)
			if a.Cause != pool.CauseScale {
				c.count(a.Host, spec.Name, "replace "+string(a.Name), "", now)
			}
			h.tellSame(p, note{what: "drains: " + a.Why}, now)
		})
	}
	for _, a := range d.Delete {
		c.onMember(a, func(h *host, p *proxy) {
			p.m.retired, p.m.poolWhy, p.m.failure = true, a.Why, failure{}
			h.tellSame(p, note{what: "is removed: " + a.Why}, now)
		})
	}
	for _, a := range d.Add {
		if h := c.hostOf(a.Name); h != nil {
			waits = append(waits, pool.Wait{Name: a.Name, Why: fmt.Sprintf("another proxy of this name is on %s", h.name)})
			continue
		}
		if held(a) {
			continue
		}
		c.addMember(spec, a.Ordinal, a.Host)
		if !a.Cause.Declared() {
			c.count(a.Host, spec.Name, "create "+string(a.Name), "", now)
		}
		c.log.Info("pool member added", "pool", spec.Name, "proxy", string(a.Name), "host", string(a.Host), "why", a.Why)
	}
	return waits
}

// onMember runs f on a member with its host's lock held.
func (c *Controller) onMember(a pool.Action, f func(*host, *proxy)) {
	h := c.hostOf(a.Name)
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.byName[a.Name]; p != nil && p.m != nil {
		f(h, p)
		h.refresh(p, time.Now())
	}
}

// addMember makes the record of a member; its VM follows from that.
func (c *Controller) addMember(spec model.PoolSpec, ordinal int, host model.HostName) {
	c.lay(func(t *topology) {
		c.addManaged(t, poolProxy(spec, ordinal, host), spec.Template, managed{pool: spec.Name, ordinal: ordinal, drain: spec.DrainTime})
	})
}

// retirePools removes the members of pools that are not declared any more.
func (c *Controller) retirePools(d *Declared, now time.Time) {
	for _, h := range c.hosts() {
		h.each(func(p *proxy) {
			if p.m == nil || p.m.pool == "" || p.m.retired {
				return
			}
			if _, ok := d.pool(p.m.pool); !ok {
				h.retire(p, now)
			}
		})
	}
}

// lostSince is since when the host does not answer; zero while it does.
func (h *host) lostSince() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.downSince
}

// markedNow returns the marked domains of the newest listing.
func (h *host) markedNow() []model.Instance {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.marked)
}

// poolView is what screens show of a pool.
func (c *Controller) poolView(spec model.PoolSpec, members []pool.Member, d pool.Decision, now time.Time) model.PoolView {
	v := model.PoolView{Name: spec.Name, Template: spec.Template, Count: spec.Count, Members: len(members), Placement: map[model.HostName]int{}, Budget: c.budgetView("", spec.Name, now)}
	for _, m := range members {
		v.Placement[m.Host]++
		v.In += boolInt(m.InRotation)
	}
	for _, w := range d.Waits {
		text := w.Why
		if w.Name != "" {
			text = string(w.Name) + ": " + text
		}
		v.Wait = append(v.Wait, text)
	}
	return v
}
