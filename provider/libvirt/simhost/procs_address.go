package simhost

import (
	"net/netip"
	"strings"

	libvirt "github.com/digitalocean/go-libvirt"
)

// addressProcs serve the three sources of a guest's addresses.
func addressProcs() table {
	return table{
		ProcDomainInterfaceAddresses:      {run: typed(interfaceAddresses)},
		ProcDomainAgentSetResponseTimeout: {write: true, run: typed(setResponseTimeout)},
	}
}

// interfaceAddresses is DomainInterfaceAddresses with its three sources.
func interfaceAddresses(c *call, a *libvirt.DomainInterfaceAddressesArgs) (libvirt.DomainInterfaceAddressesRet, *Error) {
	var r libvirt.DomainInterfaceAddressesRet
	if a.Flags != 0 {
		return r, badFlags(a.Flags, "qemuDomainInterfaceAddresses")
	}
	d, e := onDomain(c, a.Dom, func(d *Domain) (*Domain, *Error) {
		c.h.asked[libvirt.DomainInterfaceAddressesSource(a.Source)]++
		if !d.active() {
			return nil, notRunning()
		}
		return d, nil
	})
	if e != nil {
		return r, e
	}
	switch libvirt.DomainInterfaceAddressesSource(a.Source) {
	case libvirt.DomainInterfaceAddressesSrcLease:
		r.Ifaces, e = d.fromLeases()
	case libvirt.DomainInterfaceAddressesSrcAgent:
		if c.h.opts.ReadOnly {
			return r, fail(fromDomain, libvirt.ErrOperationDenied, "read only access prevents virDomainInterfaceAddresses")
		}
		var list []Interface
		if list, e = d.withAgent(c.ctx); e == nil {
			r.Ifaces = wireInterfaces(list)
		}
	case libvirt.DomainInterfaceAddressesSrcArp:
		r.Ifaces, e = d.fromARP()
	default:
		e = fail(fromQEMU, libvirt.ErrArgumentUnsupported, "Unknown IP address data source %d", a.Source)
	}
	return r, e
}

// fromLeases lists the cards that have leases. Only cards on a libvirt network
// are looked at; a network that is not there fails the whole read.
func (d *Domain) fromLeases() ([]libvirt.DomainInterface, *Error) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	var out []libvirt.DomainInterface
	now := d.h.now()
	for _, n := range d.nics {
		if n.spec.Network == "" {
			continue
		}
		net := d.h.network(n.spec.Network)
		if net == nil {
			return nil, noNetwork(n.spec.Network)
		}
		if !net.active {
			return nil, net.inactive()
		}
		ls := net.current(n.mac, now)
		if len(ls) == 0 {
			continue
		}
		card := libvirt.DomainInterface{Name: n.target, Hwaddr: libvirt.OptString{n.mac}}
		for _, l := range ls {
			card.Addrs = append(card.Addrs, wireAddr(l.Address))
		}
		out = append(out, card)
	}
	return out, nil
}

// fromARP lists the cards that the host's neighbour table knows: those of guests
// that are up and that the host sees: a network that is gone has taken its
// bridge along, or is stopped, and the neighbours on it. Only IPv4, and the prefix is not known.
func (d *Domain) fromARP() ([]libvirt.DomainInterface, *Error) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if m := d.h.arpError; m != "" {
		code := libvirt.ErrSystemError
		if strings.HasPrefix(m, "internal error: ") {
			code = libvirt.ErrInternalError
		}
		return nil, &Error{Code: code, Domain: fromNone, Message: m}
	}
	if !d.guest.net || d.guest.arpHidden {
		return nil, nil
	}
	var out []libvirt.DomainInterface
	for _, n := range d.nics {
		if !d.h.sees(n) {
			continue
		}
		card := libvirt.DomainInterface{Name: n.target, Hwaddr: libvirt.OptString{n.mac}}
		for _, p := range n.addrs {
			if p.Addr().Is4() {
				card.Addrs = append(card.Addrs, libvirt.DomainIPAddr{Type: ipv4, Addr: p.Addr().String()})
			}
		}
		if len(card.Addrs) > 0 {
			out = append(out, card)
		}
	}
	return out, nil
}

// sees says whether the host has a side of its own on a card's bridge.
func (h *Host) sees(n *nic) bool {
	if n.spec.Network == "" {
		return n.spec.HostOnBridge
	}
	net := h.network(n.spec.Network)
	return net != nil && net.active
}

// setResponseTimeout takes no job and works before the agent is up. What it sets
// lasts as long as this run of the domain.
func setResponseTimeout(c *call, a *libvirt.DomainAgentSetResponseTimeoutArgs) (libvirt.DomainAgentSetResponseTimeoutRet, *Error) {
	return onDomain(c, a.Dom, func(d *Domain) (libvirt.DomainAgentSetResponseTimeoutRet, *Error) {
		var r libvirt.DomainAgentSetResponseTimeoutRet
		if a.Flags != 0 {
			return r, badFlags(a.Flags, "qemuDomainAgentSetResponseTimeout")
		}
		if a.Timeout < timeoutBlock {
			return r, fail(fromQEMU, libvirt.ErrInvalidArg, "guest agent timeout '%d' is less than the minimum '%d'", a.Timeout, timeoutBlock)
		}
		d.guest.timeout = a.Timeout
		return r, nil
	})
}

// libvirt's address types.
const (
	ipv4 = 0
	ipv6 = 1
)

func wireAddr(p netip.Prefix) libvirt.DomainIPAddr {
	w := libvirt.DomainIPAddr{Addr: p.Addr().String(), Prefix: uint32(max(p.Bits(), 0)), Type: ipv4}
	if !p.Addr().Is4() {
		w.Type = ipv6
	}
	return w
}

func wireInterfaces(list []Interface) []libvirt.DomainInterface {
	out := make([]libvirt.DomainInterface, 0, len(list))
	for _, i := range list {
		w := libvirt.DomainInterface{Name: i.Name}
		if i.MAC != "" {
			w.Hwaddr = libvirt.OptString{i.MAC}
		}
		for _, p := range i.Addrs {
			w.Addrs = append(w.Addrs, wireAddr(p))
		}
		out = append(out, w)
	}
	return out
}
