package libvirt_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt"
	"virdeck/provider/libvirt/simhost"
	"virdeck/provider/providertest"
)

// realRecord is what a real daemon said to the same suite. The lab's run of the
// suite writes it.
const realRecord = "testdata/contract-real.json"

// The contract, on a simulated host in virtual time: every case runs, each
// source gives each kind of outcome that it can, and what is said is what a real
// daemon says.
func TestContract(t *testing.T) {
	rec := providertest.Run(t, simRig, providertest.In(synctest.Test))
	for _, name := range rec.Lacking {
		t.Errorf("a simulated host can be brought into every situation, and not into %q", name)
	}
	if t.Failed() {
		return
	}
	for _, src := range model.Sources() {
		for _, kind := range []model.OutcomeKind{
			model.OutcomeAddresses, model.OutcomeEmpty, model.OutcomeFailed, model.OutcomeNotAsked, model.OutcomeNotApplicable,
		} {
			if !rec.Says(src, kind) {
				t.Errorf("no case has seen %v say %q", src, kind)
			}
		}
	}
	said, daemon, err := providertest.ReadFile(realRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.Logf("no record of a real daemon to compare with: %v", err)
	case err != nil:
		t.Error(err)
	default:
		for _, line := range providertest.Compare(rec.All(), said) {
			t.Errorf("compared with %s: %s", daemon, line)
		}
	}
}

// sim is a simulated host as a rig.
type sim struct {
	host   *simhost.Host
	prov   *libvirt.Host
	guests map[providertest.Guest]*simhost.Domain

	mu     sync.Mutex
	events []provider.Event
}

var _ providertest.BuildRig = (*sim)(nil)

func simRig(t *testing.T) providertest.Rig {
	t.Helper()
	s := &sim{host: simhost.New(simhost.Options{Name: "sim"})}
	s.host.AddVolume("default", simhost.VolumeSpec{Name: "base.qcow2", Format: "qcow2", Capacity: 1 << 30})
	s.guests = map[providertest.Guest]*simhost.Domain{
		providertest.NAT: s.host.AddDomain(simhost.DomainSpec{Name: "nat", Running: true}),
		providertest.Bridged: s.host.AddDomain(simhost.DomainSpec{Name: "lan", Running: true,
			NICs: []simhost.NIC{{Bridge: "br0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.21/24")}}}}),
		providertest.NoAgent: s.host.AddDomain(simhost.DomainSpec{Name: "mute", Running: true, NoAgentChannel: true}),
		providertest.Off:     s.host.AddDomain(simhost.DomainSpec{Name: "off"}),
	}
	s.prov = libvirt.New(libvirt.Options{
		Link:         libvirt.LinkOptions{Host: "sim", Dial: s.host.Dial, Endpoint: "simulated"},
		AgentTimeout: 2 * time.Second,
		OnEvent: func(ev provider.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, ev)
		},
	})
	t.Cleanup(func() {
		s.prov.Close()
		if err := s.host.Close(); err != nil {
			t.Errorf("close the simulated host: %v", err)
		}
	})
	return s
}

func (s *sim) Host() provider.Host { return s.prov }

func (s *sim) Builder() provider.Builder { return s.prov }

func (s *sim) Build(proxy string) provider.Build {
	return provider.Build{
		Owner: model.Owner{Fleet: "contract", Proxy: model.ProxyName(proxy), UID: "uid-" + proxy, Controller: "c-1", SpecHash: "s", CreatedAt: time.Unix(1e9, 0).UTC()},
		Spec: model.BuildSpec{
			Template: model.Template{
				VCPUs: 1, MemoryMB: 128, Storage: "default", Network: "default", VirtType: "qemu",
				Base: model.BaseImage{Volume: "base.qcow2", Format: "qcow2"},
			},
			Hostname: proxy, Port: 8080, Creds: model.Credentials{User: proxy, Password: "secret"},
		},
	}
}

func (s *sim) Left() []string {
	var out []string
	for _, d := range s.host.Domains() {
		out = append(out, d.Name())
	}
	out = append(out, s.host.Volumes("default")...)
	return slices.DeleteFunc(out, func(n string) bool { return !strings.HasPrefix(n, "contract-") })
}

func (s *sim) Foreign(domain string) error {
	s.host.AddDomain(simhost.DomainSpec{Name: domain})
	return nil
}

func (s *sim) Name(g providertest.Guest) string {
	if d := s.guests[g]; d != nil {
		return d.Name()
	}
	return "nobody"
}

func (s *sim) Address(g providertest.Guest) netip.Addr {
	if d := s.guests[g]; d != nil {
		return d.Addresses()[0]
	}
	return netip.Addr{}
}

func (s *sim) Events() []provider.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]provider.Event(nil), s.events...)
}

func (s *sim) Patience() providertest.Patience {
	return providertest.Patience{
		AtOnce: 10 * time.Millisecond, Call: 3 * time.Second, Agent: 4 * time.Second, Event: time.Second,
		AgentUp: 2 * time.Second, Boot: 6 * time.Second, Stop: 15 * time.Second,
		Frozen: 6 * time.Second, Forced: 2 * time.Second, Recover: 5 * time.Second, Shared: 150 * time.Millisecond, Interval: 20 * time.Millisecond,
	}
}

func (s *sim) Do(f providertest.Fault, g providertest.Guest) error {
	d := s.guests[g]
	switch f {
	case providertest.AgentStop:
		d.AgentStop()
	case providertest.AgentStart:
		d.AgentStart()
	case providertest.AgentHang:
		d.AgentHang()
	case providertest.AgentThaw:
		d.AgentThaw()
	case providertest.DaemonKill:
		s.host.Kill()
	case providertest.DaemonStart:
		return s.host.Start()
	case providertest.DaemonFreeze:
		s.host.Freeze()
	case providertest.DaemonThaw:
		s.host.Thaw()
	case providertest.DomainStart:
		return d.Start()
	case providertest.DomainDestroy:
		return d.Destroy()
	case providertest.DomainPause:
		d.Pause(golibvirt.DomainPausedUser)
	case providertest.DomainResume:
		d.Resume()
	case providertest.AgentBare:
		d.SetAgentInterfaces([]simhost.Interface{{Name: "lo", MAC: "00:00:00:00:00:00"}, {Name: "eth0", MAC: d.MAC()}})
	case providertest.LeaseLose:
		d.LoseLease()
	case providertest.ARPFail:
		s.host.SetARPError(simhost.ARPNoBuffer)
	case providertest.Refused:
		s.host.Inject(simhost.Fault{
			Proc: simhost.ProcDomainInterfaceAddresses, Domain: d.Name(),
			Error: simhost.Error{Code: golibvirt.ErrInvalidArg, Message: "invalid argument"},
		})
	case providertest.NetworkGone:
		s.host.UndefineNetwork("default")
	default:
		return fmt.Errorf("%w: %s", errors.ErrUnsupported, f)
	}
	return nil
}
