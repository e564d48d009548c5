package scenario

import (
	"slices"
	"time"

	"virdeck/provider/libvirt/simhost"
)

// BaseVolume is the image on which VMs of a pool are made, in the storage pool
// "default" of each of its hosts.
const BaseVolume = "base.qcow2"

// maxMembers is how many a pool of a scenario may have.
const maxMembers = 200

// A Pool is a number of proxies that are to be declared, and whose VMs are made on
// the hosts: NAME-1, NAME-2 and so on.
type Pool struct {
	Name    string
	Hosts   []string // where they may be
	Count   int
	Port    int
	Network string // of libvirt
}

// pool is a [[pool]] of a file.
type pool struct {
	Name    string        `toml:"name"`
	Hosts   words         `toml:"hosts"` // none: all
	Count   int           `toml:"count"`
	Port    int           `toml:"port"`
	Network string        `toml:"network"`
	Delay   time.Duration `toml:"delay"`
	Jitter  time.Duration `toml:"jitter"`
}

// pool reads one [[pool]].
func (d *document) pool(e entry, s *Scenario, names map[string]bool) {
	p := pool{Port: 3128, Network: simhost.DefaultNetwork().Name}
	d.fill(e, &p)
	d.named(e, p.Name, names, "pool/"+p.Name)
	if len(s.hosts) == 0 {
		d.problem(e.at, "there is no [[host]] for it")
		return
	}
	if len(p.Hosts) == 0 {
		p.Hosts = s.hostNames()
	}
	for _, h := range p.Hosts {
		switch {
		case !slices.Contains(s.hostNames(), h):
			d.problem(e.key("hosts"), "%s", unknown("host", h, s.hostNames()))
		case !s.hasNetwork(h, p.Network):
			d.problem(e.key("network"), "host %q has no network %q", h, p.Network)
		}
	}
	if p.Count < 1 || p.Count > maxMembers {
		d.problem(e.key("count"), "%d is out of range; allowed: 1 to %d", p.Count, maxMembers)
	}
	d.port(e, p.Port)
	d.latency(e, p.Delay, p.Jitter)
	s.pools = append(s.pools, p)
}

// made is what the guests are like that a host's daemon is told to define: those of
// the first pool that may be there. ok is false for a host without a pool.
func (s *Scenario) made(on string) (proxy simhost.Proxy, ok bool) {
	i := slices.IndexFunc(s.pools, func(p pool) bool { return slices.Contains(p.Hosts, on) })
	if i < 0 {
		return proxy, false
	}
	return simhost.Proxy{Delay: s.pools[i].Delay, Jitter: s.pools[i].Jitter}, true
}

// Pools returns the pools that are to be declared, in order.
func (st *Stage) Pools() []Pool {
	var out []Pool
	for _, p := range st.scenario.pools {
		out = append(out, Pool{Name: p.Name, Hosts: p.Hosts, Count: p.Count, Port: p.Port, Network: p.Network})
	}
	return out
}
