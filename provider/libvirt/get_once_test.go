package libvirt

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// Two proxies in one VM are read at one time: they share the agent's answer, and
// neither is told that nobody could be asked.
func TestGet_twoReadersOfOneGuestShareTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.bridged("p-01", "10.0.0.21/24")
		r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainInterfaceAddresses, Kind: simhost.FaultDelay, Delay: 500 * time.Millisecond})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				in, err := r.Get(t.Context(), provider.GetRequest{Domain: "p-01", Sources: []model.Source{model.SourceAgent}})
				if err != nil || in.Address != addr("10.0.0.21") {
					t.Errorf("%v, %v", in.Address, err)
				}
			})
		}
		wg.Wait()
		if n := r.sim.Calls()[simhost.ProcDomainInterfaceAddresses]; n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	})
}

func TestGet_setsTheAgentTimeoutOncePerIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		d := r.nat("p-01")
		for range 3 {
			if _, err := r.get(t, "p-01"); err != nil {
				t.Fatal(err)
			}
		}
		if n := r.sim.Calls()[simhost.ProcDomainAgentSetResponseTimeout]; n != 1 {
			t.Errorf("set %d times, want once", n)
		}
		first, _ := r.get(t, "p-01")
		if err := errors.Join(d.Destroy(), d.Start()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // virtual; a look of the same instant would do for both
		second, err := r.get(t, "p-01")
		if err != nil || second.Incarnation == first.Incarnation || second.Incarnation == "" {
			t.Errorf("incarnation %q after %q, %v; want another one", second.Incarnation, first.Incarnation, err)
		}
		if n := r.sim.Calls()[simhost.ProcDomainAgentSetResponseTimeout]; n != 2 {
			t.Errorf("set %d times over two incarnations, want 2", n)
		}
	})
}

// A poll of a hundred domains is one call for the states and one for the leases,
// once the marks are known; they are read a bounded number at a time.
func TestList_isCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		for i := range 100 {
			r.nat("p-" + strings.Repeat("x", i+1))
		}
		for _, d := range r.sim.Domains() {
			if _, err := r.get(t, d.Name()); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []int{marksPerListing, 100 - marksPerListing} {
			r.sim.ResetCalls()
			if _, err := r.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := r.sim.Calls()[simhost.ProcDomainGetMetadata]; n != want {
				t.Errorf("%d marks read in one listing, want %d", n, want)
			}
		}
		time.Sleep(2 * time.Second) // virtual: let the shared looks grow old
		r.sim.ResetCalls()
		l, err := r.List(t.Context())
		if err != nil || len(l.Instances) != 100 {
			t.Fatalf("%d instances, %v", len(l.Instances), err)
		}
		total := 0
		for _, n := range r.sim.Calls() {
			total += n
		}
		if total > 3 {
			t.Errorf("%d calls, at most 3 are allowed: %v", total, r.sim.Calls())
		}
		for _, in := range l.Instances {
			if !in.OwnerKnown || !in.Owner.Zero() || len(in.Outcomes) != 1 || in.Outcomes[0].Kind != addrs {
				t.Fatalf("%s: outcomes %v, want its lease", in.Name, in.Outcomes)
			}
		}
	})
}
