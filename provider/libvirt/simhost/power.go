package simhost

import (
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// PowerOff ends the whole host at once, as a power cut does: the daemon is
// killed, every guest stops, and nobody is told. [Host.Start] boots it: domain
// IDs are counted from 1 again, domains with Autostart go through their boot
// stages in the order in which they were defined, and the others are off.
// Transient domains are gone; leases are kept in their file.
func (h *Host) PowerOff() {
	h.Kill()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.off {
		return
	}
	h.off = true
	for _, d := range append([]*Domain(nil), h.domains...) {
		if d.active() {
			d.deactivate(int32(libvirt.DomainShutoffUnknown), libvirt.DomainEventStoppedFailed)
		}
	}
}

// bootUp is what the host does before its daemon listens. The caller holds h.mu.
func (h *Host) bootUp() {
	h.off = false
	h.boot = time.Now()
	h.nextID, h.vnet = 0, 0
	for _, d := range h.domains {
		if d.autostart {
			_ = d.start(false) // one that cannot start stays off, as on a real host
		}
	}
}

// SetNetworkActive stops a network (false) or starts it again (true); without
// effect when there is none. While it is stopped its bridge is gone, and the
// neighbours on it; reads of its leases, and starts of domains on it, give code
// 55.
func (h *Host) SetNetworkActive(name string, active bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.network(name); n != nil {
		n.active = active
	}
}

func (n *network) inactive() *Error {
	return fail(fromNetwork, libvirt.ErrOperationInvalid, "network '%s' is not active", n.spec.Name)
}
