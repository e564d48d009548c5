package simhost

import (
	"net"
	"net/netip"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// A DomainSpec describes one virtual machine. Name alone is enough: one NIC on
// the network "default" with a generated MAC and the next free address, an agent
// channel, and an open proxy on port 3128, shut off.
type DomainSpec struct {
	// Name is taken as it is, escape sequences and all: the simulation allows
	// what libvirt's XML forbids, so that a console can be tested against it.
	Name string
	// UUID zero means one derived from the host's and the domain's names.
	UUID [16]byte
	// NICs nil means one on "default"; an empty list that is not nil means none.
	NICs []NIC
	// NoAgentChannel leaves the agent's channel out of the XML: agent reads give code 74.
	NoAgentChannel bool
	// Port is where the guest's proxy listens. Default 3128.
	Port int
	// Proxy is how the proxy behaves at first.
	Proxy Proxy
	// Exit is the address that the origin sees. Zero means one of its own from
	// 198.18.0.0/15.
	Exit netip.Addr
	// Boot says how long the guest's stages take.
	Boot Boot
	// Running adds the domain as one that has been up for a long time: every
	// stage that is not "never" is done, and its agent has been talked to before.
	Running bool
	// Autostart is only reported.
	Autostart bool
	// ShutdownTakes is how long the guest takes to power off when asked. Default
	// 2 s; a negative value is a guest that does not listen.
	ShutdownTakes time.Duration
	// MemoryMiB and VCPUs are only reported. Defaults 256 and 1.
	MemoryMiB uint64
	VCPUs     uint16
}

// A NIC is one network card of a domain. Exactly one of Network and Bridge is
// used, Network first; both empty means the network "default".
type NIC struct {
	// MAC stands in the XML as it is given, in any spelling; the guest, the
	// leases and the ARP table use lower case with colons. "" means generated.
	MAC string
	// Network is a libvirt network (interface type 'network').
	Network string
	// Bridge is a bridge of the host (interface type 'bridge'): no leases. The
	// guest is bridged past the host, whose ARP table stays empty, unless
	// HostOnBridge says that the host has an address on that bridge.
	Bridge       string
	HostOnBridge bool
	// Addresses are the guest's. None means the next free address of a network
	// with DHCP, and on a bridge no address at all.
	Addresses []netip.Prefix
}

// Boot says when a guest's stages are reached, counted from its start. Zero
// means the default, a negative value never.
type Boot struct {
	// Lease is when the guest has its address and, on a network with DHCP, its
	// lease. Default 2.7 s.
	Lease time.Duration
	// Agent is when the guest agent connects. Default 3 s.
	Agent time.Duration
	// AgentAddress is when the agent lists the addresses; from Agent until then
	// it lists lo, and its cards without any. Default 0.4 s after Agent.
	AgentAddress time.Duration
	// Proxy is when the proxy listens. Default 0.8 s after Lease.
	Proxy time.Duration
}

func (b Boot) withDefaults() Boot {
	if b.Lease == 0 {
		b.Lease = 2700 * time.Millisecond
	}
	if b.Agent == 0 {
		b.Agent = 3 * time.Second
	}
	if b.AgentAddress == 0 {
		b.AgentAddress = max(b.Agent, b.Lease) + 400*time.Millisecond
	}
	if b.Proxy == 0 {
		b.Proxy = max(b.Lease, 0) + 800*time.Millisecond
	}
	return b
}

// A Domain is one virtual machine of a Host. All methods are safe for
// concurrent use and return at once.
type Domain struct {
	h    *Host
	spec DomainSpec // as given, defaults filled in; Name follows Rename
	uuid [16]byte
	exit netip.Addr

	// Everything below is guarded by h.mu.
	nics       []*nic
	disks      []disk
	defined    bool        // by a client: the disks are its own
	efi, nvram bool        // boots by firmware that keeps variables; has done so
	config     metadata    // of the configuration
	live       metadata    // of this run
	next       *definition // the configuration after this run, when it is another
	id         int32       // -1 when not active
	state      libvirt.DomainState
	reason     int32
	persistent bool
	autostart  bool
	gone       bool
	started    time.Time
	guest      guest
	proxy      Proxy
	conns      map[net.Conn]struct{} // open connections to the proxy
	changed    chan struct{}         // closed at the next change; nil when nobody waits
}

// nic is a network card with what the guest made of it.
type nic struct {
	d      *Domain
	spec   NIC
	mac    string // lower case with colons, or the text given when it is no MAC
	target string // the host's side, vnetN, while active
	addrs  []netip.Prefix
	// lastAddrs are those it had last, for a card that is defined anew.
	lastAddrs []netip.Prefix
	claimed   uint64 // order in which addrs were taken, for duplicates
}

// AddDomain adds a domain, and sends its "defined" event (and "started", when
// Running). Two domains of one name or UUID on a host, or no name, are a mistake
// of the caller's program and panic.
func (h *Host) AddDomain(spec DomainSpec) *Domain {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.newDomain(spec)
	h.emitLifecycle(d, libvirt.DomainEventDefined, int32(libvirt.DomainEventDefinedAdded))
	if spec.Running {
		d.bootDone()
	}
	return d
}

// Domain returns the domain of that name, or nil.
func (h *Host) Domain(name string) *Domain {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.names[name]
}

// Domains returns all domains in the order in which they were added.
func (h *Host) Domains() []*Domain {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*Domain(nil), h.domains...)
}

// Host returns the host of the domain.
func (d *Domain) Host() *Host { return d.h }

// UUID returns the domain's UUID, which never changes.
func (d *Domain) UUID() [16]byte { return d.uuid }

// Port returns the port of the proxy in the guest.
func (d *Domain) Port() int {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	return d.spec.Port
}

// Exit returns the address that the origin sees.
func (d *Domain) Exit() netip.Addr { return d.exit }

// Name returns the domain's name.
func (d *Domain) Name() string {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	return d.spec.Name
}

// ID returns libvirt's ID of this run, another at each start; -1 when not active.
func (d *Domain) ID() int32 {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	return d.id
}

// State returns libvirt's state and reason.
func (d *Domain) State() (state libvirt.DomainState, reason int32) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	return d.state, d.reason
}

// MAC returns the MAC of the first NIC in lower case, or "" when there is none.
func (d *Domain) MAC() string {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if len(d.nics) == 0 {
		return ""
	}
	return d.nics[0].mac
}

// Prefixes returns the addresses of the first NIC with their prefix lengths, as
// SetAddress takes them.
func (d *Domain) Prefixes() []netip.Prefix {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	if len(d.nics) == 0 {
		return nil
	}
	return append([]netip.Prefix(nil), d.nics[0].addrs...)
}

// Addresses returns the addresses that the guest has, or would have when it is
// up, of all NICs in order.
func (d *Domain) Addresses() []netip.Addr {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	var out []netip.Addr
	for _, n := range d.nics {
		for _, p := range n.addrs {
			out = append(out, p.Addr())
		}
	}
	return out
}

// Autostart says whether the domain starts with its host.
func (d *Domain) Autostart() bool {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	return d.autostart
}
