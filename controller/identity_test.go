package controller

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt"
	"virdeck/provider/libvirt/simhost"
)

// twin makes the URI of the first host lead to another machine once swap is
// closed.
func (f *fleet) twin() (other *simhost.Host, swap chan struct{}) {
	first := f.specs[0].Name
	other, swap = simhost.New(simhost.Options{Name: "imposter", Origin: f.origin}), make(chan struct{})
	inner := f.sims[string(first)].Dial
	f.sims["imposter"] = other
	f.specs[0].Open = opens(libvirt.Options{AgentTimeout: f.agent, Link: libvirt.LinkOptions{
		Host: first, Dial: func(ctx context.Context) (net.Conn, error) {
			select {
			case <-swap:
				return other.Dial(ctx)
			default:
				return inner(ctx)
			}
		},
	}})
	return other, swap
}

// Another machine under the same URI says nothing about our proxies, even if it
// has domains of the same names, and not even while it has not said yet that it
// is another one, or never does.
func TestFleet_anotherMachine(t *testing.T) {
	for name, fault := range map[string]*simhost.Fault{
		"says so at once": nil,
		"says so late":    {Kind: simhost.FaultDelay, Delay: 7 * time.Second},
		"never says so":   {Kind: simhost.FaultError, Error: simhost.Error{Code: 1, Message: "no"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				one := f.host("one")
				other, swap := f.twin()
				for i, n := range []string{"p-01", "p-02", "p-03"} {
					f.bridged("one", n, netip.AddrFrom4([4]byte{10, 0, 0, byte(21 + i)}).String())
				}
				// The other machine: one is off, one runs elsewhere, one is not there.
				other.AddDomain(simhost.DomainSpec{Name: "p-01", UUID: one.Domain("p-01").UUID()})
				other.AddDomain(simhost.DomainSpec{Name: "p-02", UUID: one.Domain("p-02").UUID(), Running: true, NICs: bridge("10.0.0.99")})
				f.start()
				f.within(10*time.Second, "ready", func() bool { return f.ready("p-01", "p-02", "p-03") })
				time.Sleep(20 * time.Second)
				if fault != nil {
					fault.Proc = simhost.ProcConnectGetCapabilities
					other.Inject(*fault)
				}
				close(swap)
				one.Kill()
				f.during(2*time.Minute, "nothing is concluded", func() bool {
					return f.allIn() && f.proxy("p-02").IP == netip.MustParseAddr("10.0.0.22") && !f.proxy("p-02").Candidate.IsValid()
				})
				if s := f.state("p-01"); s != model.StateTransient {
					t.Errorf("p-01 is %v, want transient: %s", s, f.proxy("p-01").Reason)
				}
				misconfig := f.Snapshot().Host("one").Misconfig
				if known := strings.HasPrefix(misconfig, "this is another machine: "); known != (name != "never says so") {
					t.Errorf("misconfigured: %q", misconfig)
				}
			})
		})
	}
}

// An agent names the address of another proxy: probes through it would prove the
// other one. The present address stays, and the conflict is shown.
func TestFleet_candidateIsAnothersAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, d := newPair(t)
		d.SetAgentInterfaces([]simhost.Interface{{Name: "eth0", MAC: d.MAC(), Addrs: []netip.Prefix{netip.MustParsePrefix("10.0.0.22/24")}}})
		f.during(3*time.Minute, "both in", f.allIn)
		if p := f.proxy("p-01"); p.IP != netip.MustParseAddr("10.0.0.21") || !slices.Contains(p.Marks, model.MarkConflict) {
			t.Errorf("address %v, marks %q; want its own, and the conflict marked", p.IP, p.Marks)
		}
	})
}

// Two guests swap their addresses: nobody leaves.
func TestFleet_swappedAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("one")
		a, b := f.bridged("one", "p-01", "10.0.0.21"), f.bridged("one", "p-02", "10.0.0.22")
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p-01", "p-02") })
		a.SetAddress(netip.MustParsePrefix("10.0.0.22/24"))
		b.SetAddress(netip.MustParsePrefix("10.0.0.21/24"))
		f.during(3*time.Minute, "both in", f.allIn)
	})
}

// Two agents hang for good, and libvirt waits for them for ever: a third guest
// that is started anew comes back all the same.
func TestFleet_hungAgentsDoNotStarveARestartedNeighbour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.agent = 0
		f.host("one")
		a, b := f.bridged("one", "p-01", "10.0.0.21"), f.bridged("one", "p-02", "10.0.0.22")
		c := f.bridged("one", "p-03", "10.0.0.23")
		f.start()
		f.within(10*time.Second, "ready", func() bool { return f.ready("p-01", "p-02", "p-03") })
		a.AgentHang()
		b.AgentHang()
		f.during(3*time.Minute, "all in", f.allIn)
		if err := c.Destroy(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		f.within(45*time.Second, "back", func() bool { return f.ready("p-03") })
		f.during(10*time.Minute, "all in", f.allIn)
		if g := f.Snapshot().Host("one").Link.Generation; g > 12 {
			t.Errorf("generation %d: the link is replaced over and over for two hung agents", g)
		}
	})
}

// A host whose new pin could not be remembered keeps the old one.
func TestRepin_notSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		_, swap := f.twin()
		f.decl.Hosts = f.specs
		f.attic()
		broken := f.mortal()
		f.begin(1)
		close(swap)
		f.sims["a"].Kill()
		another := func() bool { return f.Snapshot().Host("a").Misconfig != "" }
		f.within(time.Minute, "another machine answers", another)
		broken.dead.Store(true)
		if op := f.do(model.Command{Verb: model.VerbRepin, Host: "a"}); op.State != model.OpFailed {
			t.Errorf("%+v", op)
		}
		broken.dead.Store(false)
		f.during(time.Minute, "it is not taken for a", another)
		f.done(model.Command{Verb: model.VerbRepin, Host: "a"})
		f.within(time.Minute, "it is taken for a", func() bool { return !another() })
	})
}
