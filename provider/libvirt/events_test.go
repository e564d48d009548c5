package libvirt

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// told returns what the host told about itself, and how often about a domain.
func (r *rig) told() (host []string, domain int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ev := range r.events {
		if ev.Domain == "" {
			host = append(host, ev.What)
		} else {
			domain++
		}
	}
	r.events = nil
	return host, domain
}

// A subscription that fails at first, or that the host grants only after it has
// been given up, is made good in the same generation; until then the link says
// that events are missing, and after it everything is looked at once.
func TestEvents_subscribedLate(t *testing.T) {
	const reg = simhost.ProcConnectDomainEventCallbackRegisterAny
	refused := simhost.Error{Code: golibvirt.ErrSystemError, Message: "no memory for it"}
	for _, tt := range []struct {
		name  string
		fault simhost.Fault
		off   string // what the link says at 5.5 s
		by    time.Duration
		calls int // of registering, at the end
	}{
		{"well", simhost.Fault{Proc: simhost.ProcDomainReboot}, "", 0, 3},
		{"refused twice", simhost.Fault{Kind: simhost.FaultError, Error: refused, Times: 6},
			"agent: code 38: no memory for it; lifecycle: code 38: no memory for it; metadata: code 38: no memory for it", 9 * time.Second, 9},
		{"late by 7 s", simhost.Fault{Kind: simhost.FaultDelay, Delay: 7 * time.Second, Times: 1},
			"agent: no answer within 5s; lifecycle: no answer within 5s; metadata: no answer within 5s", 9 * time.Second, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tt.fault.Proc == 0 {
					tt.fault.Proc = reg
				}
				sim := simhost.New(simhost.Options{})
				sim.Inject(tt.fault)
				r := rigOn(t, sim, nil)
				d := r.nat("p-01")
				time.Sleep(5500 * time.Millisecond)
				if off := r.Link().EventsOff; off != tt.off {
					t.Errorf("the link says %q, want %q", off, tt.off)
				}
				first, _ := r.told()
				if slices.Index(first, provider.EventLinkUp) != 0 {
					t.Errorf("told at first: %q, want the link up", first)
				}
				time.Sleep(tt.by)
				if off := r.Link().EventsOff; off != "" {
					t.Errorf("at the end the link says %q", off)
				}
				late, _ := r.told()
				if got := slices.Contains(late, provider.EventSubscribed); got != (tt.off != "") {
					t.Errorf("told late: %q", late)
				}
				d.Pause(golibvirt.DomainPausedUser)
				synctest.Wait()
				if _, n := r.told(); n != 1 {
					t.Errorf("a pause is told %d times, want once", n)
				}
				if n := r.sim.Calls()[reg]; n != tt.calls {
					t.Errorf("registered %d times, want %d", n, tt.calls)
				}
				if st := r.Link(); st.Generation != 1 || st.State != model.LinkUp {
					t.Errorf("generation %d, %v", st.Generation, st.State)
				}
			})
		})
	}
}

// A host that does not say which machine it is is asked again, with pauses that
// grow, and never twice at one time: a question that hangs holds one slot, and
// its answer counts however late it comes.
func TestIdentify_oneQuestionAtATime(t *testing.T) {
	const caps = simhost.ProcConnectGetCapabilities
	t.Run("hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sim := simhost.New(simhost.Options{})
			remove := sim.Inject(simhost.Fault{Proc: caps, Kind: simhost.FaultHang})
			defer remove()
			r := rigOn(t, sim, nil)
			for range 600 { // ten minutes
				time.Sleep(time.Second)
				if err := version(t.Context(), r.link); err != nil {
					t.Fatalf("a neighbour: %v", err)
				}
			}
			if n, st := r.sim.Calls()[caps], r.Link(); n != 1 || st.Generation != 1 || st.InFlight != 1 {
				t.Errorf("asked %d times, %d in flight, generation %d; want 1, 1, 1", n, st.InFlight, st.Generation)
			}
			remove()
			synctest.Wait()
			l, err := r.List(t.Context())
			if host, _ := r.told(); err != nil || l.HostUUID == "" || !slices.Contains(host, provider.EventIdentified) {
				t.Errorf("host %q, %v, told %q; want the late answer taken", l.HostUUID, err, host)
			}
		})
	})
	t.Run("fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sim := simhost.New(simhost.Options{})
			sim.Inject(simhost.Fault{Proc: caps, Error: simhost.Error{Code: golibvirt.ErrInternalError, Message: "no"}})
			r := rigOn(t, sim, nil)
			time.Sleep(10 * time.Minute)
			// At 0, 2, 6, 14, 30 and 62 s, and each minute after that.
			if n := r.sim.Calls()[caps]; n != 14 {
				t.Errorf("asked %d times in ten minutes, want 14", n)
			}
		})
	})
}
