package scenario

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"virdeck/provider/libvirt/simhost"
)

// A Proxy is one that is to be declared: a domain on a host with a port and,
// where its proxy asks for them, credentials.
type Proxy struct {
	Name     string
	Host     string
	Domain   string
	Port     int
	User     string
	Password string
}

// A Stage is a scenario's hosts and guests, alive. Close ends it.
type Stage struct {
	scenario *Scenario
	origin   *simhost.Origin
	hosts    []*simhost.Host
	byName   map[string]*simhost.Host
	specs    map[string]guest // by id

	mu      sync.Mutex
	domains map[string]*simhost.Domain // by id, whatever they are called by now
	removes map[string][]func()        // of call faults, by the host or guest they are about
}

// Build makes what the scenario declares. A guest that is booting begins to.
func (s *Scenario) Build() *Stage {
	st := &Stage{
		scenario: s, origin: simhost.NewOrigin(""), byName: map[string]*simhost.Host{}, specs: map[string]guest{},
		domains: map[string]*simhost.Domain{}, removes: map[string][]func(){},
	}
	for _, h := range s.hosts {
		var nets []simhost.NetworkSpec
		for _, n := range s.networks {
			if n.Host == h.Name {
				nets = append(nets, simhost.NetworkSpec{Name: n.Name, Bridge: n.Bridge, Gateway: n.Gateway[0], NoDHCP: n.NoDHCP, LeaseTime: n.LeaseTime})
			}
		}
		made, pool := s.made(h.Name)
		sim := simhost.New(simhost.Options{
			Name: h.Name, Seed: s.seed, Networks: nets, Origin: st.origin,
			MaxRequests: h.MaxRequests, Workers: h.Workers, ReadOnly: h.ReadOnly,
			OnDefine: func(d *simhost.DomainSpec) { d.Proxy = made },
		})
		if pool {
			sim.AddVolume("default", simhost.VolumeSpec{Name: BaseVolume, Format: "qcow2", Capacity: 1 << 30})
		}
		st.hosts = append(st.hosts, sim)
		st.byName[h.Name] = sim
	}
	for _, g := range s.guests {
		st.specs[g.id()] = g
		if g.State != "absent" {
			st.add(g)
		}
	}
	return st
}

// add puts a guest on its host.
func (st *Stage) add(g guest) {
	d := st.byName[g.Host].AddDomain(g.spec())
	st.mu.Lock()
	st.domains[g.id()] = d
	st.mu.Unlock()
	if g.State == "booting" {
		_ = d.Start() // it is new, and off
	}
}

// Hosts returns the names of the hosts in order.
func (st *Stage) Hosts() []string { return st.scenario.hostNames() }

// Host returns a host, or nil.
func (st *Stage) Host(name string) *simhost.Host { return st.byName[name] }

// Domain returns a guest by "host/name" as it was declared, whatever it is
// called by now; nil when it is absent.
func (st *Stage) Domain(id string) *simhost.Domain {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.domains[id]
}

// Proxies returns what is to be declared, in order.
func (st *Stage) Proxies() []Proxy {
	var out []Proxy
	seen := map[string]bool{}
	for _, g := range st.scenario.guests {
		if g.Undeclared {
			continue
		}
		p := Proxy{Name: g.Name, Host: g.Host, Domain: g.Name, Port: g.Port, User: g.User, Password: g.Password}
		if seen[p.Name] { // names of proxies are unique in a fleet, those of domains on a host
			p.Name = g.Host + "-" + g.Name
		}
		seen[p.Name] = true
		out = append(out, p)
	}
	return out
}

// Dial opens an in-memory connection to a host's daemon (see simhost.Host.Dial).
func (st *Stage) Dial(ctx context.Context, host string) (net.Conn, error) {
	h := st.byName[host]
	if h == nil {
		return nil, fmt.Errorf("no simulated host %q", host)
	}
	return h.Dial(ctx)
}

// DialProxy opens an in-memory connection to the proxy at an address of any of
// the hosts' guests (see simhost.Host.DialProxy).
func (st *Stage) DialProxy(ctx context.Context, network, address string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("simulated hosts: dial %s: %w", address, err)
	}
	for _, h := range st.hosts {
		if h.HasAddress(at.Addr()) {
			return h.DialProxy(ctx, network, address)
		}
	}
	return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.EHOSTUNREACH}
}

// Origin returns the web server that the proxies reach.
func (st *Stage) Origin() *simhost.Origin { return st.origin }

// Close ends the hosts and the origin, and waits for them.
func (st *Stage) Close() error {
	var errs []error
	for _, h := range st.hosts {
		errs = append(errs, h.Close())
	}
	return errors.Join(append(errs, st.origin.Close())...)
}

func (st *Stage) onHosts(s *step, f func(*simhost.Host, *step) error) error {
	var errs []error
	for _, name := range s.hosts {
		errs = append(errs, f(st.byName[name], s))
	}
	return errors.Join(errs...)
}

// onGuests does something to each guest of a step; one that is absent misses it.
func (st *Stage) onGuests(s *step, f func(*simhost.Domain, *step) error) error {
	var errs []error
	for _, id := range s.guests {
		if d := st.Domain(id); d != nil {
			errs = append(errs, f(d, s))
		}
	}
	return errors.Join(errs...)
}

// inject installs a fault on the hosts of a step, or on its guests' calls.
func (st *Stage) inject(s *step, f simhost.Fault) (end func() error) {
	var removes []func()
	install := func(whom string, h *simhost.Host, f simhost.Fault) {
		remove := h.Inject(f)
		removes = append(removes, remove)
		st.mu.Lock()
		st.removes[whom] = append(st.removes[whom], remove)
		st.mu.Unlock()
	}
	for _, name := range s.hosts {
		install(name, st.byName[name], f)
	}
	for _, id := range s.guests {
		if d := st.Domain(id); d != nil {
			f.Domain = d.Name()
			install(id, d.Host(), f)
		}
	}
	return func() error {
		for _, remove := range removes {
			remove()
		}
		return nil
	}
}

// callsOK removes all faults of calls that steps have installed.
func (st *Stage) callsOK(s *step) {
	for _, whom := range slices.Concat(s.hosts, s.guests) {
		st.mu.Lock()
		removes := st.removes[whom]
		delete(st.removes, whom)
		st.mu.Unlock()
		for _, remove := range removes {
			remove()
		}
	}
}

// define puts guests back that are absent, as they were declared. One that is
// there already is as the step wants it, unless it, or another, stands in the way
// by its name.
func (st *Stage) define(ids []string) error {
	var errs []error
	for _, id := range ids {
		g := st.specs[id]
		if d := st.Domain(id); d != nil && !d.Gone() {
			if name := d.Name(); name != g.Name {
				errs = append(errs, fmt.Errorf("define: %s is there, by the name %q", id, name))
			}
			continue
		}
		if st.byName[g.Host].Domain(g.Name) != nil {
			errs = append(errs, fmt.Errorf("define: host %s has another %q", g.Host, g.Name))
			continue
		}
		if g.State == "absent" {
			g.State = "off"
		}
		st.add(g)
	}
	return errors.Join(errs...)
}

// setAddress gives each guest another address; its end gives back what it had.
func (st *Stage) setAddress(s *step) (func() error, error) {
	before := map[*simhost.Domain][]netip.Prefix{}
	err := st.onGuests(s, func(d *simhost.Domain, s *step) error {
		before[d] = d.Prefixes()
		d.SetAddress(s.Address...)
		return nil
	})
	return func() error {
		for d, had := range before {
			d.SetAddress(had...)
		}
		return nil
	}, err
}

// setProxy changes of each guest's proxy what the step gives, and keeps the rest
// as it was declared; its end gives all of that back.
func (st *Stage) setProxy(s *step) (func() error, error) {
	sound := func(id string) simhost.Proxy { return st.specs[id].proxy() }
	for _, id := range s.guests {
		d := st.Domain(id)
		if d == nil {
			continue
		}
		p := sound(id)
		p.Mode = proxyModes[s.Mode]
		p.Banner = s.Banner
		if s.given["user"] {
			p.User = s.User
		}
		if s.given["password"] {
			p.Password = s.Password
		}
		if s.given["delay"] {
			p.Delay = s.Delay
		}
		if s.given["jitter"] {
			p.Jitter = s.Jitter
		}
		d.SetProxy(p)
	}
	return func() error {
		for _, id := range s.guests {
			if d := st.Domain(id); d != nil {
				d.SetProxy(sound(id))
			}
		}
		return nil
	}, nil
}
