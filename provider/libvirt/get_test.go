package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

const (
	none   = model.OutcomeNone
	addrs  = model.OutcomeAddresses
	empty  = model.OutcomeEmpty
	fail   = model.OutcomeFailed
	notAsk = model.OutcomeNotAsked
	notApp = model.OutcomeNotApplicable
)

// The incident, first half: on a host whose guests are bridged past it a normal
// boot looks like this, and it is neither an error nor a running proxy.
func TestGet_agentFailsAndARPEmptyIsProvisioning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.bridged("p-01", "10.0.0.21/24").AgentStop()
		in, err := r.get(t, "p-01")
		if err != nil {
			t.Fatalf("Get: %v, want a successful instance in provisioning", err)
		}
		if in.State != model.InstanceProvisioning || in.Address.IsValid() {
			t.Errorf("state %v, address %v; want provisioning and none", in.State, in.Address)
		}
		if got, want := kinds(in), [3]model.OutcomeKind{notApp, fail, empty}; got != want {
			t.Errorf("outcomes %v, want %v", got, want)
		}
		if o := in.Outcomes[1]; o.Code != provider.CodeAgentUnresponsive {
			t.Errorf("agent code %d, want 86", o.Code)
		}
	})
}

// The incident, second half: nobody answered, so nothing is known.
func TestGet_everyAddressSourceFailingIsTransient(t *testing.T) {
	t.Run("both sources erroring", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, simhost.Options{}, nil)
			r.bridged("p-01", "10.0.0.21/24").AgentStop()
			// Not 86: that is the agent's code, and ARP cannot give it.
			r.sim.SetARPError("internal error: some other netlink trouble")
			in, err := r.get(t, "p-01")
			if !errors.Is(err, provider.ErrTransient) {
				t.Fatalf("Get: %v, want ErrTransient", err)
			}
			if got, want := kinds(in), [3]model.OutcomeKind{notApp, fail, fail}; got != want {
				t.Errorf("outcomes %v, want %v", got, want)
			}
			for _, want := range []string{"host beelink: domain p-01: ", "agent: code 86: ", "arp: code 1: "} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	})
	t.Run("with a code that would be permanent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, simhost.Options{}, nil)
			r.bridged("p-01", "10.0.0.21/24")
			r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainInterfaceAddresses, Error: simhost.Error{Code: golibvirt.ErrInvalidArg, Message: "invalid argument"}})
			_, err := r.get(t, "p-01")
			if got := provider.Classify(err); got != provider.ClassTransient {
				t.Fatalf("Get: %v is %v, want transient: a read condemns nobody", err, got)
			}
		})
	})
	t.Run("the pooled link dying under the read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, simhost.Options{}, nil)
			r.nat("p-01")
			if _, err := r.get(t, "p-01"); err != nil {
				t.Fatalf("before: %v", err)
			}
			// The lease would name an address; then the connection goes under
			// the ARP call, and the agent must not be asked any more.
			r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainInterfaceAddresses, Kind: simhost.FaultCutBefore, Times: 1})
			r.sim.ResetCalls()
			in, err := r.get(t, "p-01")
			if !errors.Is(err, provider.ErrTransient) || !errors.Is(err, provider.ErrLinkDown) {
				t.Fatalf("Get: %v, want ErrLinkDown", err)
			}
			if in.State == model.InstanceRunning || in.State == model.InstanceProvisioning || in.Address.IsValid() {
				t.Errorf("state %v, address %v: concluded from a dead link", in.State, in.Address)
			}
			if n := r.sim.Calls()[simhost.ProcDomainInterfaceAddresses]; n != 1 {
				t.Errorf("%d sources were asked through a dead link, want 1", n)
			}
		})
	})
	t.Run("a link that is dead already", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, simhost.Options{}, nil)
			r.nat("p-01")
			if _, err := r.get(t, "p-01"); err != nil {
				t.Fatalf("before: %v", err)
			}
			r.sim.Kill()
			synctest.Wait()
			start := time.Now()
			_, err := r.get(t, "p-01")
			if !errors.Is(err, provider.ErrLinkDown) {
				t.Errorf("Get: %v, want ErrLinkDown", err)
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("took %s; a dead link says so at once", d)
			}
		})
	})
}

// A host that refuses a read, with whatever code, is a misconfigured host; it
// condemns none of its guests.
func TestReads_neverPermanent(t *testing.T) {
	for _, proc := range []simhost.Proc{simhost.ProcConnectGetAllDomainStats, simhost.ProcDomainGetXMLDesc, simhost.ProcDomainInterfaceAddresses} {
		for _, code := range []golibvirt.ErrorNumber{golibvirt.ErrInvalidArg, golibvirt.ErrAccessDenied, golibvirt.ErrNoSupport, golibvirt.ErrOperationDenied} {
			t.Run(fmt.Sprint(proc, " ", code), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, simhost.Options{}, nil)
					r.bridged("p-01", "10.0.0.21/24")
					r.sim.Inject(simhost.Fault{Proc: proc, Error: simhost.Error{Code: code, Message: "no"}})
					_, err := r.get(t, "p-01")
					if got := provider.Classify(err); got != provider.ClassTransient || !errors.Is(err, provider.ErrTransient) {
						t.Errorf("Get: %v is %v, want transient, explicitly", err, got)
					}
					if _, err := r.List(t.Context()); provider.Classify(err) != provider.ClassNone && provider.Classify(err) != provider.ClassTransient {
						t.Errorf("List: %v", err)
					}
				})
			})
		}
	}
}

func TestGet_sources(t *testing.T) {
	lan := func(mac string) []simhost.NIC {
		return []simhost.NIC{{Bridge: "br0", MAC: mac, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.21/24")}}}
	}
	ifc := func(name, mac string, addrs ...string) simhost.Interface {
		i := simhost.Interface{Name: name, MAC: mac}
		for _, a := range addrs {
			i.Addrs = append(i.Addrs, netip.MustParsePrefix(a))
		}
		return i
	}
	const mac = "52:54:00:aa:bb:cc"
	tests := []struct {
		name  string
		spec  simhost.DomainSpec
		prep  func(*rig, *simhost.Domain)
		state model.InstanceState
		addr  string
		kinds [3]model.OutcomeKind
		err   error
	}{
		{name: "NAT: lease and agent and arp", spec: simhost.DomainSpec{Running: true},
			state: model.InstanceRunning, addr: "192.168.122.2", kinds: [3]model.OutcomeKind{addrs, addrs, addrs}},
		{name: "bridged: the agent alone", spec: simhost.DomainSpec{Running: true, NICs: lan("")},
			state: model.InstanceRunning, addr: "10.0.0.21", kinds: [3]model.OutcomeKind{notApp, addrs, empty}},
		{name: "no agent channel", spec: simhost.DomainSpec{Running: true, NoAgentChannel: true},
			state: model.InstanceRunning, addr: "192.168.122.2", kinds: [3]model.OutcomeKind{addrs, notApp, addrs}},
		{name: "MAC in upper case", spec: simhost.DomainSpec{Running: true, NICs: lan("52:54:00:AA:BB:CC")},
			state: model.InstanceRunning, addr: "10.0.0.21", kinds: [3]model.OutcomeKind{notApp, addrs, empty}},
		{name: "docker0, lo and link-local never match", spec: simhost.DomainSpec{Running: true, NICs: lan(mac)},
			prep: func(_ *rig, d *simhost.Domain) {
				d.SetAgentInterfaces([]simhost.Interface{
					ifc("lo", "00:00:00:00:00:00", "127.0.0.1/8", "::1/128"), ifc("docker0", "02:42:ac:11:00:01", "172.17.0.1/16"),
					ifc("eth0", mac, "169.254.7.7/16", "fe80::1/64"),
				})
			},
			state: model.InstanceProvisioning, kinds: [3]model.OutcomeKind{notApp, empty, empty}},
		{name: "an interface without a MAC", spec: simhost.DomainSpec{Running: true, NICs: lan(mac)},
			prep: func(_ *rig, d *simhost.Domain) {
				d.SetAgentInterfaces([]simhost.Interface{ifc("tun0", "", "10.8.0.2/24")})
			},
			state: model.InstanceProvisioning, kinds: [3]model.OutcomeKind{notApp, empty, empty}},
		{name: "the agent has just connected: lo, and eth0 without addresses", spec: simhost.DomainSpec{Running: true, NICs: lan(mac)},
			prep: func(_ *rig, d *simhost.Domain) {
				d.SetAgentInterfaces([]simhost.Interface{ifc("lo", "00:00:00:00:00:00", "127.0.0.1/8"), ifc("eth0", mac)})
			},
			state: model.InstanceProvisioning, kinds: [3]model.OutcomeKind{notApp, empty, empty}},
		{name: "no NIC at all", spec: simhost.DomainSpec{Running: true, NICs: []simhost.NIC{}},
			state: model.InstanceProvisioning, kinds: [3]model.OutcomeKind{notApp, empty, notApp}},
		{name: "no NIC and no agent: nobody can know", spec: simhost.DomainSpec{Running: true, NICs: []simhost.NIC{}, NoAgentChannel: true},
			kinds: [3]model.OutcomeKind{notApp, notApp, notApp}, err: provider.ErrTransient},
		{name: "a network without DHCP has no leases to ask for", spec: simhost.DomainSpec{Running: true, NICs: []simhost.NIC{
			{Network: "static", Addresses: []netip.Prefix{netip.MustParsePrefix("10.5.0.9/24")}}}},
			prep: func(r *rig, _ *simhost.Domain) {
				r.sim.AddNetwork(simhost.NetworkSpec{Name: "static", Bridge: "virbr7", Gateway: netip.MustParsePrefix("10.5.0.1/24"), NoDHCP: true})
			},
			state: model.InstanceRunning, addr: "10.5.0.9", kinds: [3]model.OutcomeKind{notApp, addrs, addrs}},
		{name: "arp unreadable, wrong length: taken as empty", spec: simhost.DomainSpec{Running: true, NICs: lan("")},
			prep: func(r *rig, d *simhost.Domain) {
				d.AgentStop()
				r.sim.SetARPError(simhost.ARPWrongLength)
			},
			state: model.InstanceProvisioning, kinds: [3]model.OutcomeKind{notApp, fail, empty}},
		{name: "arp unreadable, malformed: taken as empty", spec: simhost.DomainSpec{Running: true, NICs: lan("")},
			prep: func(r *rig, d *simhost.Domain) {
				d.AgentStop()
				r.sim.SetARPError(simhost.ARPMalformed)
			},
			state: model.InstanceProvisioning, kinds: [3]model.OutcomeKind{notApp, fail, empty}},
		{name: "the agent hangs: seconds, not for ever", spec: simhost.DomainSpec{Running: true, NICs: lan("")},
			prep:  func(_ *rig, d *simhost.Domain) { d.AgentHang() },
			state: model.InstanceProvisioning, kinds: [3]model.OutcomeKind{notApp, fail, empty}},
		{name: "paused: nobody is asked", spec: simhost.DomainSpec{Running: true},
			prep:  func(_ *rig, d *simhost.Domain) { d.Pause(golibvirt.DomainPausedIoerror) },
			state: model.InstancePaused, kinds: [3]model.OutcomeKind{none, none, none}},
		{name: "shut off", spec: simhost.DomainSpec{}, state: model.InstanceStopped, kinds: [3]model.OutcomeKind{none, none, none}},
		{name: "not there", spec: simhost.DomainSpec{Running: true},
			prep: func(_ *rig, d *simhost.Domain) { d.Crash(); d.Undefine() }, err: provider.ErrNotFound},
		{name: "renamed", spec: simhost.DomainSpec{},
			prep: func(_ *rig, d *simhost.Domain) { _ = d.Rename("other") }, err: provider.ErrNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, simhost.Options{}, nil)
				tt.spec.Name = "p-01"
				if tt.prep != nil && len(tt.spec.NICs) == 1 && tt.spec.NICs[0].Network == "static" {
					tt.prep(r, nil)
					tt.prep = nil
				}
				d := r.sim.AddDomain(tt.spec)
				if tt.prep != nil {
					tt.prep(r, d)
				}
				in, err := r.get(t, "p-01")
				if !errors.Is(err, tt.err) || (tt.err == nil && err != nil) {
					t.Fatalf("Get: %v, want %v", err, tt.err)
				}
				got := ""
				if in.Address.IsValid() {
					got = in.Address.String()
				}
				if in.State != tt.state || got != tt.addr {
					t.Errorf("state %v address %q, want %v %q", in.State, got, tt.state, tt.addr)
				}
				if k := kinds(in); k != tt.kinds {
					t.Errorf("outcomes %v, want %v", k, tt.kinds)
				}
			})
		})
	}
}

func TestGet_brokenARPFlagsTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.bridged("p-01", "10.0.0.21/24")
		r.sim.SetARPError(simhost.ARPWrongLength)
		if _, err := r.get(t, "p-01"); err != nil {
			t.Fatal(err)
		}
		l, err := r.List(t.Context())
		if err != nil || !l.ARPBroken {
			t.Errorf("ARPBroken %v, %v; want the host flagged", l.ARPBroken, err)
		}
	})
}

// A caller's deadline is the caller's alone: the link lives, and the neighbour
// does not notice.
func TestGet_callersDeadlineLeavesTheLinkAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, func(o *Options) { o.AgentTimeout = 0 })
		sick := r.bridged("p-01", "10.0.0.21/24")
		r.bridged("p-02", "10.0.0.22/24")
		if _, err := r.get(t, "p-02"); err != nil {
			t.Fatal(err)
		}
		sick.AgentHang()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.Get(ctx, provider.GetRequest{Domain: "p-01", Sources: model.Sources()})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get of the sick one: %v, want its own deadline", err)
		}
		in, err := r.get(t, "p-02")
		if err != nil || in.Address != addr("10.0.0.22") {
			t.Errorf("the neighbour: %v, %v", in.Address, err)
		}
		if g := r.Link().Generation; g != 1 {
			t.Errorf("generation %d, want 1: a caller's deadline closed the link", g)
		}
		// The hung call still holds the domain's agent: asking again is refused
		// here, and says nothing about the guest.
		in, err = r.get(t, "p-01")
		if !errors.Is(err, provider.ErrNotAsked) {
			t.Errorf("second Get: %v, want ErrNotAsked", err)
		}
		if k := kinds(in); k[model.SourceAgent] != notAsk {
			t.Errorf("agent outcome %v, want not asked", k[model.SourceAgent])
		}
	})
}
