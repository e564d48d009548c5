package libvirt

import (
	"context"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// rig is a simulated host with the real provider on it.
type rig struct {
	*Host
	sim *simhost.Host

	mu     sync.Mutex
	events []provider.Event
}

// newRig makes one; change may alter the options.
func newRig(t *testing.T, so simhost.Options, change func(*Options)) *rig {
	t.Helper()
	return rigOn(t, simhost.New(so), change)
}

// rigOn is newRig on a simulated host that is there already, with its faults.
func rigOn(t *testing.T, sim *simhost.Host, change func(*Options)) *rig {
	t.Helper()
	r := &rig{sim: sim}
	o := Options{
		Link:         LinkOptions{Host: "beelink", Dial: r.sim.Dial, Endpoint: "simulated"},
		AgentTimeout: 2 * time.Second,
		OnEvent: func(ev provider.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, ev)
		},
	}
	if change != nil {
		change(&o)
	}
	r.Host = New(o)
	t.Cleanup(func() {
		r.Close()
		if err := r.sim.Close(); err != nil {
			t.Errorf("close the simulated host: %v", err)
		}
	})
	return r
}

// bridged is a running guest that is bridged past its host: no lease, and an
// ARP table that never sees it.
func (r *rig) bridged(name, addr string) *simhost.Domain {
	return r.sim.AddDomain(simhost.DomainSpec{
		Name: name, Running: true, NICs: []simhost.NIC{{Bridge: "br0", Addresses: []netip.Prefix{netip.MustParsePrefix(addr)}}},
	})
}

// nat is a running guest on the network "default".
func (r *rig) nat(name string) *simhost.Domain {
	return r.sim.AddDomain(simhost.DomainSpec{Name: name, Running: true})
}

func (r *rig) get(t *testing.T, domain string) (model.Instance, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return r.Get(ctx, provider.GetRequest{Domain: domain, Sources: model.Sources(), Fresh: true})
}

// kinds returns the outcome of each source, in display order.
func kinds(in model.Instance) [3]model.OutcomeKind {
	var k [3]model.OutcomeKind
	for _, o := range in.Outcomes {
		k[o.Source] = o.Kind
	}
	return k
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// soak is n in the tests, and ten times n in `make soak`.
func soak(n int) int {
	if os.Getenv("VIRDECK_SOAK") != "" {
		return 10 * n
	}
	return n
}

// ctx is long enough for every write.
func (r *rig) ctx() context.Context { return context.Background() }
