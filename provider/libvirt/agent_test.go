package libvirt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// A daemon that freezes while it asks an agent is no agent that hangs: nothing is
// concluded, and once it goes on the agent is asked at once.
func TestAgent_frozenDaemonIsNoHungAgent(t *testing.T) {
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		frozen  time.Duration
		err     error // of the Get during it
	}{
		{"for long, response timeout set", 2 * time.Second, 20 * time.Second, provider.ErrNotAsked},
		{"for long, libvirt's own", 0, 20 * time.Second, provider.ErrNotAsked},
		{"for a moment, response timeout set", 2 * time.Second, 3200 * time.Millisecond, provider.ErrNotAsked},
		{"for a moment, libvirt's own", 0, 4200 * time.Millisecond, provider.ErrNotAsked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, simhost.Options{}, func(o *Options) { o.AgentTimeout = tt.timeout })
				r.bridged("p-01", "10.0.0.21/24")
				if in, err := r.get(t, "p-01"); err != nil || in.State != model.InstanceRunning {
					t.Fatalf("before: %v, %v", in.State, err)
				}
				time.Sleep(time.Second)
				// The agent's call is in the daemon when it freezes.
				remove := r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainInterfaceAddresses, Kind: simhost.FaultDelay, Delay: 50 * time.Millisecond})
				time.AfterFunc(70*time.Millisecond, r.sim.Freeze)
				thawed := time.After(tt.frozen)
				ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
				defer cancel()
				in, err := r.Get(ctx, provider.GetRequest{Domain: "p-01", Sources: model.Sources(), Fresh: true})
				if !errors.Is(err, tt.err) || in.State == model.InstanceProvisioning {
					t.Errorf("during it: %v, %v; want %v", in.State, err, tt.err)
				}
				remove()
				<-thawed
				r.sim.Thaw()
				if tt.frozen > 10*time.Second {
					if _, err := r.Reconnect(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second)
				if in, err := r.get(t, "p-01"); err != nil || in.State != model.InstanceRunning {
					t.Errorf("a second after it: %v, %v; want running", in.State, err)
				}
			})
		})
	}
}

// An agent that hangs, on a host that lives, is left alone; that it was not asked
// is no proof that its guest has no address.
func TestAgent_hungIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, func(o *Options) { o.AgentTimeout = 0 })
		d := r.bridged("p-01", "10.0.0.21/24")
		if _, err := r.get(t, "p-01"); err != nil {
			t.Fatal(err)
		}
		d.AgentHang()
		time.Sleep(time.Second)
		in, err := r.get(t, "p-01")
		if k := kinds(in); err != nil || k[model.SourceAgent] != fail {
			t.Errorf("the first time: %v, %v; want the agent failed", k, err)
		}
		if o := in.Outcomes[1]; o.Message != "the agent gave no answer within 4s; libvirt still waits for it" {
			t.Errorf("the agent: %q", o.Message)
		}
		for range 10 {
			time.Sleep(5 * time.Second)
			in, err := r.get(t, "p-01")
			if k := kinds(in); !errors.Is(err, provider.ErrNotAsked) || in.State == model.InstanceProvisioning || k[model.SourceAgent] != notAsk {
				t.Fatalf("later: %v, %v, %v; want the agent not asked, and nothing concluded", in.State, k, err)
			}
			if m := in.Outcomes[1].Message; !strings.HasPrefix(m, "not asked: it hangs since ") {
				t.Errorf("the agent: %q", m)
			}
		}
		if n := r.sim.Asked()[1]; n != 2 {
			t.Errorf("the agent was asked %d times, want once and then no more", n)
		}
		d.AgentThaw() // the daemon answers the call that was given up
		synctest.Wait()
		if in, err := r.get(t, "p-01"); err != nil || in.State != model.InstanceRunning {
			t.Errorf("after it thawed: %v, %v", in.State, err)
		}
	})
}

// Where libvirt has been told how long to wait for an agent, one whose call is
// late all the same is left alone for seconds, and not for longer than it takes
// the daemon to answer.
func TestAgent_boundedPausesAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.bridged("p-01", "10.0.0.21/24")
		if _, err := r.get(t, "p-01"); err != nil {
			t.Fatal(err)
		}
		agent := func() (model.Instance, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return r.Get(ctx, provider.GetRequest{Domain: "p-01", Sources: []model.Source{model.SourceAgent}, Fresh: true})
		}
		remove := r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainInterfaceAddresses, Kind: simhost.FaultDelay, Delay: 3500 * time.Millisecond})
		time.Sleep(time.Second)
		if in, err := agent(); !errors.Is(err, provider.ErrTransient) {
			t.Errorf("late by 3.5 s: %v, %v", in.State, err)
		}
		remove()
		time.Sleep(time.Second) // the answer is there by now
		if in, err := agent(); err != nil || in.State != model.InstanceRunning {
			t.Errorf("after the late answer: %v, %v; want running", in.State, err)
		}
		defer r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainInterfaceAddresses, Kind: simhost.FaultHang})()
		time.Sleep(time.Second)
		if _, err := agent(); err == nil {
			t.Error("a call that hangs succeeded")
		}
		in, err := agent()
		if want := "not asked: it hangs since "; err == nil || !strings.HasPrefix(in.Outcomes[1].Message, want) {
			t.Fatalf("%v, %+v; want %q", err, in.Outcomes, want)
		}
		r.Host.mu.Lock()
		defer r.Host.mu.Unlock()
		for _, q := range r.hung {
			if q.pause != 5*time.Second {
				t.Errorf("left alone for %s, want 5s", q.pause)
			}
		}
	})
}

// Agents that hung in guests that are off, gone or started anew do not count
// among those that threaten the daemon.
func TestAgent_quarantineEndsWithTheGuest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, func(o *Options) { o.AgentTimeout = 0 })
		r.bridged("good", "10.0.0.99/24")
		for i := range quarantineMany + 1 {
			name := fmt.Sprint("bad", i)
			r.bridged(name, fmt.Sprintf("10.0.0.%d/24", i+1)).AgentHang()
			_, _ = r.get(t, name) // it hangs
			time.Sleep(8 * time.Second)
		}
		time.Sleep(3 * time.Minute) // the connections on which they were asked are closed by now
		in, err := r.get(t, "good")
		if want := "not asked: 6 agents hang on this host, and libvirt would wait for this one without a limit too"; !errors.Is(err, provider.ErrNotAsked) || in.Outcomes[1].Message != want {
			t.Fatalf("while they hang: %v, %+v; want %q", err, in.Outcomes, want)
		}
		for i := range quarantineMany + 1 {
			if err := r.sim.Domain(fmt.Sprint("bad", i)).Destroy(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		if in, err := r.get(t, "good"); err != nil || in.State != model.InstanceRunning {
			t.Errorf("when they are off: %v, %v; want running", in.State, err)
		}
	})
}
