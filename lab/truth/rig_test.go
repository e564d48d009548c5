//go:build lab

package truth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider"
	"virdeck/provider/libvirt"
	"virdeck/provider/providertest"
)

// rig is a host of the lab as a rig of the contract. The guests are the same
// from case to case; a case's end repairs what the case did.
type rig struct {
	t    *testing.T
	h    *labHost
	prov *libvirt.Host

	mu       sync.Mutex
	events   []provider.Event
	building bool // VMs may have to be swept away

	owed  map[owing]bool // what must still be done to be sound again
	mends []func() error // the same, for faults that have no opposite
}

type owing struct {
	fault providertest.Fault
	guest guest
}

var _ providertest.Rig = (*rig)(nil)

// rig makes one; a host has one at a time.
func (h *labHost) rig(tr libvirt.Transport) func(*testing.T) providertest.Rig {
	return func(t *testing.T) providertest.Rig {
		t.Helper()
		r := &rig{t: t, h: h, owed: map[owing]bool{}}
		// The agent's state is not the provider's to know: it begins sound.
		for _, g := range []guest{providertest.NAT, providertest.Bridged} {
			if err := h.responds(g, 20*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		r.prov = h.open(t, tr, func(o *libvirt.Options) {
			o.OnEvent = func(ev provider.Event) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.events = append(r.events, ev)
			}
		})
		t.Cleanup(func() {
			r.prov.Close()
			if err := r.repair(); err != nil {
				t.Errorf("repairing %s: %v", h.name, err)
			}
		})
		return r
	}
}

func (r *rig) Host() provider.Host { return r.prov }

func (r *rig) Name(g guest) string { return domain(g) }

func (r *rig) Address(g guest) netip.Addr { return r.h.addrs[g] }

func (r *rig) Events() []provider.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]provider.Event(nil), r.events...)
}

// Patience is virdeck's own promise where it alone decides. Two hosts and their
// guests share two cores.
func (r *rig) Patience() providertest.Patience {
	return providertest.Patience{
		AtOnce: 250 * time.Millisecond, Call: 5 * time.Second, Agent: 6 * time.Second, Event: 5 * time.Second,
		AgentUp: 20 * time.Second, Boot: 40 * time.Second, Stop: 40 * time.Second,
		Frozen: 6 * time.Second, Forced: 2 * time.Second, Recover: 8 * time.Second, Shared: 150 * time.Millisecond, Interval: 40 * time.Millisecond,
	}
}

// opposite is the fault that ends another one.
func opposite(f providertest.Fault) (providertest.Fault, bool) {
	switch f {
	case providertest.AgentStop:
		return providertest.AgentStart, true
	case providertest.AgentHang:
		return providertest.AgentThaw, true
	case providertest.DaemonKill:
		return providertest.DaemonStart, true
	case providertest.DaemonFreeze:
		return providertest.DaemonThaw, true
	case providertest.DomainPause:
		return providertest.DomainResume, true
	default: // the opposites themselves, and what mends knows
		return 0, false
	}
}

// Do implements providertest.Rig.
func (r *rig) Do(f providertest.Fault, g guest) error {
	if back, ok := opposite(f); ok {
		r.owed[owing{back, g}] = true
	}
	if err := r.strike(f, g); err != nil {
		return err
	}
	delete(r.owed, owing{f, g})
	return nil
}

func (r *rig) strike(f providertest.Fault, g guest) error {
	switch f {
	case providertest.AgentStop:
		return r.ctl("agent", domain(g), "stop")
	case providertest.AgentStart:
		return r.ctl("agent", domain(g), "start")
	case providertest.AgentHang:
		return r.ctl("agent", domain(g), "freeze")
	case providertest.AgentThaw:
		return r.ctl("agent", domain(g), "thaw")
	case providertest.DaemonKill:
		return r.ctl("libvirtd", "kill")
	case providertest.DaemonStart:
		return r.ctl("libvirtd", "start")
	case providertest.DaemonFreeze:
		return r.ctl("libvirtd", "freeze")
	case providertest.DaemonThaw:
		return r.ctl("libvirtd", "thaw")
	case providertest.DomainStart:
		return r.h.behind(g, (*golibvirt.Libvirt).DomainCreate)
	case providertest.DomainDestroy:
		return r.h.behind(g, (*golibvirt.Libvirt).DomainDestroy)
	case providertest.DomainPause:
		return r.h.behind(g, (*golibvirt.Libvirt).DomainSuspend)
	case providertest.DomainResume:
		return r.h.behind(g, (*golibvirt.Libvirt).DomainResume)
	case providertest.AgentBare:
		return r.bare(g)
	case providertest.LeaseLose:
		return r.loseLease(g)
	case providertest.ARPFail:
		r.mends = append(r.mends, func() error { return r.ctl("arp", "ok") })
		return r.ctl("arp", "fail")
	case providertest.NetworkGone:
		return r.networkGone()
	case providertest.Refused: // no daemon gives code 8 for a read that is sound
	}
	return fmt.Errorf("%w: %s", errors.ErrUnsupported, f)
}

func (r *rig) ctl(args ...string) error {
	out, err := r.h.ctl(args...)
	if err != nil {
		return fmt.Errorf("ctl.sh %s %s: %w\n%s", r.h.name, strings.Join(args, " "), err, out)
	}
	return nil
}

// bare takes a guest's addresses from it, for a while.
func (r *rig) bare(g guest) error {
	p := r.h.nets[g]
	gateway := p.Masked().Addr().Next() // by the lab's rule
	r.mends = append(r.mends, func() error {
		return r.ctl("guest", domain(g), fmt.Sprintf("ip addr add %s dev eth0; ip route add default via %s dev eth0", p, gateway))
	})
	return r.ctl("guest", domain(g), "ip addr flush dev eth0")
}

// leases is the file in which libvirt's DHCP helper keeps the leases of the
// network "default".
func (h *labHost) leases() string { return h.dir("lib", "dnsmasq", "virbr0.status") }

// loseLease takes a guest's lease out of it, for a while.
func (r *rig) loseLease(g guest) error {
	all, err := r.keepLeases()
	if err != nil {
		return err
	}
	var entries []map[string]any
	if err := json.Unmarshal(all, &entries); err != nil {
		return fmt.Errorf("leases of %s: %w", r.h.name, err)
	}
	var others []map[string]any
	for _, e := range entries {
		if e["ip-address"] != r.h.addrs[g].String() {
			others = append(others, e)
		}
	}
	if len(others) == len(entries) {
		return fmt.Errorf("%s has no lease on %s: %s", domain(g), r.h.name, all)
	}
	data, err := json.Marshal(others)
	if err != nil {
		return err
	}
	return os.WriteFile(r.h.leases(), data, 0o644) //nolint:gosec // libvirt's own mode
}

// keepLeases returns the leases as they are, and writes them back in the end.
func (r *rig) keepLeases() ([]byte, error) {
	all, err := os.ReadFile(r.h.leases())
	if err != nil {
		return nil, err
	}
	r.mends = append(r.mends, func() error { return os.WriteFile(r.h.leases(), all, 0o644) }) //nolint:gosec // as above
	return all, nil
}

// networkGone takes the network "default" away under its guests, for a while.
// Its bridge goes with it, so the guests' taps are put back by hand; so is the
// rule that lets the console reach them, in front of libvirt's new ones. What
// the host knew of its neighbours on that bridge is gone as well, until it has
// spoken to them.
func (r *rig) networkGone() error {
	// The leases go with the network, and must be back before its DHCP server.
	if _, err := r.keepLeases(); err != nil {
		return err
	}
	taps, err := r.h.ctl("sh", "ls", "/sys/class/net/virbr0/brif")
	if err != nil {
		return fmt.Errorf("taps of %s: %w\n%s", r.h.name, err, taps)
	}
	allow := fmt.Sprintf("FORWARD -i mgmt0 -d 10.78.%d.0/24 -j ACCEPT", r.h.number)
	back := "iptables -w -D " + allow + " && iptables -w -I " + allow
	for tap := range strings.FieldsSeq(taps) {
		back += " && ip link set " + tap + " master virbr0"
	}
	for _, g := range []guest{providertest.NAT, providertest.NoAgent} {
		back += fmt.Sprintf(" && timeout 5 bash -c ': </dev/tcp/%s/3128'", r.h.addrs[g])
	}
	r.mends = append(r.mends, func() error {
		return errors.Join(
			r.ctl("virsh", "net-define "+r.h.dir("net.xml")+"; net-autostart default; net-start default"),
			r.ctl("sh", "bash", "-c", back))
	})
	return r.ctl("virsh", "net-destroy default; net-undefine default")
}

// repair makes the host sound again: the daemon first, then domains, then what
// is inside the guests.
func (r *rig) repair() error {
	var errs []error
	finish := func(faults ...providertest.Fault) {
		for _, f := range faults {
			for o := range r.owed {
				if o.fault == f && (o.guest != providertest.Off || f == providertest.DaemonStart || f == providertest.DaemonThaw) {
					errs = append(errs, r.strike(f, o.guest))
				}
			}
		}
	}
	finish(providertest.DaemonThaw, providertest.DaemonStart)
	errs = append(errs, r.h.switchOff())
	finish(providertest.DomainResume)
	for _, mend := range r.mends {
		errs = append(errs, mend())
	}
	finish(providertest.AgentThaw, providertest.AgentStart)
	return errors.Join(errs...)
}

// switchOff ends the guest that is off between the tests, with all that was
// done inside it.
func (h *labHost) switchOff() error {
	return h.behind(providertest.Off, func(l *golibvirt.Libvirt, d golibvirt.Domain) error {
		active, err := l.DomainIsActive(d)
		if err != nil || active == 0 {
			return err
		}
		return l.DomainDestroy(d)
	})
}
