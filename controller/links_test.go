package controller

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

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
		f, d := newPair(t)
		one := f.sims["one"]
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
		f.submit(model.Command{Verb: model.VerbReconcile, Host: "one", Proxy: "p-01"})
		f.within(5*time.Second, "transient", func() bool { return f.state("p-01") == model.StateTransient })
		f.during(30*time.Second, "the neighbour is ready, the link the same, both in", func() bool {
			return f.ready("p-02") && f.Snapshot().Host("one").Link.Generation == 1 && f.allIn()
		})
	})
}

// A lost event costs at most one resync.
func TestFleet_lostEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, d := newPair(t)
		one := f.sims["one"]
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
		f, _ := newPair(t)
		one := f.sims["one"]
		one.Inject(simhost.Fault{Proc: simhost.ProcConnectGetCapabilities, Kind: simhost.FaultDelay, Delay: 4 * time.Second})
		one.Kill()
		f.within(time.Second, "transient", func() bool { return f.state("p-01") == model.StateTransient })
		if err := one.Start(); err != nil {
			t.Fatal(err)
		}
		f.within(time.Second, "ready again", func() bool { return f.ready("p-01", "p-02") })
	})
}
