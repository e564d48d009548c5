package controller

import (
	"maps"
	"slices"

	"virdeck/model"
)

// topology is which hosts there are, and which proxy belongs to which. It is
// immutable once it is published, so it is read without a lock.
type topology struct {
	hosts  []*host // in declaration order, the external group last
	byName map[model.HostName]*host
	where  map[model.ProxyName]*host
}

// lay changes the topology: f gets a copy of its own. Only the goroutine that
// manages the fleet, and New before it runs, may call it.
func (c *Controller) lay(f func(*topology)) {
	t := c.topo.Load()
	n := &topology{hosts: slices.Clone(t.hosts), byName: maps.Clone(t.byName), where: maps.Clone(t.where)}
	f(n)
	c.topo.Store(n)
}

func (t *topology) addHost(h *host) {
	t.byName[h.spec.Name] = h
	t.hosts = append(t.hosts, h)
	slices.SortStableFunc(t.hosts, func(a, b *host) int { // the external group last
		return boolInt(a.prov == nil) - boolInt(b.prov == nil)
	})
}

func (t *topology) dropHost(h *host) {
	delete(t.byName, h.spec.Name)
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
