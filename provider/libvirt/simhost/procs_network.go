package simhost

import (
	"net/netip"
	"strings"

	libvirt "github.com/digitalocean/go-libvirt"
)

// networkProcs serve the libvirt networks.
func networkProcs() table {
	return table{
		ProcConnectListAllNetworks: {high: true, run: typed(listAllNetworks)},
		ProcNetworkLookupByName:    {high: true, run: typed(networkByName)},
		ProcNetworkLookupByUUID:    {high: true, run: typed(networkByUUID)},
		ProcNetworkGetXMLDesc:      {run: typed(networkXMLDesc)},
		ProcNetworkGetBridgeName:   {high: true, run: typed(networkBridge)},
		ProcNetworkIsActive:        {high: true, run: typed(networkIsActive)},
		ProcNetworkIsPersistent:    {high: true, run: typed(networkIsPersistent)},
		ProcNetworkGetDhcpLeases:   {run: typed(dhcpLeases)},
	}
}

func noNetwork(name string) *Error {
	return fail(fromNetwork, libvirt.ErrNoNetwork, "no network with matching name '%s'", name)
}

// networkByID returns the network of a UUID, or nil. The caller holds h.mu.
func (h *Host) networkByID(id [16]byte) *network {
	for _, n := range h.nets {
		if n.uuid == id {
			return n
		}
	}
	return nil
}

func onNetwork[R any](c *call, ref libvirt.Network, f func(n *network) (R, *Error)) (R, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	n := c.h.networkByID(ref.UUID)
	if n == nil {
		var none R
		return none, fail(fromNetwork, libvirt.ErrNoNetwork, "no network with matching uuid '%s' (%s)", uuidText(ref.UUID), ref.Name)
	}
	return f(n)
}

func listAllNetworks(c *call, a *libvirt.ConnectListAllNetworksArgs) (libvirt.ConnectListAllNetworksRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	var r libvirt.ConnectListAllNetworksRet
	for _, n := range c.h.nets {
		if !listed(n.active, a.Flags, libvirt.ConnectListNetworksActive, libvirt.ConnectListNetworksInactive) {
			continue
		}
		r.Ret++
		if a.NeedResults != 0 {
			r.Nets = append(r.Nets, n.ref())
		}
	}
	return r, nil
}

// listed reports whether a list with these flags has something that is active or
// not. Neither flag asks for all.
func listed[F ~int32 | ~uint32](is bool, flags, active, inactive F) bool {
	if flags&(active|inactive) == 0 {
		return true
	}
	return is && flags&active != 0 || !is && flags&inactive != 0
}

func networkByName(c *call, a *libvirt.NetworkLookupByNameArgs) (libvirt.NetworkLookupByNameRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	n := c.h.network(a.Name)
	if n == nil {
		return libvirt.NetworkLookupByNameRet{}, noNetwork(a.Name)
	}
	return libvirt.NetworkLookupByNameRet{Net: n.ref()}, nil
}

func networkByUUID(c *call, a *libvirt.NetworkLookupByUUIDArgs) (libvirt.NetworkLookupByUUIDRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	n := c.h.networkByID(a.UUID)
	if n == nil {
		return libvirt.NetworkLookupByUUIDRet{}, fail(fromNetwork, libvirt.ErrNoNetwork, "no network with matching uuid '%s'", uuidText(a.UUID))
	}
	return libvirt.NetworkLookupByUUIDRet{Net: n.ref()}, nil
}

func networkXMLDesc(c *call, a *libvirt.NetworkGetXMLDescArgs) (libvirt.NetworkGetXMLDescRet, *Error) {
	return onNetwork(c, a.Net, func(n *network) (libvirt.NetworkGetXMLDescRet, *Error) {
		return libvirt.NetworkGetXMLDescRet{XML: n.xml()}, nil
	})
}

func networkBridge(c *call, a *libvirt.NetworkGetBridgeNameArgs) (libvirt.NetworkGetBridgeNameRet, *Error) {
	return onNetwork(c, a.Net, func(n *network) (libvirt.NetworkGetBridgeNameRet, *Error) {
		return libvirt.NetworkGetBridgeNameRet{Name: n.spec.Bridge}, nil
	})
}

func networkIsActive(c *call, a *libvirt.NetworkIsActiveArgs) (libvirt.NetworkIsActiveRet, *Error) {
	return onNetwork(c, a.Net, func(n *network) (libvirt.NetworkIsActiveRet, *Error) {
		return libvirt.NetworkIsActiveRet{Active: boolInt(n.active)}, nil
	})
}

func networkIsPersistent(c *call, a *libvirt.NetworkIsPersistentArgs) (libvirt.NetworkIsPersistentRet, *Error) {
	return onNetwork(c, a.Net, func(*network) (libvirt.NetworkIsPersistentRet, *Error) {
		return libvirt.NetworkIsPersistentRet{Persistent: 1}, nil
	})
}

func dhcpLeases(c *call, a *libvirt.NetworkGetDhcpLeasesArgs) (libvirt.NetworkGetDhcpLeasesRet, *Error) {
	return onNetwork(c, a.Net, func(n *network) (libvirt.NetworkGetDhcpLeasesRet, *Error) {
		if !n.active {
			return libvirt.NetworkGetDhcpLeasesRet{}, n.inactive()
		}
		mac := ""
		if len(a.Mac) > 0 {
			mac = a.Mac[0]
		}
		ls := n.current(mac, c.h.now())
		r := libvirt.NetworkGetDhcpLeasesRet{Ret: uint32(len(ls))}
		if a.NeedResults == 0 {
			return r, nil
		}
		r.Leases = make([]libvirt.NetworkDhcpLease, 0, len(ls))
		for _, l := range ls {
			r.Leases = append(r.Leases, n.wireLease(l))
		}
		return r, nil
	})
}

func (n *network) wireLease(l *lease) libvirt.NetworkDhcpLease {
	addr := wireAddr(l.Address)
	w := libvirt.NetworkDhcpLease{
		Iface: n.spec.Bridge, Type: addr.Type, Mac: libvirt.OptString{l.MAC}, Ipaddr: addr.Addr, Prefix: addr.Prefix,
	}
	if !l.Expires.IsZero() {
		w.Expirytime = l.Expires.Unix()
	}
	if l.Hostname != "" {
		w.Hostname = libvirt.OptString{l.Hostname}
	}
	if addr.Type == ipv4 {
		w.Clientid = libvirt.OptString{"01:" + l.MAC}
	}
	return w
}

// xml is the network's description; without DHCP the <dhcp> element is missing.
func (n *network) xml() string {
	var b strings.Builder
	line := liner(&b)
	line("<network>")
	line("  <name>%s</name>", escape(n.spec.Name))
	line("  <uuid>%s</uuid>", uuidText(n.uuid))
	line("  <forward mode='nat'>")
	line("    <nat>")
	line("      <port start='1024' end='65535'/>")
	line("    </nat>")
	line("  </forward>")
	line("  <bridge name='%s' stp='on' delay='0'/>", escape(n.spec.Bridge))
	line("  <mac address='%s'/>", numberedMAC(n.uuid, 0))
	if gw := n.spec.Gateway; gw.IsValid() {
		if gw.Addr().Is4() {
			line("  <ip address='%s' netmask='%s'>", gw.Addr(), netmask(gw))
		} else {
			line("  <ip family='ipv6' address='%s' prefix='%d'>", gw.Addr(), gw.Bits())
		}
		if !n.spec.NoDHCP {
			first, last := gw.Addr().Next(), lastAddr(gw).Prev()
			line("    <dhcp>")
			line("      <range start='%s' end='%s'/>", first, last)
			line("    </dhcp>")
		}
		line("  </ip>")
	}
	line("</network>")
	return b.String()
}

func netmask(p netip.Prefix) netip.Addr {
	m := ^uint32(0) << (32 - p.Bits())
	return netip.AddrFrom4([4]byte{byte(m >> 24), byte(m >> 16), byte(m >> 8), byte(m)})
}

// lastAddr is the last address of a prefix.
func lastAddr(p netip.Prefix) netip.Addr {
	a := p.Addr().As16()
	bits := p.Bits()
	if p.Addr().Is4() {
		bits += 96
	}
	for i := bits; i < 128; i++ {
		a[i/8] |= 1 << (7 - i%8)
	}
	out := netip.AddrFrom16(a)
	if p.Addr().Is4() {
		return out.Unmap()
	}
	return out
}
