package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/health"
	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt"
	"virdeck/provider/libvirt/simhost"
)

// fleet is simulated hosts under the real controller, provider and health
// engine: all in memory, all in virtual time.
type fleet struct {
	t        *testing.T
	sims     map[string]*simhost.Host
	origin   *simhost.Origin
	specs    []HostSpec
	decl     []model.ProxySpec
	onDefine func(*simhost.DomainSpec) // what guests that virdeck makes are like
	agent    time.Duration             // response timeout given to libvirt
	set      Settings
	cfg      health.Config

	*Controller
	health *health.Engine
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, sims: map[string]*simhost.Host{}, origin: simhost.NewOrigin(""), agent: 2 * time.Second, set: Defaults(), cfg: health.Defaults()}
	u, err := health.ParseTarget(f.origin.URL() + "ip")
	if err != nil {
		u, err = health.ParseTarget(f.origin.URL() + "/ip")
	}
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/ip"
	f.cfg.Targets = []health.Target{{URL: u, EchoIP: true}}
	return f
}

// host adds a host.
func (f *fleet) host(name string) *simhost.Host {
	h := simhost.New(simhost.Options{Name: name, Origin: f.origin, OnDefine: func(s *simhost.DomainSpec) {
		if f.onDefine != nil {
			f.onDefine(s)
		}
	}})
	f.sims[name] = h
	agent := f.agent
	f.specs = append(f.specs, HostSpec{
		Name: model.HostName(name), URI: "simulated", Sources: model.Sources(),
		Open: func(onEvent func(provider.Event), onLink func(model.LinkStatus)) provider.Host {
			return libvirt.New(libvirt.Options{
				Link:         libvirt.LinkOptions{Host: model.HostName(name), Dial: h.Dial, Endpoint: "simulated", OnChange: onLink},
				AgentTimeout: agent, OnEvent: onEvent,
			})
		},
	})
	return h
}

// bridged adds a running guest that only its agent can name, and declares it.
func (f *fleet) bridged(host, name, addr string) *simhost.Domain {
	return f.guest(host, simhost.DomainSpec{Name: name, Running: true,
		NICs: []simhost.NIC{{Bridge: "br0", Addresses: []netip.Prefix{netip.MustParsePrefix(addr + "/24")}}}})
}

func (f *fleet) guest(host string, spec simhost.DomainSpec) *simhost.Domain {
	d := f.sims[host].AddDomain(spec)
	f.declare(host, spec.Name)
	return d
}

func (f *fleet) declare(host, name string) {
	f.decl = append(f.decl, model.ProxySpec{Name: model.ProxyName(name), Host: model.HostName(host), Domain: name, Port: 3128, Pool: "default"})
}

// start runs the controller, and ends everything with the test.
func (f *fleet) start() {
	f.t.Helper()
	f.Controller = New(f.set, Deps{
		Declared: Declared{Hosts: f.specs, Proxies: f.decl}, Log: slog.New(slog.DiscardHandler), Rand: func() float64 { return 0.5 },
		Health: func(dirty func(health.Key)) Health {
			f.health = health.New(f.cfg, health.Deps{Dial: f.dialProxy, Control: f.origin.Dial, Dirty: dirty, Rand: func() float64 { return 0.5 }})
			return f.health
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		f.Run(ctx)
		close(done)
	}()
	f.t.Cleanup(func() {
		cancel()
		<-done
		f.health.Close()
		for _, s := range f.sims {
			if err := s.Close(); err != nil {
				f.t.Error(err)
			}
		}
		if err := f.origin.Close(); err != nil {
			f.t.Error(err)
		}
	})
}

// dialProxy finds the host behind which an address is.
func (f *fleet) dialProxy(ctx context.Context, network, address string) (net.Conn, error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	var way *simhost.Host
	for _, h := range f.sims {
		if way == nil {
			way = h // where nobody has the address, any host says so
		}
		for _, d := range h.Domains() {
			if d.ID() > 0 && slices.Contains(d.Addresses(), ap.Addr()) {
				way = h
			}
		}
	}
	return way.DialProxy(ctx, network, address)
}

func (f *fleet) proxy(name string) *model.ProxyView {
	p, _ := f.Snapshot().Proxy(model.ProxyName(name))
	if p == nil {
		f.t.Fatalf("no proxy %s", name)
	}
	return p
}

func (f *fleet) state(name string) model.State { return f.proxy(name).State }

// within waits at most d for ok and returns how long that took.
func (f *fleet) within(d time.Duration, what string, ok func() bool) time.Duration {
	f.t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > d {
			f.t.Fatalf("not within %s: %s\n%s", d, what, f.dump())
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(start)
}

// during watches for d that ok holds all the time.
func (f *fleet) during(d time.Duration, what string, ok func() bool) {
	f.t.Helper()
	for start := time.Now(); time.Since(start) < d; time.Sleep(50 * time.Millisecond) {
		if !ok() {
			f.t.Fatalf("after %s no longer true: %s\n%s", time.Since(start), what, f.dump())
		}
	}
}

func (f *fleet) allIn() bool {
	for _, h := range f.Snapshot().Hosts {
		for _, p := range h.Proxies {
			if !p.Health.InRotation {
				return false
			}
		}
	}
	return true
}

func (f *fleet) dump() string {
	var b strings.Builder
	for _, h := range f.Snapshot().Hosts {
		fmt.Fprintf(&b, "%s: link %v gen %d %s\n", h.Name, h.Link.State, h.Link.Generation, h.Link.LastError)
		for _, p := range h.Proxies {
			fmt.Fprintf(&b, "  %s %v %q in=%v ip=%v: %s\n", p.Spec.Name, p.State, p.Marks, p.Health.InRotation, p.IP, p.Reason)
			for _, e := range p.Events {
				fmt.Fprintf(&b, "    %s %s>%s %s %q\n", e.At.Format("05.000"), e.From, e.To, e.What, e.Evidence)
			}
		}
	}
	return b.String()
}

func (f *fleet) ready(names ...string) bool {
	for _, n := range names {
		if f.state(n) != model.StateReady {
			return false
		}
	}
	return true
}

func (f *fleet) condition(name string, t model.ConditionType) model.Condition {
	c, _ := model.GetCondition(f.proxy(name).Conditions, t)
	return c
}

// The incident: the agent of a ready, bridged proxy is away for 8 s. It stays in
// rotation all the time, its address is held and afterwards confirmed.
func TestFleet_agentRestartOnABridgedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("beelink")
		d := f.bridged("beelink", "p-01", "10.0.0.21")
		f.bridged("beelink", "p-02", "10.0.0.22")
		f.start()
		f.within(10*time.Second, "both ready", func() bool { return f.ready("p-01", "p-02") })
		d.AgentRestart(8 * time.Second)
		held := false
		f.during(8*time.Second, "in rotation with its address", func() bool {
			p := f.proxy("p-01")
			held = held || slices.Contains(p.Marks, model.MarkHeld) && f.condition("p-01", model.CondProvisioned).Reason == "AddressHeld"
			return p.Health.InRotation && p.IP == netip.MustParseAddr("10.0.0.21") && p.State == model.StateReady
		})
		if !held {
			t.Error("the address was never shown as held")
		}
		f.within(5*time.Second, "confirmed", func() bool { return f.condition("p-01", model.CondProvisioned).Reason == "AddressConfirmed" })
		if !f.allIn() {
			t.Error(f.dump())
		}
	})
}

// An agent that never comes back holds the address for as long as the proxy
// serves, and no longer.
func TestFleet_heldForAsLongAsItServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("beelink")
		d := f.bridged("beelink", "p-01", "10.0.0.21")
		f.bridged("beelink", "p-02", "10.0.0.22")
		f.start()
		f.within(10*time.Second, "both ready", func() bool { return f.ready("p-01", "p-02") })
		d.AgentStop()
		f.during(3*time.Minute, "in rotation", f.allIn)
		d.SetProxy(simhost.Proxy{Mode: simhost.ProxyOff})
		f.within(8*time.Second, "out", func() bool { return !f.proxy("p-01").Health.InRotation })
		f.within(20*time.Second, "the address given up", func() bool { return !f.proxy("p-01").IP.IsValid() && f.state("p-01") == model.StateProvisioning })
		if _, tracked := f.health.Health(health.Key{Proxy: "p-01", Address: netip.MustParseAddr("10.0.0.21")}); tracked {
			t.Error("the health engine still counts for an address that is gone")
		}
	})
}

// Two agents hang for a minute while a third one restarts.
func TestFleet_hungAgentsHarmNoNeighbour(t *testing.T) {
	for _, timeout := range []time.Duration{2 * time.Second, 0} {
		t.Run(fmt.Sprintf("agent timeout %s", timeout), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				f.agent = timeout
				f.host("beelink")
				a, b := f.bridged("beelink", "p-01", "10.0.0.21"), f.bridged("beelink", "p-02", "10.0.0.22")
				c := f.bridged("beelink", "p-03", "10.0.0.23")
				f.start()
				f.within(10*time.Second, "all ready", func() bool { return f.ready("p-01", "p-02", "p-03") })
				a.AgentHang()
				b.AgentHang()
				f.during(20*time.Second, "all in", f.allIn)
				c.AgentRestart(6 * time.Second)
				f.during(40*time.Second, "all in", f.allIn)
				a.AgentThaw()
				b.AgentThaw()
				f.within(70*time.Second, "all ready again", func() bool { return f.ready("p-01", "p-02", "p-03") })
				if g := f.Snapshot().Host("beelink").Link.Generation; g != 1 {
					t.Errorf("generation %d, want 1: no guest's agent may cost the link", g)
				}
			})
		})
	}
}

// A daemon killed or frozen for 10 s: its proxies turn transient within 6 s, keep
// address and rotation, and are ready within 5 s of its return. The other host
// has nothing to tell.
func TestFleet_deadDaemon(t *testing.T) {
	for name, how := range map[string]struct {
		away func(*simhost.Host)
		back func(*simhost.Host) error
	}{
		"killed": {(*simhost.Host).Kill, (*simhost.Host).Start},
		"frozen": {(*simhost.Host).Freeze, func(h *simhost.Host) error { h.Thaw(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				one := f.host("one")
				f.host("two")
				names := []string{"p-01", "p-02", "p-03"}
				for i, n := range names {
					f.bridged("one", n, fmt.Sprintf("10.0.0.%d", 21+i))
				}
				f.guest("two", simhost.DomainSpec{Name: "q-01", Running: true})
				f.start()
				f.within(10*time.Second, "all ready", func() bool { return f.ready(append(names, "q-01")...) })
				time.Sleep(20 * time.Second)
				before := len(f.proxy("q-01").Events) + len(f.Snapshot().Host("two").Events)
				how.away(one)
				transient := func() bool {
					return !slices.ContainsFunc(names, func(n string) bool { return f.state(n) != model.StateTransient })
				}
				took := f.within(6*time.Second, "all three transient", transient)
				t.Logf("transient after %s", took)
				f.during(10*time.Second-took, "transient, in, and with the address", func() bool { return transient() && f.allIn() && f.proxy("p-02").IP.IsValid() })
				if err := how.back(one); err != nil {
					t.Fatal(err)
				}
				took = f.within(5*time.Second, "ready again", func() bool { return f.ready(names...) })
				t.Logf("ready %s after its return", took)
				if after := len(f.proxy("q-01").Events) + len(f.Snapshot().Host("two").Events); after != before {
					t.Errorf("the other host told %d things\n%s", after-before, f.dump())
				}
			})
		})
	}
}

// Behind a dead link probing goes on: a proxy that dies there is out in time.
func TestFleet_aDeadProxyBehindADeadLinkGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		one := f.host("one")
		d := f.bridged("one", "p-01", "10.0.0.21")
		f.bridged("one", "p-02", "10.0.0.22")
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p-01", "p-02") })
		one.Kill()
		f.within(6*time.Second, "transient", func() bool { return f.state("p-01") == model.StateTransient })
		d.SetProxy(simhost.Proxy{Mode: simhost.ProxyHang})
		f.within(14*time.Second, "demoted", func() bool { return f.state("p-01") == model.StateDemoted })
		p := f.proxy("p-01")
		if !slices.Contains(p.Marks, model.MarkStale) || p.Health.InRotation {
			t.Errorf("marks %q, in %v; want stale and out", p.Marks, p.Health.InRotation)
		}
		if !f.proxy("p-02").Health.InRotation {
			t.Error("its neighbour left too")
		}
		d.SetProxy(simhost.Proxy{})
		f.within(9*time.Second, "back", func() bool { return f.proxy("p-01").Health.InRotation })
	})
}

// An overrun budget costs that reconcile alone.
func TestFleet_overrunBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.agent = 0 // libvirt waits for ever
		f.set.Budget = 2 * time.Second
		f.host("one")
		a := f.bridged("one", "p-01", "10.0.0.21")
		f.bridged("one", "p-02", "10.0.0.22")
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p-01", "p-02") })
		a.AgentHang()
		if _, err := f.Submit(model.Command{Verb: model.VerbReconcile, Host: "one", Proxy: "p-01", By: "test"}); err != nil {
			t.Fatal(err)
		}
		f.within(5*time.Second, "transient", func() bool { return f.state("p-01") == model.StateTransient })
		f.during(30*time.Second, "the neighbour is ready, the link the same, both in", func() bool {
			return f.ready("p-02") && f.Snapshot().Host("one").Link.Generation == 1 && f.allIn()
		})
	})
}

// A guest that boots with a late agent is provisioning: not transient, not failed.
func TestFleet_lateAgentIsProvisioning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("one")
		d := f.guest("one", simhost.DomainSpec{Name: "p-01", Boot: simhost.Boot{Agent: 20 * time.Second},
			NICs: []simhost.NIC{{Bridge: "br0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.21/24")}}}})
		f.start()
		f.within(5*time.Second, "looked at", func() bool { return f.proxy("p-01").Domain == model.DomainShutoff })
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		f.within(3*time.Second, "provisioning", func() bool { return f.state("p-01") == model.StateProvisioning })
		f.during(15*time.Second, "provisioning", func() bool { return f.state("p-01") == model.StateProvisioning })
		f.within(15*time.Second, "ready", func() bool { return f.ready("p-01") })
	})
}

// A restarted VM has no proof: out at once, and back when it is proven.
func TestFleet_newIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("one")
		d := f.bridged("one", "p-01", "10.0.0.21")
		f.bridged("one", "p-02", "10.0.0.22")
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p-01", "p-02") })
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		f.within(time.Second, "void", func() bool { return !f.proxy("p-01").Health.InRotation && !f.proxy("p-01").IP.IsValid() })
		f.within(15*time.Second, "ready again", func() bool { return f.ready("p-01") })
	})
}

func TestFleet_shutOffIsDemoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("one")
		d := f.bridged("one", "p-01", "10.0.0.21")
		f.bridged("one", "p-02", "10.0.0.22")
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p-01", "p-02") })
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		f.within(4*time.Second, "demoted", func() bool { return f.state("p-01") == model.StateDemoted })
		if r := f.proxy("p-01").Reason; r != "domain is shut off (destroyed)" {
			t.Errorf("reason %q", r)
		}
		time.Sleep(10 * time.Second)
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		f.within(2*time.Second, "provisioning", func() bool { return f.state("p-01") == model.StateProvisioning })
		f.within(15*time.Second, "ready again", func() bool { return f.ready("p-01") })
	})
}

// Another address: the old one serves until the new one is proven; and if the
// old one is gone, the new one takes over at once.
func TestFleet_addressChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("one")
		d := f.bridged("one", "p-01", "10.0.0.21")
		f.bridged("one", "p-02", "10.0.0.22")
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p-01", "p-02") })
		time.Sleep(2 * time.Second)
		d.SetAddress(netip.MustParsePrefix("10.0.0.77/24"))
		f.within(15*time.Second, "the new address, ready", func() bool {
			return f.proxy("p-01").IP == netip.MustParseAddr("10.0.0.77") && f.ready("p-01")
		})
	})
}

// Both addresses answer: make before break, without leaving for an instant.
func TestFleet_makeBeforeBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("one")
		d := f.bridged("one", "p-01", "10.0.0.21")
		f.bridged("one", "p-02", "10.0.0.22")
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p-01", "p-02") })
		d.SetAddress(netip.MustParsePrefix("10.0.0.21/24"), netip.MustParsePrefix("10.0.0.77/24"))
		d.SetAgentInterfaces([]simhost.Interface{{Name: "eth0", MAC: d.MAC(), Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.77/24")}}})
		f.during(80*time.Second, "in", f.allIn)
		if ip := f.proxy("p-01").IP; ip != netip.MustParseAddr("10.0.0.77") {
			t.Errorf("address %v, want the new one\n%s", ip, f.dump())
		}
	})
}

// Two proxies under one address: the incumbent stays, the claimant waits.
func TestFleet_addressConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("one")
		f.host("two")
		f.bridged("one", "p-01", "10.0.0.21")
		f.declare("two", "p-02")
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p-01") })
		twin := f.sims["two"].AddDomain(simhost.DomainSpec{Name: "p-02",
			NICs: []simhost.NIC{{Bridge: "br0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.21/24")}}}})
		if err := twin.Start(); err != nil {
			t.Fatal(err)
		}
		f.within(20*time.Second, "the claimant is marked", func() bool { return slices.Contains(f.proxy("p-02").Marks, model.MarkConflict) })
		f.during(time.Minute, "the incumbent is in, the claimant is not", func() bool {
			return f.ready("p-01") && !f.proxy("p-02").Health.InRotation
		})
		if r := f.proxy("p-02").Reason; r != "address 10.0.0.21 is held by p-01" {
			t.Errorf("reason %q", r)
		}
		// The incumbent goes; the claimant has its turn.
		gone := f.sims["one"].Domain("p-01")
		if err := gone.Destroy(); err != nil {
			t.Fatal(err)
		}
		f.within(40*time.Second, "the claimant is ready", func() bool { return f.ready("p-02") })
	})
}

// A lost event costs at most one resync.
func TestFleet_lostEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		one := f.host("one")
		d := f.bridged("one", "p-01", "10.0.0.21")
		f.bridged("one", "p-02", "10.0.0.22")
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p-01", "p-02") })
		one.DropEvents(true)
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		f.within(15*time.Second, "found off by the poll alone", func() bool { return f.proxy("p-01").Domain == model.DomainShutoff })
	})
}

// A daemon that takes long to tell its capabilities, as one does after a thaw:
// its proxies do not wait for that.
func TestFleet_slowCapabilities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		one := f.host("one")
		f.bridged("one", "p-01", "10.0.0.21")
		f.bridged("one", "p-02", "10.0.0.22")
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p-01", "p-02") })
		one.Inject(simhost.Fault{Proc: simhost.ProcConnectGetCapabilities, Kind: simhost.FaultDelay, Delay: 4 * time.Second})
		one.Kill()
		f.within(time.Second, "transient", func() bool { return f.state("p-01") == model.StateTransient })
		if err := one.Start(); err != nil {
			t.Fatal(err)
		}
		f.within(time.Second, "ready again", func() bool { return f.ready("p-01", "p-02") })
	})
}
