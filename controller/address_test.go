package controller

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// A restarted VM has no proof: out at once, and back when it is proven.
func TestFleet_newIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, d := newPair(t)
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
		f, d := newPair(t)
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
		f, d := newPair(t)
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
		f, d := newPair(t)
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
		twin := f.sims["two"].AddDomain(simhost.DomainSpec{Name: "p-02", NICs: bridge("10.0.0.21")})
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
