package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

const leaseProc = simhost.ProcNetworkGetDhcpLeases

// known makes n NAT guests and reads each once.
func (r *rig) known(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		r.nat(fmt.Sprint("vm", i))
	}
	for i := range n {
		if _, err := r.get(t, fmt.Sprint("vm", i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // their marks
		if _, err := r.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(5 * time.Second)
	r.sim.ResetCalls()
}

// A network whose leases fail is asked once in a listing, whatever the number of
// its guests, and its error answers the next reads of a second.
func TestLeases_failingNetworkIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.known(t, 100)
		defer r.sim.Inject(simhost.Fault{Proc: leaseProc, Error: simhost.Error{Code: golibvirt.ErrSystemError, Message: "no leases file"}})()
		l, err := r.List(t.Context())
		if err != nil || len(l.Instances) != 100 {
			t.Fatalf("%d instances, %v", len(l.Instances), err)
		}
		for _, in := range l.Instances {
			if o := in.Outcomes[0]; o.Kind != fail || o.Code != 38 || o.Message != "no leases file" {
				t.Fatalf("%s: %+v", in.Name, o)
			}
		}
		for i := range 100 {
			if in, err := r.get(t, fmt.Sprint("vm", i)); err != nil || in.State != model.InstanceRunning {
				t.Errorf("%v, %v; the other sources name its address", in.State, err)
			}
		}
		if n := r.sim.Calls()[leaseProc]; n != 1 {
			t.Errorf("leases read %d times, want once", n)
		}
	})
}

// A lease call that hangs costs a listing two seconds once, holds one slot, and
// takes nothing from the reads of others.
func TestLeases_hungNetworkHoldsOneSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.known(t, 100)
		defer r.sim.Inject(simhost.Fault{Proc: leaseProc, Kind: simhost.FaultHang})()
		for round := range 20 {
			start := time.Now()
			l, err := r.List(t.Context())
			if err != nil || l.Instances[0].Outcomes[0].Kind != notAsk {
				t.Fatalf("round %d: %v, %+v", round, err, l.Instances[0].Outcomes)
			}
			limit := leaseShareList
			if round > 1 {
				limit = 0
			}
			if took := time.Since(start); took > limit {
				t.Errorf("round %d: listing took %s, want at most %s", round, took, limit)
			}
			if in, err := r.get(t, "vm7"); err != nil || in.State != model.InstanceRunning {
				t.Errorf("round %d: %v, %v", round, in.State, err)
			}
			time.Sleep(5 * time.Second)
		}
		st := r.Link()
		if n := r.sim.Calls()[leaseProc]; n != 1 || st.InFlight != 1 || st.Generation != 1 {
			t.Errorf("asked %d times, %d in flight, generation %d; want 1, 1, 1", n, st.InFlight, st.Generation)
		}
	})
}

// Where the whole network driver hangs, no more than half of the slots wait for
// it.
func TestLeases_manyHungNetworks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nets []simhost.NetworkSpec
		for i := range 6 {
			nets = append(nets, simhost.NetworkSpec{Name: fmt.Sprint("net", i), Gateway: netip.MustParsePrefix(fmt.Sprintf("10.7%d.0.1/24", i))})
		}
		r := newRig(t, simhost.Options{Networks: nets}, nil)
		for i := range nets {
			r.sim.AddDomain(simhost.DomainSpec{Name: fmt.Sprint("vm", i), Running: true, NICs: []simhost.NIC{{Network: nets[i].Name}}})
		}
		for i := range nets {
			if in, err := r.get(t, fmt.Sprint("vm", i)); err != nil || kinds(in)[0] != addrs {
				t.Fatalf("%v, %v", kinds(in), err)
			}
		}
		time.Sleep(5 * time.Second)
		if l, err := r.List(t.Context()); err != nil || l.Instances[5].Outcomes[0].Kind != addrs {
			t.Errorf("all well: %v, %+v", err, l.Instances[5].Outcomes)
		}
		time.Sleep(5 * time.Second)
		defer r.sim.Inject(simhost.Fault{Proc: leaseProc, Kind: simhost.FaultHang})()
		for range 60 {
			if _, err := r.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if st := r.Link(); st.InFlight != leaseCalls || st.Generation != 1 {
			t.Errorf("%d in flight, generation %d; want %d, 1", st.InFlight, st.Generation, leaseCalls)
		}
	})
}

// A Get with a lease call that hangs still asks the agent, and has its answer
// within its budget.
func TestGet_hungLeaseDoesNotHideTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		d := r.nat("p-01")
		d.HideARP(true)
		if _, err := r.get(t, "p-01"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		defer r.sim.Inject(simhost.Fault{Proc: leaseProc, Kind: simhost.FaultHang})()
		for round, took := range []time.Duration{leaseShare, leaseShare, 0} {
			start := time.Now()
			in, err := r.get(t, "p-01")
			if err != nil || in.Address != addr("192.168.122.2") || in.Won != model.SourceAgent {
				t.Errorf("round %d: %v from %v, %v; want the agent's", round, in.Address, in.Won, err)
			}
			if d := time.Since(start); d != took {
				t.Errorf("round %d took %s, want %s", round, d, took)
			}
			if k := kinds(in); k != [3]model.OutcomeKind{notAsk, addrs, empty} {
				t.Errorf("round %d: %v", round, k)
			}
			time.Sleep(2 * time.Second)
		}
		// With the agent down too: the lease would have known, so nothing is
		// concluded.
		d.AgentStop()
		if in, err := r.get(t, "p-01"); !errors.Is(err, provider.ErrNotAsked) || in.State == model.InstanceProvisioning {
			t.Errorf("%v, %v; want ErrNotAsked", in.State, err)
		}
	})
}

// A guest on two networks of which one cannot be read keeps the other's address.
func TestGet_oneNetworkOfTwoFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := simhost.NetworkSpec{Name: "second", Bridge: "virbr9", Gateway: netip.MustParsePrefix("10.77.0.1/24")}
		r := newRig(t, simhost.Options{Networks: []simhost.NetworkSpec{simhost.DefaultNetwork(), second}}, nil)
		d := r.sim.AddDomain(simhost.DomainSpec{Name: "two", Running: true, NICs: []simhost.NIC{{Network: "default"}, {Network: "second"}}})
		d.AgentStop()
		d.HideARP(true)
		in, err := r.get(t, "two")
		if err != nil || len(in.Candidates) != 2 {
			t.Fatalf("both: %v, %v", in.Candidates, err)
		}
		r.sim.UndefineNetwork("second")
		time.Sleep(2 * time.Second)
		in, err = r.get(t, "two")
		if err != nil || in.State != model.InstanceRunning || in.Address != addr("192.168.122.2") {
			t.Errorf("second gone: %v %v, %v; want the first one's lease", in.State, in.Address, err)
		}
		o := in.Outcomes[0]
		if o.Kind != addrs || o.Message != "network second: code 43: Network not found: no network with matching uuid '91f79191-0ffd-5e1a-921d-823ffad551d4' (second)" {
			t.Errorf("lease: %v, %q", o.Kind, o.Message)
		}
		// Without the first one's lease the second one's failure is all there is.
		d.LoseLease()
		time.Sleep(2 * time.Second)
		in, err = r.get(t, "two")
		if k := kinds(in); err != nil || k[model.SourceLease] != fail || in.Outcomes[0].Code != provider.CodeNoNetwork {
			t.Errorf("no lease: %v, %v", k, err)
		}
		// Defined anew, it is another network, and is found without a redial.
		r.sim.AddNetwork(second)
		d.SetAddress(d.Prefixes()...)
		time.Sleep(2 * time.Second)
		if in, err = r.get(t, "two"); err != nil || len(in.Candidates) != 2 {
			t.Errorf("defined anew: %v, %v", in.Candidates, err)
		}
	})
}

// The codes of the lease call are about the network, not about the domain.
func TestGet_leaseCodesAreTheNetworks(t *testing.T) {
	for _, code := range []golibvirt.ErrorNumber{golibvirt.ErrOperationInvalid, golibvirt.ErrNoDomain, golibvirt.ErrNoNetwork} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, simhost.Options{}, nil)
				r.nat("p-01")
				defer r.sim.Inject(simhost.Fault{Proc: leaseProc, Error: simhost.Error{Code: code, Message: "network 'default' is not active"}})()
				in, err := r.get(t, "p-01")
				if err != nil || in.State != model.InstanceRunning || in.Won != model.SourceAgent {
					t.Errorf("%v from %v, %v; want the agent's answer", in.State, in.Won, err)
				}
				if k := kinds(in); k != [3]model.OutcomeKind{fail, addrs, addrs} {
					t.Errorf("outcomes %v", k)
				}
			})
		})
	}
}

// The limit of a read that callers share is nobody's deadline.
func TestReads_ourLimitIsNobodysDeadline(t *testing.T) {
	for want, read := range map[string]func(context.Context, *rig) error{
		"host beelink: list domains: no answer within 5s": func(ctx context.Context, r *rig) error {
			_, err := r.List(ctx)
			return err
		},
		"host beelink: domain p-01: list domains: no answer within 5s": func(ctx context.Context, r *rig) error {
			_, err := r.Get(ctx, provider.GetRequest{Domain: "p-01", Fresh: true})
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, simhost.Options{}, nil)
			r.nat("p-01")
			if _, err := r.get(t, "p-01"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			defer r.sim.Inject(simhost.Fault{Proc: simhost.ProcConnectGetAllDomainStats, Kind: simhost.FaultHang})()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := read(ctx, r); err == nil || err.Error() != want || !errors.Is(err, provider.ErrTransient) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want %q, transient", err, want)
			}
		})
	}
}
