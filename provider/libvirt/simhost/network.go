package simhost

import (
	"net/netip"
	"slices"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// A NetworkSpec describes one libvirt network.
type NetworkSpec struct {
	Name string
	// UUID zero means one derived from Name.
	UUID [16]byte
	// Bridge is the network's bridge on the host. Default "virbr0".
	Bridge string
	// Gateway is the host's address on it with the prefix length; guests without
	// addresses of their own get the next free ones after it.
	Gateway netip.Prefix
	// NoDHCP leaves dnsmasq out: no leases, and no <dhcp> in the XML.
	NoDHCP bool
	// LeaseTime is the life of a lease. Default 1 h; less than a second is one
	// second. A running guest renews its leases at half of it; those of a stopped
	// one stay until they expire.
	LeaseTime time.Duration
}

// DefaultNetwork is libvirt's "default": NAT, 192.168.122.0/24, DHCP.
func DefaultNetwork() NetworkSpec {
	return NetworkSpec{Name: "default", Bridge: "virbr0", Gateway: netip.MustParsePrefix("192.168.122.1/24")}
}

// A Lease is one line of a network's DHCP leases, for those that no guest of
// the simulation asked for: orphans, and second leases of one MAC.
type Lease struct {
	MAC      string
	Address  netip.Prefix
	Hostname string
	// Expires zero means never, as libvirt's 0 does.
	Expires time.Time
}

type network struct {
	spec   NetworkSpec
	uuid   [16]byte
	active bool
	next   netip.Addr // next address to try
	leases []*lease
	byMAC  map[string][]*lease
}

type lease struct {
	Lease
	owner   *Domain   // renews it while it runs; nil for one added by hand
	renewed time.Time // last, by the guests' time
	lost    bool      // its owner does not renew it any more
}

func newNetwork(spec NetworkSpec) *network {
	if spec.UUID == ([16]byte{}) {
		spec.UUID = derivedUUID("network", spec.Name)
	}
	if spec.Bridge == "" {
		spec.Bridge = "virbr0"
	}
	if spec.LeaseTime <= 0 {
		spec.LeaseTime = time.Hour
	}
	spec.LeaseTime = max(spec.LeaseTime, time.Second)
	return &network{
		spec: spec, uuid: spec.UUID, active: true,
		next: spec.Gateway.Addr(), byMAC: map[string][]*lease{},
	}
}

// AddNetwork adds a network, or replaces the one of that name with its leases.
func (h *Host) AddNetwork(spec NetworkSpec) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nets = slices.DeleteFunc(h.nets, func(n *network) bool { return n.spec.Name == spec.Name })
	h.nets = append(h.nets, newNetwork(spec))
}

// UndefineNetwork takes a network away under its guests: their lease reads give code 43.
func (h *Host) UndefineNetwork(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nets = slices.DeleteFunc(h.nets, func(n *network) bool { return n.spec.Name == name })
}

// AddLease adds a lease to a network by hand; it has no effect when there is no
// such network.
func (h *Host) AddLease(networkName string, l Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.network(networkName); n != nil {
		l.MAC = canonicalMAC(l.MAC)
		n.add(&lease{Lease: l})
	}
}

func (h *Host) network(name string) *network {
	for _, n := range h.nets {
		if n.spec.Name == name {
			return n
		}
	}
	return nil
}

func (n *network) add(l *lease) {
	n.leases = append(n.leases, l)
	n.byMAC[l.MAC] = append(n.byMAC[l.MAC], l)
}

// drop takes all leases of a MAC away.
func (n *network) drop(mac string) {
	delete(n.byMAC, mac)
	n.leases = slices.DeleteFunc(n.leases, func(l *lease) bool { return l.MAC == mac })
}

// grant gives a guest's NIC its leases, in place of those it had.
func (n *network) grant(d *Domain, c *nic, at instant) {
	if n.spec.NoDHCP {
		return
	}
	n.drop(c.mac)
	for _, p := range c.addrs {
		n.add(&lease{owner: d, renewed: at.guests, Lease: Lease{
			MAC: c.mac, Address: p, Hostname: d.spec.Name, Expires: at.daemon.Add(n.spec.LeaseTime),
		}})
	}
}

// current returns the leases that the daemon shows at this moment: those of one
// MAC, or of all for "". A running owner has renewed its own at half time.
func (n *network) current(mac string, at instant) []*lease {
	all := n.leases
	if mac != "" {
		all = n.byMAC[canonicalMAC(mac)]
	}
	out := make([]*lease, 0, len(all))
	for _, l := range all {
		n.renew(l, at)
		if l.Expires.IsZero() || l.Expires.After(at.daemon) {
			out = append(out, l)
		}
	}
	return out
}

// renew moves a lease's end as its owner's client would have done by now. It is
// reckoned when somebody looks, so that thousands of guests need no timers.
func (n *network) renew(l *lease, at instant) {
	if l.owner == nil || l.lost || l.Expires.IsZero() || !l.owner.netRunning() {
		return
	}
	half := n.spec.LeaseTime / 2
	if times := at.guests.Sub(l.renewed) / half; times > 0 {
		l.renewed = l.renewed.Add(times * half)
		l.Expires = l.renewed.Add(at.daemon.Sub(at.guests)).Add(n.spec.LeaseTime)
	}
}

// allocate returns the next free address of the network's range.
func (n *network) allocate() (netip.Prefix, bool) {
	if !n.spec.Gateway.IsValid() {
		return netip.Prefix{}, false
	}
	n.next = n.next.Next()
	if !n.spec.Gateway.Contains(n.next) {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(n.next, n.spec.Gateway.Bits()), true
}

func (n *network) ref() libvirt.Network {
	return libvirt.Network{Name: n.spec.Name, UUID: n.uuid}
}
