package libvirt

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

func TestPower(t *testing.T) {
	running := simhost.DomainSpec{Name: "p-01", Running: true}
	tests := []struct {
		name  string
		spec  simhost.DomainSpec
		prep  func(*rig, *simhost.Domain)
		do    func(*rig) error
		state golibvirt.DomainState
		newID bool
		class provider.Class
		msg   string
		took  time.Duration // at most
	}{
		{name: "start", spec: simhost.DomainSpec{Name: "p-01"}, do: func(r *rig) error { return r.Start(r.ctx(), "p-01") },
			state: golibvirt.DomainRunning, newID: true},
		{name: "start what runs", spec: running, do: func(r *rig) error { return r.Start(r.ctx(), "p-01") }, state: golibvirt.DomainRunning},
		{name: "stop", spec: running, do: func(r *rig) error { return r.Stop(r.ctx(), "p-01") }, state: golibvirt.DomainShutoff, took: 3 * time.Second},
		{name: "stop what is off", spec: simhost.DomainSpec{Name: "p-01"}, do: func(r *rig) error { return r.Stop(r.ctx(), "p-01") },
			state: golibvirt.DomainShutoff},
		{name: "stop a guest that does not listen", spec: simhost.DomainSpec{Name: "p-01", Running: true, ShutdownTakes: time.Hour},
			do: func(r *rig) error { return r.Stop(r.ctx(), "p-01") }, state: golibvirt.DomainShutoff, took: 11 * time.Second},
		{name: "stop a paused one", spec: running, prep: func(_ *rig, d *simhost.Domain) { d.Pause(golibvirt.DomainPausedUser) },
			do: func(r *rig) error { return r.Stop(r.ctx(), "p-01") }, state: golibvirt.DomainShutoff},
		{name: "restart", spec: running, do: func(r *rig) error { return r.Restart(r.ctx(), "p-01") }, state: golibvirt.DomainRunning, newID: true},
		{name: "start what is not there", spec: running, do: func(r *rig) error { return r.Start(r.ctx(), "nobody") },
			state: golibvirt.DomainRunning, class: provider.ClassNotFound, msg: "host beelink: start of domain nobody: not found"},
		{name: "start fails for good", spec: simhost.DomainSpec{Name: "p-01"},
			prep: func(r *rig, _ *simhost.Domain) {
				r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainCreate, Error: simhost.Error{Code: golibvirt.ErrConfigUnsupported, Message: "unsupported configuration"}})
			},
			do: func(r *rig) error { return r.Start(r.ctx(), "p-01") }, state: golibvirt.DomainShutoff,
			class: provider.ClassPermanent, msg: "host beelink: start of domain p-01: start: code 67: unsupported configuration"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, simhost.Options{}, nil)
				d := r.sim.AddDomain(tt.spec)
				if tt.prep != nil {
					tt.prep(r, d)
				}
				id, start := d.ID(), time.Now()
				err := tt.do(r)
				if got := provider.Classify(err); got != tt.class {
					t.Errorf("%v is %v, want %v", err, got, tt.class)
				}
				if err != nil && err.Error() != tt.msg {
					t.Errorf("message %q, want %q", err, tt.msg)
				}
				if s, _ := d.State(); s != tt.state {
					t.Errorf("state %v, want %v", s, tt.state)
				}
				if (d.ID() != id && d.ID() > 0) != tt.newID {
					t.Errorf("id %d after %d, want a new one: %v", d.ID(), id, tt.newID)
				}
				if took := time.Since(start); tt.took > 0 && took > tt.took {
					t.Errorf("took %s, want at most %s", took, tt.took)
				}
			})
		})
	}
}

// Events come as triggers, "link up" after the subscription; after a redial they
// come again.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		d := r.nat("p-01")
		time.Sleep(100 * time.Millisecond)
		told := func() []string {
			r.mu.Lock()
			defer r.mu.Unlock()
			var out []string
			for _, e := range r.events {
				out = append(out, e.Domain+" "+e.What)
			}
			r.events = nil
			return out
		}
		if got := told(); !slices.Contains(got, " link up") {
			t.Errorf("at first: %q, want link up", got)
		}
		d.AgentStop()
		d.AgentStart()
		time.Sleep(time.Second)
		if got, want := told(), []string{"p-01 agent disconnected", "p-01 agent connected"}; !slices.Equal(got, want) {
			t.Errorf("agent: %q, want %q", got, want)
		}
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := told(); !slices.Contains(got, "p-01 stopped") {
			t.Errorf("destroyed: %q", got)
		}
		if _, err := r.Reconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got, want := told(), []string{" link up", " identified"}; !slices.Equal(got, want) {
			t.Errorf("after the redial: %q, want %q", got, want)
		}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := told(); !slices.Contains(got, "p-01 started") {
			t.Errorf("on the new generation: %q, want the start told", got)
		}
	})
}

func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{UUID: [16]byte{0xAB, 1}}, nil)
		r.nat("p-01")
		r.sim.AddDomain(simhost.DomainSpec{Name: "p-02"})
		r.nat("p-03").Pause(golibvirt.DomainPausedIoerror)
		hostile := "p-04\x1b]52;c;aGk=\x07\u009b2J"
		r.sim.AddDomain(simhost.DomainSpec{Name: hostile, Running: true, NICs: []simhost.NIC{{Bridge: "br0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.9/24")}}}})
		time.Sleep(time.Second)
		l, err := r.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if l.HostUUID != "ab010000-0000-0000-0000-000000000000" || l.Generation != 1 {
			t.Errorf("host uuid %q, generation %d", l.HostUUID, l.Generation)
		}
		want := map[string]model.Instance{
			"p-01":  {Domain: model.DomainRunning, State: model.InstanceUnknown},
			"p-02":  {Domain: model.DomainShutoff, State: model.InstanceStopped},
			"p-03":  {Domain: model.DomainPaused, State: model.InstancePaused, Reason: "I/O error"},
			hostile: {Domain: model.DomainRunning, State: model.InstanceUnknown},
		}
		for name, w := range want {
			in, ok := l.Find(name)
			if !ok || in.Domain != w.Domain || in.State != w.State || (w.Reason != "" && in.Reason != w.Reason) {
				t.Errorf("%q: %v %v %q, want %v %v %q", name, in.Domain, in.State, in.Reason, w.Domain, w.State, w.Reason)
			}
			if (in.Incarnation == "") != (w.State == model.InstanceStopped) {
				t.Errorf("%q: incarnation %q", name, in.Incarnation)
			}
		}
		r.sim.Kill()
		synctest.Wait()
		if _, err := r.List(t.Context()); !errors.Is(err, provider.ErrTransient) {
			t.Errorf("without a daemon: %v, want transient", err)
		}
	})
}
