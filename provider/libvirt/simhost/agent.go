package simhost

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// An Interface is a card as the guest agent lists it.
type Interface struct {
	Name  string
	MAC   string // "" sends none
	Addrs []netip.Prefix
}

// libvirt's special agent timeouts, and the time that the first exchange with
// an agent gets under the default one.
const (
	timeoutBlock   = -2
	timeoutDefault = -1
	syncTimeout    = 5 * time.Second
)

// jobWait is how long a call waits for the job of another on the same domain.
const jobWait = 30 * time.Second

// withAgent carries out a read from the agent: it takes the domain's agent job,
// waits for the agent, and returns what it lists. Order and codes are those of
// the QEMU driver. The context is the daemon's.
func (d *Domain) withAgent(ctx context.Context) ([]Interface, *Error) {
	d.h.mu.Lock()
	job := d.guest.job // the same for all its life, beside what is not
	d.h.mu.Unlock()
	wait := time.NewTimer(jobWait)
	defer wait.Stop()
	select {
	case job <- struct{}{}:
	default:
		select {
		case job <- struct{}{}:
		case <-wait.C:
			return nil, fail(fromQEMU, libvirt.ErrOperationTimeout, "cannot acquire state change lock "+
				"(held by agent=remoteDispatchDomainInterfaceAddresses)")
		case <-ctx.Done():
			return nil, lost()
		}
	}
	defer func() { <-job }()
	return d.askAgent(ctx)
}

func (d *Domain) askAgent(ctx context.Context) ([]Interface, *Error) {
	h := d.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := d.agentUsable(); e != nil {
		return nil, e
	}
	var limit <-chan time.Time
	if t, ok := d.agentLimit(); ok {
		timer := time.NewTimer(t)
		defer timer.Stop()
		limit = timer.C
	}
	for d.guest.agent == agentHung || d.state == libvirt.DomainPaused {
		run, changed := d.id, d.change()
		h.mu.Unlock()
		var e *Error
		select {
		case <-changed:
		case <-limit:
			e = fail(fromQEMU, libvirt.ErrAgentUnresponsive, "Guest agent not available for now")
		case <-ctx.Done():
			e = lost()
		}
		h.mu.Lock()
		if e != nil {
			return nil, e
		}
		if d.id != run || d.guest.agent == agentDown {
			return nil, fail(fromQEMU, libvirt.ErrAgentUnresponsive,
				"Guest agent disappeared while executing command")
		}
	}
	d.guest.synced = true
	return d.agentInterfaces(), nil
}

// agentUsable is what the driver checks before it talks.
func (d *Domain) agentUsable() *Error {
	switch {
	case d.state != libvirt.DomainRunning:
		return fail(fromQEMU, libvirt.ErrOperationInvalid, "domain is not running")
	case d.spec.NoAgentChannel:
		return fail(fromQEMU, libvirt.ErrArgumentUnsupported, "QEMU guest agent is not configured")
	case d.guest.agent == agentDown:
		return fail(fromQEMU, libvirt.ErrAgentUnresponsive, "QEMU guest agent is not connected")
	}
	return nil
}

// agentLimit is how long the agent may take; false means for ever. A synced
// agent is not asked to sync again, and its command has no limit by default.
func (d *Domain) agentLimit() (time.Duration, bool) {
	switch t := d.guest.timeout; {
	case t >= 0:
		return time.Duration(t) * time.Second, true
	case t == timeoutBlock, d.guest.synced:
		return 0, false
	default:
		return syncTimeout, true
	}
}

// agentInterfaces is what the agent lists: lo always comes first.
func (d *Domain) agentInterfaces() []Interface {
	if d.guest.overridden {
		return slices.Clone(d.guest.override)
	}
	out := []Interface{{
		Name: "lo", MAC: "00:00:00:00:00:00",
		Addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8"), netip.MustParsePrefix("::1/128")},
	}}
	for i, n := range d.nics {
		card := Interface{Name: fmt.Sprintf("eth%d", i), MAC: n.mac}
		if d.guest.net && d.guest.agentLists {
			card.Addrs = append(slices.Clone(n.addrs), linkLocal(n.mac)...)
		}
		out = append(out, card)
	}
	return out
}

// linkLocal is the card's own IPv6 address by the modified EUI-64 rule.
func linkLocal(mac string) []netip.Prefix {
	var m [6]byte
	if n, err := fmt.Sscanf(mac, "%02x:%02x:%02x:%02x:%02x:%02x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]); n != 6 || err != nil {
		return nil
	}
	a := netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
	return []netip.Prefix{netip.PrefixFrom(a, 64)}
}

// lost is the answer of a call whose daemon is ending; nobody reads it.
func lost() *Error { return fail(fromQEMU, libvirt.ErrInternalError, "daemon is ending") }
