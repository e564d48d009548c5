package controller

import (
	"slices"
	"time"

	"virdeck/model"
)

// Declared is the fleet as an operator wants it. It is immutable.
type Declared struct {
	Hosts     []HostSpec
	Proxies   []model.ProxySpec // adopted and external ones
	Managed   []model.ManagedSpec
	Pools     []model.PoolSpec
	Templates map[string]model.Template
	Budget    Budget
}

// Budget is how many replacements are allowed in a time: VMs made in place of
// others, restarts, and removals of orphans. What an operator asks for, or
// declares, is counted and never held.
type Budget struct {
	PerHost, PerPool int // 0: none at all
	Window           time.Duration
}

// singleDrain is how long a managed proxy outside of any pool drains.
const singleDrain = 30 * time.Second

// buildSpec returns what the VM of a managed proxy is to be. Credentials are the
// proxy's own, and come with its record.
func (d *Declared) buildSpec(template string, name model.ProxyName, port uint16) model.BuildSpec {
	return model.BuildSpec{Template: d.Templates[template], Hostname: string(name), Port: port}
}

// poolProxy returns the spec of a pool's member.
func poolProxy(p model.PoolSpec, ordinal int, host model.HostName) model.ProxySpec {
	return model.ProxySpec{
		Name: p.Member(ordinal), Host: host, Backing: model.BackingManaged, Port: p.Port, Probe: p.Probe, Pool: p.Name, Labels: p.Labels,
	}
}

// singles returns what is declared by itself, by name. Template is empty but for
// managed ones.
func (d *Declared) singles() map[model.ProxyName]model.ManagedSpec {
	out := make(map[model.ProxyName]model.ManagedSpec, len(d.Proxies)+len(d.Managed))
	for _, p := range d.Proxies {
		out[p.Name] = model.ManagedSpec{ProxySpec: p}
	}
	for _, m := range d.Managed {
		m.Backing = model.BackingManaged
		out[m.Name] = m
	}
	return out
}

// makes reports whether there is anything that virdeck makes.
func (d *Declared) makes() bool { return len(d.Managed)+len(d.Pools) > 0 }

// has reports whether a host is declared; the group of external proxies always is.
func (d *Declared) has(h *host) bool {
	return h.external() || slices.ContainsFunc(d.Hosts, func(hs HostSpec) bool { return hs.Name == h.name })
}

// member returns the pool that may have a member of a name.
func (d *Declared) member(n model.ProxyName) (model.PoolSpec, bool) {
	for _, p := range d.Pools {
		if i, ok := p.Ordinal(n); ok && i <= p.Count+p.Surge {
			return p, true
		}
	}
	return model.PoolSpec{}, false
}

// pool returns a declared pool by name.
func (d *Declared) pool(name string) (model.PoolSpec, bool) {
	for _, p := range d.Pools {
		if p.Name == name {
			return p, true
		}
	}
	return model.PoolSpec{}, false
}
