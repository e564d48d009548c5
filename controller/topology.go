package controller

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"virdeck/model"
)

// topology is which hosts there are, and which proxy belongs to which. It is
// immutable once it is published, so it is read without a lock.
type topology struct {
	hosts  []*host // in declaration order, the external group last
	byName map[model.HostName]*host
	where  map[model.ProxyName]*host
}

// lay changes the topology: f gets a copy of its own. No host's lock may be held.
func (c *Controller) lay(f func(*topology)) {
	c.layMu.Lock()
	defer c.layMu.Unlock()
	t := c.topo.Load()
	n := &topology{hosts: slices.Clone(t.hosts), byName: maps.Clone(t.byName), where: maps.Clone(t.where)}
	f(n)
	c.topo.Store(n)
}

func (t *topology) addHost(h *host) {
	t.byName[h.name] = h
	t.hosts = append(t.hosts, h)
	slices.SortStableFunc(t.hosts, func(a, b *host) int { // the external group last
		return boolInt(a.external()) - boolInt(b.external())
	})
}

func (t *topology) dropHost(h *host) {
	delete(t.byName, h.name)
	t.hosts = slices.DeleteFunc(t.hosts, func(o *host) bool { return o == h })
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// hosts returns the hosts of this instant.
func (c *Controller) hosts() []*host { return c.topo.Load().hosts }

// host returns a host by name, or nil.
func (c *Controller) host(n model.HostName) *host { return c.topo.Load().byName[n] }

// hostOf returns the host that a proxy belongs to, or nil.
func (c *Controller) hostOf(p model.ProxyName) *host { return c.topo.Load().where[p] }

// declare puts what is declared, and is not there yet, under its host: by the
// configuration first, then by the store.
func (c *Controller) declare() {
	d := c.declared.Load()
	c.lay(func(t *topology) {
		for _, p := range d.Proxies {
			c.addProxy(t, p, nil)
		}
		for _, m := range d.Managed {
			c.addSingle(t, m)
		}
		c.restoreMembers(t)
		for _, a := range c.consoleAdopted() {
			c.addProxy(t, adoptedSpec(a), nil)
		}
	})
}

// addSingle puts a managed proxy of no pool under its host. If its VM stands on
// another one, by the store, it is put there first, to have that removed: there are
// never two.
func (c *Controller) addSingle(t *topology, m model.ManagedSpec) {
	fresh := managed{drain: singleDrain}
	r, ok := c.remembered(m.Name)
	if ok && r.Backing == model.BackingManaged && r.UID != "" && r.Host != m.Host && t.byName[r.Host] != nil {
		m.Host, fresh.retired = r.Host, true
		fresh.drainEnd = time.Now().Add(fresh.drain)
	}
	c.addManaged(t, m.ProxySpec, m.Template, fresh)
}

// addManaged puts a managed proxy under its host; m is what is particular to it.
func (c *Controller) addManaged(t *topology, p model.ProxySpec, template string, m managed) {
	m.spec = c.declared.Load().buildSpec(template, p.Name, p.Port)
	p.Backing = model.BackingManaged
	c.addProxy(t, p, &m)
}

// restoreMembers puts back the members of pools that the store remembers, on the
// hosts where they were. What the pool does not want any more is the planner's
// to remove.
func (c *Controller) restoreMembers(t *topology) {
	d := c.declared.Load()
	for _, r := range c.memories() {
		spec, ok := d.pool(r.Pool)
		n, fits := spec.Ordinal(r.Name)
		if r.Backing == model.BackingManaged && ok && fits {
			c.addManaged(t, poolProxy(spec, n, r.Host), spec.Template, managed{pool: spec.Name, ordinal: n, drain: spec.DrainTime})
		}
	}
}

// forgetGone takes away the proxies of which nothing is wanted and nothing is
// left.
func (c *Controller) forgetGone() {
	var gone []*proxy
	wishes := map[model.ProxyName]wishes{}
	for _, h := range c.hosts() {
		h.each(func(p *proxy) {
			if p.m != nil && p.m.retired && p.m.done.gone && p.m.busy == jobNone {
				gone = append(gone, p)
				wishes[p.spec.Name] = wishesOf(p)
			}
		})
	}
	if len(gone) == 0 {
		return
	}
	c.drop(gone)
	c.declare() // perhaps elsewhere
	for _, p := range gone {
		if h := c.hostOf(p.spec.Name); h != nil {
			h.wish(p.spec.Name, wishes[p.spec.Name])
		}
	}
}

// wishes is what operators want of a proxy, wherever it is declared.
type wishes struct {
	drained bool
	wish    wish
}

// wishesOf returns what is wanted of a managed proxy. The lock is held.
func wishesOf(p *proxy) wishes { return wishes{p.drained, p.m.wish} }

// wish takes over what operators wanted of a proxy on another host.
func (h *host) wish(n model.ProxyName, w wishes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.byName[n]
	if p == nil {
		return
	}
	p.drained = w.drained
	if p.m != nil {
		p.m.wish = w.wish
	}
	h.refresh(p, time.Now())
}

// shelve takes away the proxies of a host that is not declared any more. Their
// VMs are there still, so their records stay: they go on from them if the host
// comes back.
func (c *Controller) shelve(h *host) {
	var ps []*proxy
	var void []*order
	h.each(func(p *proxy) {
		ps = append(ps, p)
		if p.m != nil { // what comes of an order is told now, and must not come true later
			if o := h.void(p); o != nil {
				void = append(void, o)
			}
		}
	})
	_ = c.persist(time.Now()) // it is logged, and tried again
	h.each(func(p *proxy) {
		r := h.record(p)
		r.InRotation = false // that place is lost
		c.remember(r)
	})
	for _, o := range void {
		c.ops.close(o.op, model.OpCanceled, "overtaken: its host is not declared any more")
	}
	c.takeAway(ps)
}

// drop forgets proxies: their place in the rotation, their counters, their
// records.
func (c *Controller) drop(ps []*proxy) {
	c.takeAway(ps)
	c.saveMu.Lock()
	defer c.saveMu.Unlock()
	for _, p := range ps {
		c.dropped[p.spec.Name] = true
	}
}

// takeAway takes proxies off their hosts.
func (c *Controller) takeAway(ps []*proxy) {
	if len(ps) == 0 {
		return
	}
	c.lay(func(t *topology) {
		for _, p := range ps {
			if h := t.where[p.spec.Name]; h != nil {
				h.remove(p)
				delete(t.where, p.spec.Name)
			}
		}
	})
}

// remove takes a proxy off its host.
func (h *host) remove(p *proxy) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.proxies = slices.DeleteFunc(slices.Clone(h.proxies), func(o *proxy) bool { return o == p })
	delete(h.byName, p.spec.Name)
	h.c.claims.take(p.spec.Name, netip.Addr{}, 0)
	h.c.health.ForgetProxy(p.spec.Name)
	if p.m != nil && p.m.done.gone && p.m.wish == wishGone {
		h.fulfil(p, "removed")
	} else if p.m != nil && p.m.order != nil {
		h.c.ops.close(p.m.order.op, model.OpCanceled, p.m.overtaken())
	}
	for _, id := range p.waiting {
		h.c.ops.end(id, nil, "it is no proxy any more")
	}
	p.waiting = nil
	h.dirty = true
	h.c.touch()
}
