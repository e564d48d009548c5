package simhost

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// watch collects the events of a kind as text, until the context ends.
func watch(ctx context.Context, t *testing.T, l *libvirt.Libvirt, id libvirt.DomainEventID) (taken func() string) {
	t.Helper()
	ch, err := l.SubscribeEvents(ctx, id, nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		for ev := range ch {
			switch m := ev.(type) {
			case *libvirt.DomainEventCallbackLifecycleMsg:
				lines <- fmt.Sprintf("%s#%d %d/%d", m.Msg.Dom.Name, m.Msg.Dom.ID, m.Msg.Event, m.Msg.Detail)
			case *libvirt.DomainEventCallbackAgentLifecycleMsg:
				lines <- fmt.Sprintf("%s#%d agent %d/%d", m.Dom.Name, m.Dom.ID, m.State, m.Reason)
			case *libvirt.DomainEventCallbackRebootMsg:
				lines <- fmt.Sprintf("%s#%d reboot", m.Msg.Dom.Name, m.Msg.Dom.ID)
			default:
				lines <- fmt.Sprintf("%T", ev)
			}
		}
	}()
	return func() string {
		synctest.Wait()
		var out []string
		for len(lines) > 0 {
			out = append(out, <-lines)
		}
		return strings.Join(out, ", ")
	}
}

func TestEventsAndStates(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		l := connect(t, h)
		ctx, cancel := context.WithCancel(t.Context())
		life := watch(ctx, t, l, libvirt.DomainEventIDLifecycle)
		agent := watch(ctx, t, l, libvirt.DomainEventIDAgentLifecycle)
		reboot := watch(ctx, t, l, libvirt.DomainEventIDReboot)
		var d *Domain
		for _, c := range []struct {
			what        string
			do          func() error
			life, agent string
			state       string
		}{
			{"add", func() error { d = h.AddDomain(DomainSpec{Name: "d"}); return nil }, "d#-1 0/0", "", "-1 5/0"},
			{"create", func() error { return l.DomainCreate(ref(d)) }, "d#1 4/0, d#1 2/0", "d#1 agent 2/1", "1 1/1"},
			{"boot", func() error { time.Sleep(5 * time.Second); return nil }, "", "d#1 agent 1/2", "1 1/1"},
			{"suspend", func() error { return l.DomainSuspend(ref(d)) }, "d#1 3/0", "", "1 3/1"},
			{"resume", func() error { return l.DomainResume(ref(d)) }, "d#1 4/0", "", "1 1/5"},
			{"pause by an I/O error", func() error { d.Pause(libvirt.DomainPausedIoerror); return nil }, "d#1 3/2", "", "1 3/5"},
			{"pause again", func() error { d.Pause(libvirt.DomainPausedUser); return nil }, "", "", "1 3/5"},
			{"resume by hand", func() error { d.Resume(); return nil }, "d#1 4/0", "", "1 1/5"},
			{"stop the agent", func() error { d.AgentStop(); return nil }, "", "d#1 agent 2/2", "1 1/5"},
			{"start the agent", func() error { d.AgentStart(); return nil }, "", "d#1 agent 1/2", "1 1/5"},
			{"reboot", func() error { return l.DomainReboot(ref(d), 0) }, "", "d#1 agent 2/2", "1 1/5"},
			{"boot again", func() error { time.Sleep(5 * time.Second); return nil }, "", "d#1 agent 1/2", "1 1/5"},
			{"shutdown", func() error { return l.DomainShutdown(ref(d)) }, "", "", "1 1/5"},
			{"shut down", func() error { time.Sleep(3 * time.Second); return nil }, "d#1 6/1, d#-1 5/0", "", "-1 5/1"},
			{"create paused", func() error { _, err := l.DomainCreateWithFlags(ref(d), 1); return err }, "d#2 2/0, d#2 3/0", "d#2 agent 2/1", "2 3/1"},
			{"destroy", func() error { return l.DomainDestroyFlags(ref(d), 0) }, "d#2 6/2, d#-1 5/1", "", "-1 5/2"},
			{"start", func() error { return d.Start() }, "d#3 4/0, d#3 2/0", "d#3 agent 2/1", "3 1/1"},
			{"crash", func() error { d.Crash(); return nil }, "d#-1 5/2", "", "-1 5/3"},
			{"rename", func() error { return d.Rename("e") }, "d#-1 1/1, e#-1 0/2", "", "-1 5/3"},
			{"undefine", func() error { return l.DomainUndefineFlags(ref(d), 0) }, "e#-1 1/0", "", "-1 5/3"},
		} {
			if err := c.do(); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			if got := life(); got != c.life {
				t.Errorf("%s: lifecycle events %q, want %q", c.what, got, c.life)
			}
			if got := agent(); got != c.agent {
				t.Errorf("%s: agent events %q, want %q", c.what, got, c.agent)
			}
			state, reason := d.State()
			if got := fmt.Sprintf("%d %d/%d", d.ID(), state, reason); got != c.state {
				t.Errorf("%s: id and state %q, want %q", c.what, got, c.state)
			}
		}
		if got := reboot(); got != "d#1 reboot" {
			t.Errorf("reboot events %q", got)
		}
		if h.Domain("e") != nil || len(h.Domains()) != 0 {
			t.Error("the domain is still there")
		}
		cancel()
		synctest.Wait()
		if n := h.Calls()[ProcConnectDomainEventCallbackDeregister]; n != 3 {
			t.Errorf("%d callbacks were taken back, want 3", n)
		}
		h.AddDomain(DomainSpec{Name: "late"})
		if got := life(); got != "" {
			t.Errorf("after the end: %q", got)
		}
	})
}

func TestEventsAreLostOnDemand(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		l := connect(t, h)
		life := watch(t.Context(), t, l, libvirt.DomainEventIDLifecycle)
		h.DropEvents(true)
		h.AddDomain(DomainSpec{Name: "a"})
		h.DropEvents(false)
		h.AddDomain(DomainSpec{Name: "b", Running: true})
		if got := life(); got != "b#-1 0/0, b#1 4/0, b#1 2/0" {
			t.Errorf("events %q", got)
		}
		// A registration for one domain.
		id, err := l.ConnectDomainEventCallbackRegisterAny(0, libvirt.OptDomain{ref(h.Domain("a"))})
		if err != nil || id != 1 {
			t.Errorf("register: %d, %v", id, err)
		}
		if err := l.ConnectDomainEventCallbackDeregisterAny(id); err != nil {
			t.Errorf("deregister: %v", err)
		}
		wantError(t, l.ConnectDomainEventCallbackDeregisterAny(id), libvirt.ErrInternalError,
			"internal error: domain event callback 1 not registered")
		_, err = l.ConnectDomainEventCallbackRegisterAny(99, nil)
		wantError(t, err, libvirt.ErrInternalError, "internal error: unsupported event ID 99")
	})
}

// Writes that find their work done, or cannot be done.
func TestPowerErrors(t *testing.T) {
	const running = "Requested operation is not valid: domain is already running"
	h := newHost(t, Options{})
	up := h.AddDomain(DomainSpec{Name: "up", Running: true})
	off := h.AddDomain(DomainSpec{Name: "off"})
	l := connect(t, h)
	_, withFlags := l.DomainCreateWithFlags(ref(up), 0)
	for _, c := range []struct {
		what string
		err  error
		want string
	}{
		{"create", l.DomainCreate(ref(up)), running},
		{"create with flags", withFlags, running},
		{"destroy", l.DomainDestroy(ref(off)), inactive},
		{"shutdown", l.DomainShutdownFlags(ref(off), 0), inactive},
		{"reboot", l.DomainReboot(ref(off), 0), inactive},
		{"reset", l.DomainReset(ref(off), 0), inactive},
		{"suspend", l.DomainSuspend(ref(off)), inactive},
		{"resume", l.DomainResume(ref(off)), inactive},
		{"resume a running one", l.DomainResume(ref(up)), running},
	} {
		t.Run(c.what, func(t *testing.T) { wantError(t, c.err, libvirt.ErrOperationInvalid, c.want) })
	}
	if err := l.DomainUndefine(ref(up)); err != nil {
		t.Error(err)
	}
	wantError(t, l.DomainUndefine(ref(up)), libvirt.ErrOperationInvalid, "Requested operation is not valid: cannot undefine transient domain")
	if err := l.DomainReset(ref(up), 0); err != nil {
		t.Errorf("reset: %v", err)
	}
	if err := l.DomainDestroy(ref(up)); err != nil {
		t.Error(err)
	}
	if _, err := l.DomainLookupByName("up"); !libvirt.IsNotFound(err) {
		t.Errorf("a transient domain is gone with its end: %v", err)
	}
}

func TestGuestThatDoesNotListen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true, ShutdownTakes: -1})
		if err := d.Shutdown(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if state, _ := d.State(); state != libvirt.DomainRunning {
			t.Errorf("state %d, want running", state)
		}
	})
}

func TestStagesThatNeverCome(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Boot: Boot{Lease: -1, Agent: time.Second, Proxy: -1}})
		l := connect(t, h)
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got, want := read(l, d, srcAgent), lo+"eth0 "+d.MAC()+"; "; got != want {
			t.Errorf("agent %q, want %q", got, want)
		}
		if got := read(l, d, srcLease); got != "" {
			t.Errorf("lease %q", got)
		}
		// A boot that ends early takes its stages with it.
		d.SetBoot(Boot{})
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		d.Crash()
		time.Sleep(time.Minute)
		d.SetBoot(Boot{Lease: time.Minute, Agent: time.Minute})
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		if got := read(l, d, srcLease) + read(l, d, srcAgent); got != "error: "+notConnected {
			t.Errorf("before the new stages: %q", got)
		}
	})
}

func TestMistakesPanic(t *testing.T) {
	h := newHost(t, Options{})
	h.AddDomain(DomainSpec{Name: "d"})
	for what, f := range map[string]func(){
		"no name":   func() { h.AddDomain(DomainSpec{}) },
		"same name": func() { h.AddDomain(DomainSpec{Name: "d", UUID: [16]byte{1}}) },
		"same uuid": func() { h.AddDomain(DomainSpec{Name: "e", UUID: h.Domain("d").UUID()}) },
		"rename":    func() { _ = h.Domain("d").Rename("d") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			f()
		}()
	}
}
