package controller

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/health"
	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// The incident: the agent of a ready, bridged proxy is away for 8 s. It stays in
// rotation all the time, its address is held and afterwards confirmed.
func TestFleet_agentRestartOnABridgedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, d := newPair(t)
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
		f, d := newPair(t)
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

// A guest that boots with a late agent is provisioning: not transient, not failed.
func TestFleet_lateAgentIsProvisioning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		f.host("one")
		d := f.guest("one", simhost.DomainSpec{Name: "p-01", Boot: simhost.Boot{Agent: 20 * time.Second}, NICs: bridge("10.0.0.21")})
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
