package libvirt_test

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt"
	"virdeck/provider/libvirt/simhost"
)

// A hundred guests whose address nobody knows cost an agent call each, and on
// the host's side an ARP call each; the rest is shared, or read once.
func TestGet_unaddressedCostOneAgentCallEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		sim := unaddressed(n)
		prov := libvirt.New(libvirt.Options{
			Link: libvirt.LinkOptions{Host: "sim", Dial: sim.Dial, Endpoint: "simulated"}, AgentTimeout: 2 * time.Second,
		})
		t.Cleanup(func() {
			prov.Close()
			if err := sim.Close(); err != nil {
				t.Error(err)
			}
		})
		for round := range 3 {
			sim.ResetCalls()
			for i := range n {
				in, err := prov.Get(t.Context(), provider.GetRequest{Domain: guestName(i), Sources: model.Sources()})
				if err != nil || in.State != model.InstanceProvisioning {
					t.Fatalf("%s: %v, %v; want provisioning", guestName(i), in.State, err)
				}
			}
			asked, calls := sim.Asked(), sim.Calls()
			if a := asked[golibvirt.DomainInterfaceAddressesSrcAgent]; a != n {
				t.Errorf("round %d: %d agent calls for %d guests", round, a, n)
			}
			if a := asked[golibvirt.DomainInterfaceAddressesSrcArp]; a != n {
				t.Errorf("round %d: %d ARP calls for %d guests", round, a, n)
			}
			once := calls[simhost.ProcDomainGetXMLDesc] + calls[simhost.ProcDomainAgentSetResponseTimeout]
			if want := 2 * n; round == 0 && once != want || round > 0 && once != 0 {
				t.Errorf("round %d: %d descriptions and timeouts, want %d in the first round and none later", round, once, want)
			}
			total := 0
			for _, c := range calls {
				total += c
			}
			if round > 0 && total > 2*n+3 {
				t.Errorf("round %d: %d calls, want two a guest and at most three for the host: %v", round, total, calls)
			}
			time.Sleep(5 * time.Second) // virtual: until they are asked again
		}
	})
}

func guestName(i int) string { return fmt.Sprintf("vm-%04d", i) }

// unaddressed is a host of n bridged guests whose agents are not up.
func unaddressed(n int) *simhost.Host {
	h := simhost.New(simhost.Options{Name: "sim"})
	addr := netip.MustParseAddr("10.1.0.1")
	for i := range n {
		h.AddDomain(simhost.DomainSpec{
			Name: guestName(i), Running: true, Boot: simhost.Boot{Agent: -1},
			NICs: []simhost.NIC{{Bridge: "br0", Addresses: []netip.Prefix{netip.PrefixFrom(addr, 16)}}},
		})
		addr = addr.Next()
	}
	return h
}
