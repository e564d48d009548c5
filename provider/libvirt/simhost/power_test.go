package simhost

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// A host that was switched off comes back with other runs under the old numbers;
// what had Autostart boots, in order.
func TestPowerOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, Options{})
		h.AddDomain(DomainSpec{Name: "manual", Running: true})
		auto := h.AddDomain(DomainSpec{Name: "auto", Running: true, Autostart: true})
		gone := h.AddDomain(DomainSpec{Name: "transient", Running: true})
		gone.Undefine()
		if id := auto.ID(); id != 2 {
			t.Fatalf("id %d before, want 2", id)
		}
		h.PowerOff()
		if id := auto.ID(); id != -1 || h.Conns() != 0 {
			t.Errorf("off: id %d, %d connections", id, h.Conns())
		}
		time.Sleep(30 * time.Second)
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		l := connect(t, h)
		if id, man := auto.ID(), h.Domain("manual").ID(); id != 1 || man != -1 || !gone.Gone() {
			t.Errorf("on again: auto %d, manual %d, transient gone %v; want 1, -1, true", id, man, gone.Gone())
		}
		if got := read(l, auto, srcAgent); got != "error: "+notConnected {
			t.Errorf("the agent of a guest that boots: %q", got)
		}
		time.Sleep(5 * time.Second)
		if got := read(l, auto, srcLease); got == "" {
			t.Error("no lease after the boot")
		}
		h.PowerOff()
		if err := h.Start(); err != nil || auto.ID() != 1 {
			t.Errorf("the second time: id %d, %v", auto.ID(), err)
		}
	})
}

// A daemon that was restarted has not talked to any agent: one that hangs then
// costs the 5 s of the sync, and not for ever.
func TestRestartedDaemonSyncsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true})
		h.Kill()
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		l := connect(t, h)
		d.AgentHang()
		start := time.Now()
		if got := read(l, d, srcAgent); got != "error: Guest agent is not responding: Guest agent not available for now" {
			t.Errorf("%q", got)
		}
		if took := time.Since(start); took != syncTimeout {
			t.Errorf("took %s, want %s", took, syncTimeout)
		}
	})
}

// A network that is stopped takes its bridge along, and nobody can start on it.
func TestInactiveNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d, off := h.AddDomain(DomainSpec{Name: "d", Running: true}), h.AddDomain(DomainSpec{Name: "off"})
		l := connect(t, h)
		h.SetNetworkActive("default", false)
		const inactive = "Requested operation is not valid: network 'default' is not active"
		net, err := l.NetworkLookupByName("default")
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = l.NetworkGetDhcpLeases(net, nil, 1, 0)
		var e libvirt.Error
		if !errors.As(err, &e) || e.Code != 55 || e.Message != inactive {
			t.Errorf("leases: %v", err)
		}
		if got := read(l, d, srcLease); got != "error: "+inactive {
			t.Errorf("lease of a guest: %q", got)
		}
		if got := read(l, d, srcARP); got != "" {
			t.Errorf("arp: %q", got)
		}
		if err := off.Start(); err == nil || err.Error() != "libvirt error 55: "+inactive {
			t.Errorf("start: %v", err)
		}
		h.SetNetworkActive("default", true)
		if got := read(l, d, srcLease); got == "" || off.Start() != nil {
			t.Errorf("started again: lease %q", got)
		}
	})
}

func TestRename_refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true})
		if err := d.Rename("e"); err == nil || err.Error() != "libvirt error 55: Requested operation is not valid: cannot rename active domain" {
			t.Errorf("active: %v", err)
		}
		d.Crash()
		if err := d.Rename("e"); err != nil || h.Domain("e") != d {
			t.Errorf("off: %v", err)
		}
	})
}

// What a client has to prove, and what it is told when it cannot.
func TestAuth(t *testing.T) {
	for a, want := range map[Auth]string{
		AuthNone: "", AuthPolkit: "",
		AuthDenied: "authentication unavailable: no polkit agent available to authenticate action 'org.libvirt.unix.manage'",
		AuthSASL:   "authentication required",
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(t, Options{})
			h.SetAuth(a)
			d := &dialer{t: t, h: h}
			err := libvirt.NewWithDialer(d).Connect()
			_ = d.conn.Close() // it has served
			var e libvirt.Error
			if want == "" && err != nil || want != "" && (!errors.As(err, &e) || e.Message != want) {
				t.Errorf("auth %d: %v, want %q", a, err, want)
			}
		})
	}
}

// Numbers that no host has are no reason to fall over.
func TestAbsurdNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := DefaultNetwork()
		n.LeaseTime = 1
		h := newHost(t, Options{Networks: []NetworkSpec{n}})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true, Proxy: Proxy{Delay: 1<<63 - 1, Jitter: 1<<63 - 1}})
		l := connect(t, h)
		time.Sleep(time.Minute)
		if got := read(l, d, srcLease); got == "" {
			t.Error("no lease")
		}
		s := &session{d: d}
		go func() { _ = s.wait(d.proxy) }() // ends with the host
		synctest.Wait()
	})
}
