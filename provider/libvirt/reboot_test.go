package libvirt

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// A host that was booted counts its domains from 1 again: the run under the old
// number is another one, with other cards perhaps, and with libvirt's default
// patience for the agent.
func TestGet_hostReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		lan := func(mac string) []simhost.NIC {
			return []simhost.NIC{{MAC: mac, Bridge: "br0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.9/24")}}}
		}
		spec := simhost.DomainSpec{Name: "vm", UUID: [16]byte{1, 2, 3}, Running: true, Autostart: true, NICs: lan("52:54:00:00:00:01")}
		d := r.sim.AddDomain(spec)
		before, err := r.get(t, "vm")
		if err != nil || before.Address != addr("10.0.0.9") {
			t.Fatalf("before: %v, %v", before.Address, err)
		}
		r.sim.PowerOff()
		d.Undefine() // and defined anew, with another card, before anybody looks
		spec.NICs, spec.Running = lan("52:54:00:00:00:02"), false
		r.sim.AddDomain(spec)
		time.Sleep(30 * time.Second)
		r.sim.ResetCalls()
		if err := r.sim.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		after, err := r.get(t, "vm")
		if err != nil || after.Address != addr("10.0.0.9") {
			t.Errorf("after: %v, %v, %+v", after.Address, err, after.Outcomes)
		}
		if after.Incarnation != before.Incarnation || after.Generation == before.Generation {
			t.Errorf("%q of generation %d after %q of %d: the case of this test is an equal number on another connection",
				after.Incarnation, after.Generation, before.Incarnation, before.Generation)
		}
		calls := r.sim.Calls()
		if x, s := calls[simhost.ProcDomainGetXMLDesc], calls[simhost.ProcDomainAgentSetResponseTimeout]; x != 1 || s != 1 {
			t.Errorf("description read %d times, agent's timeout set %d times; want once each", x, s)
		}
	})
}

// A redial costs nothing for domains that nobody asks for.
func TestGet_redialIsLazy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.known(t, 20)
		if _, err := r.Reconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.sim.ResetCalls()
		time.Sleep(5 * time.Second)
		for range 3 {
			if _, err := r.get(t, "vm3"); err != nil {
				t.Fatal(err)
			}
			if _, err := r.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		calls := r.sim.Calls()
		if x, s := calls[simhost.ProcDomainGetXMLDesc], calls[simhost.ProcDomainAgentSetResponseTimeout]; x != 1 || s != 1 {
			t.Errorf("description read %d times, agent's timeout set %d times; want once each, of the one that was asked for", x, s)
		}
	})
}

// A domain that was seen off is another one when it runs again, even under its
// old number.
func TestGet_seenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		d := r.nat("vm")
		in, err := r.get(t, "vm")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // virtual; a look of the same instant would do for both
		if off, err := r.get(t, "vm"); err != nil || off.State != model.InstanceStopped {
			t.Fatalf("off: %v, %v", off.State, err)
		}
		if info, ok := r.cached(&in); ok {
			t.Errorf("what was read of the run that is over is kept: %+v", info)
		}
	})
}

// A daemon that wants more than virdeck can prove says so, in its own words.
func TestLink_auth(t *testing.T) {
	for a, want := range map[simhost.Auth]string{
		simhost.AuthPolkit: "",
		simhost.AuthDenied: "no polkit agent available to authenticate action 'org.libvirt.unix.manage'",
		simhost.AuthSASL:   "authentication required",
	} {
		synctest.Test(t, func(t *testing.T) {
			sim := simhost.New(simhost.Options{})
			sim.SetAuth(a)
			r := rigOn(t, sim, nil)
			_, err := r.List(t.Context())
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(r.Link().LastError, want)) {
				t.Errorf("auth %d: %v, last error %q; want %q", a, err, r.Link().LastError, want)
			}
		})
	}
}
