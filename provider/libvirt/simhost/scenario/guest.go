package scenario

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"time"

	"virdeck/provider/libvirt/simhost"
)

// guest is a [[guest]] of a file.
type guest struct {
	Host         string         `toml:"host"`
	Name         string         `toml:"name"`
	Count        int            `toml:"count"` // so many of them, NAME-1, NAME-2 ...
	State        string         `toml:"state"` // running, booting, off, absent
	Network      string         `toml:"network"`
	Bridge       string         `toml:"bridge"`
	HostOnBridge bool           `toml:"host_on_bridge"`
	MAC          string         `toml:"mac"`
	Address      []netip.Prefix `toml:"address"`
	NoAgent      bool           `toml:"no_agent_channel"`
	Port         int            `toml:"port"`
	User         string         `toml:"user"`
	Password     string         `toml:"password"`
	Delay        time.Duration  `toml:"delay"`
	Jitter       time.Duration  `toml:"jitter"`
	Lease        span           `toml:"boot_lease"`
	Agent        span           `toml:"boot_agent"`
	AgentAddress span           `toml:"boot_agent_address"`
	Proxy        span           `toml:"boot_proxy"`
	Shutdown     span           `toml:"shutdown"`
	Undeclared   bool           `toml:"undeclared"` // no proxy is declared for it
	Autostart    bool           `toml:"autostart"`  // starts with its host
}

func (g guest) id() string { return g.Host + "/" + g.Name }

func (s *Scenario) guestNames() []string {
	out := make([]string, len(s.guests))
	for i, g := range s.guests {
		out[i] = g.id()
	}
	return out
}

var guestStates = []string{"running", "booting", "off", "absent"}

// maxGuests is how many one [[guest]] may declare; libvirt lists no more.
const maxGuests = 16384

// guest reads one [[guest]], which may stand for many.
func (d *document) guest(e entry, s *Scenario, names map[string]bool) []guest {
	g := guest{State: "running", Port: 3128}
	d.fill(e, &g)
	d.onHost(e, g.Host, s)
	if !slices.Contains(guestStates, g.State) {
		d.problem(e.key("state"), "%s", unknown("state", g.State, guestStates))
	}
	d.port(e, g.Port)
	if g.Count > maxGuests {
		d.problem(e.key("count"), "%d is out of range; allowed: 1 to %d", g.Count, maxGuests)
		return nil
	}
	d.latency(e, g.Delay, g.Jitter)
	for _, p := range g.Address {
		if g.Count < 2 {
			break
		}
		if has := after(p) + 1; g.Count > has {
			d.problem(e.key("address"), "%s is followed by %d more of its network, and there are %d guests", p, has-1, g.Count)
			return nil
		}
	}
	if g.Network != "" && g.Bridge != "" {
		d.problem(e.key("bridge"), "a guest is on a network or on a bridge")
	}
	if g.Network != "" && !s.hasNetwork(g.Host, g.Network) {
		d.problem(e.key("network"), "host %q has no network %q", g.Host, g.Network)
	}
	if g.Count > 1 && g.MAC != "" {
		d.problem(e.key("mac"), "is of one guest, and there are %d", g.Count)
	}
	if g.Count == 0 {
		if !d.named(e, g.Name, names, g.id()) {
			return nil
		}
		return []guest{g}
	}
	out := make([]guest, 0, g.Count)
	next := g.Address // each has the addresses after those of the one before
	for i := range g.Count {
		one := g
		one.Name, one.Address = fmt.Sprintf("%s-%d", g.Name, i+1), next
		next = slices.Clone(next)
		for j, p := range next {
			next[j] = netip.PrefixFrom(p.Addr().Next(), p.Bits())
		}
		if !d.named(e, one.Name, names, one.id()) {
			return nil
		}
		out = append(out, one)
	}
	return out
}

func (d *document) port(e entry, v int) {
	if v < 1 || v > 65535 {
		d.problem(e.key("port"), "%d is out of range; allowed: 1 to 65535", v)
	}
}

func (d *document) latency(e entry, delay, jitter time.Duration) {
	for k, v := range map[string]time.Duration{"delay": delay, "jitter": jitter} {
		if v < 0 {
			d.problem(e.key(k), "%s is out of range; allowed: zero or more", v)
		}
	}
}

// spec is the guest as simhost has it.
func (g guest) spec() simhost.DomainSpec {
	sp := simhost.DomainSpec{
		Name: g.Name, NoAgentChannel: g.NoAgent, Port: g.Port, Proxy: g.proxy(), Running: g.State == "running",
		Boot: simhost.Boot{
			Lease: g.Lease.stage(), Agent: g.Agent.stage(), AgentAddress: g.AgentAddress.stage(), Proxy: g.Proxy.stage(),
		},
		ShutdownTakes: g.Shutdown.stage(), Autostart: g.Autostart,
	}
	if g.Network != "" || g.Bridge != "" || g.MAC != "" || len(g.Address) > 0 {
		sp.NICs = []simhost.NIC{{MAC: g.MAC, Network: g.Network, Bridge: g.Bridge, HostOnBridge: g.HostOnBridge, Addresses: g.Address}}
	}
	return sp
}

// proxy is the guest's proxy when nothing is wrong with it.
func (g guest) proxy() simhost.Proxy {
	return simhost.Proxy{User: g.User, Password: g.Password, Delay: g.Delay, Jitter: g.Jitter}
}

// find returns the guests that "host/name" or a pattern of such means.
func (s *Scenario) find(pattern string) []string {
	var out []string
	for _, id := range s.guestNames() {
		if ok, err := path.Match(pattern, id); err == nil && ok {
			out = append(out, id)
		}
	}
	return out
}
