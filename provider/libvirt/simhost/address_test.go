package simhost

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

const (
	srcLease = uint32(libvirt.DomainInterfaceAddressesSrcLease)
	srcAgent = uint32(libvirt.DomainInterfaceAddressesSrcAgent)
	srcARP   = uint32(libvirt.DomainInterfaceAddressesSrcArp)
)

const (
	notConnected = "Guest agent is not responding: QEMU guest agent is not connected"
	notNow       = "Guest agent is not responding: Guest agent not available for now"
	inactive     = "Requested operation is not valid: domain is not running"
)

// brief writes a list of interfaces as text: name, MAC and addresses.
func brief(ifs []libvirt.DomainInterface) string {
	out := ""
	for _, i := range ifs {
		mac := "-"
		if len(i.Hwaddr) > 0 {
			mac = i.Hwaddr[0]
		}
		out += i.Name + " " + mac
		for _, a := range i.Addrs {
			out += " " + netip.PrefixFrom(netip.MustParseAddr(a.Addr), int(a.Prefix)).String()
		}
		out += "; "
	}
	return out
}

// read asks one source and gives what it says as text: addresses, or the error.
func read(l *libvirt.Libvirt, d *Domain, source uint32) string {
	ifs, err := l.DomainInterfaceAddresses(ref(d), source, 0)
	if err != nil {
		return "error: " + err.Error()
	}
	return brief(ifs)
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

const lo = "lo 00:00:00:00:00:00 127.0.0.1/8 ::1/128; "

// A NAT guest's boot, second by second, as it was measured.
func TestBootOfNATGuest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "p", NICs: []NIC{{MAC: "52:54:00:00:00:01", Addresses: []netip.Prefix{prefix("192.168.122.50/24")}}}})
		l := connect(t, h)
		if got := read(l, d, srcLease); got != "error: "+inactive {
			t.Errorf("before the start: %s", got)
		}
		begin := time.Now()
		if err := l.DomainCreate(ref(d)); err != nil {
			t.Fatal(err)
		}
		const lease = "vnet0 52:54:00:00:00:01 192.168.122.50/24; "
		const arp = "vnet0 52:54:00:00:00:01 192.168.122.50/0; "
		for _, c := range []struct {
			at                time.Duration
			lease, agent, arp string
		}{
			{300 * time.Millisecond, "", "error: " + notConnected, ""},
			{2600 * time.Millisecond, "", "error: " + notConnected, ""},
			{2800 * time.Millisecond, lease, "error: " + notConnected, arp},
			{3100 * time.Millisecond, lease, lo + "eth0 52:54:00:00:00:01; ", arp},
			{3500 * time.Millisecond, lease, lo + "eth0 52:54:00:00:00:01 192.168.122.50/24 fe80::5054:ff:fe00:1/64; ", arp},
		} {
			time.Sleep(c.at - time.Since(begin))
			for _, s := range []struct {
				name   string
				source uint32
				want   string
			}{{"lease", srcLease, c.lease}, {"agent", srcAgent, c.agent}, {"arp", srcARP, c.arp}} {
				if got := read(l, d, s.source); got != s.want {
					t.Errorf("at %v: %s says %q, want %q", c.at, s.name, got, s.want)
				}
			}
		}
	})
}

// A guest that is bridged past the host: lease and ARP answer with nothing throughout.
func TestBootOfBridgedGuest(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "p", NICs: []NIC{{MAC: "52:54:00:00:00:01", Bridge: "br0", Addresses: []netip.Prefix{prefix("10.0.0.21/24")}}}})
		seen := h.AddDomain(DomainSpec{Name: "s", Running: true, NICs: []NIC{{MAC: "52:54:00:00:00:02", Bridge: "br1", HostOnBridge: true, Addresses: []netip.Prefix{prefix("10.1.0.5/24")}}}})
		l := connect(t, h)
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if lease, arp := read(l, d, srcLease), read(l, d, srcARP); lease != "" || arp != "" {
				t.Errorf("lease %q, arp %q, want nothing", lease, arp)
			}
			time.Sleep(time.Second)
		}
		if got, want := read(l, d, srcAgent), lo+"eth0 52:54:00:00:00:01 10.0.0.21/24 fe80::5054:ff:fe00:1/64; "; got != want {
			t.Errorf("agent says %q, want %q", got, want)
		}
		if got, want := read(l, seen, srcARP), "vnet0 52:54:00:00:00:02 10.1.0.5/0; "; got != want {
			t.Errorf("arp of a host that is on the bridge says %q, want %q", got, want)
		}
	})
}

func TestAddressErrors(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		silent := h.AddDomain(DomainSpec{Name: "silent", Running: true, NoAgentChannel: true})
		paused := h.AddDomain(DomainSpec{Name: "paused", Running: true})
		paused.Pause(libvirt.DomainPausedUser)
		late := h.AddDomain(DomainSpec{Name: "late", Running: true, Boot: Boot{Agent: -1}})
		bare := h.AddDomain(DomainSpec{Name: "bare", Running: true, NICs: []NIC{}})
		l := connect(t, h)

		ask := func(d *Domain, source uint32) error {
			_, err := l.DomainInterfaceAddresses(ref(d), source, 0)
			return err
		}
		wantError(t, ask(silent, srcAgent), libvirt.ErrArgumentUnsupported, "argument unsupported: QEMU guest agent is not configured")
		wantError(t, ask(paused, srcAgent), libvirt.ErrOperationInvalid, inactive)
		wantError(t, ask(late, srcAgent), libvirt.ErrAgentUnresponsive, notConnected)
		wantError(t, ask(late, 7), libvirt.ErrArgumentUnsupported, "argument unsupported: Unknown IP address data source 7")
		_, err := l.DomainInterfaceAddresses(ref(late), srcARP, 1)
		wantError(t, err, libvirt.ErrInvalidArg, "unsupported flags (0x1) in function qemuDomainInterfaceAddresses")
		h.SetARPError(ARPWrongLength)
		wantError(t, ask(late, srcARP), libvirt.ErrInternalError, "internal error: wrong nlmsg len")
		h.SetARPError(ARPMalformed)
		wantError(t, ask(late, srcARP), libvirt.ErrInternalError, "internal error: malformed netlink response message")
		h.SetARPError("")
		if err := ask(late, srcARP); err != nil {
			t.Errorf("arp: %v", err)
		}
		if got := read(l, bare, srcAgent) + read(l, bare, srcLease) + read(l, bare, srcARP); got != lo {
			t.Errorf("a domain without a card: %q", got)
		}
		gone := ref(late)
		late.Undefine()
		late.Crash()
		_, err = l.DomainInterfaceAddresses(gone, srcLease, 0)
		wantError(t, err, libvirt.ErrNoDomain, "Domain not found: no domain with matching uuid '"+uuidText(gone.UUID)+"' (late)")
	})
}

func TestReadOnly(t *testing.T) {
	h := newHost(t, Options{ReadOnly: true})
	d := h.AddDomain(DomainSpec{Name: "d", Running: true})
	l := connect(t, h)
	_, err := l.DomainInterfaceAddresses(ref(d), srcAgent, 0)
	wantError(t, err, libvirt.ErrOperationDenied, "operation forbidden: read only access prevents virDomainInterfaceAddresses")
	if _, err := l.DomainInterfaceAddresses(ref(d), srcLease, 0); err != nil {
		t.Errorf("lease: %v", err)
	}
	wantError(t, l.DomainDestroy(ref(d)), libvirt.ErrOperationDenied, "operation forbidden: read only access prevents virDomainDestroy")
	_, err = l.DomainAgentSetResponseTimeout(ref(d), 2, 0)
	wantError(t, err, libvirt.ErrOperationDenied, "operation forbidden: read only access prevents virDomainAgentSetResponseTimeout")
}

// What the agent is told to list goes out as it is: foreign cards, no MAC, nonsense.
func TestAgentInterfacesOverride(t *testing.T) {
	h := newHost(t, Options{})
	d := h.AddDomain(DomainSpec{Name: "d", Running: true})
	l := connect(t, h)
	d.SetAgentInterfaces([]Interface{
		{Name: "docker0", MAC: "02:42:00:00:00:01", Addrs: []netip.Prefix{prefix("172.17.0.1/16")}},
		{Name: "tun\x1b0", Addrs: []netip.Prefix{prefix("169.254.3.4/16"), prefix("fe80::1/64")}},
	})
	ifs, err := l.DomainInterfaceAddresses(ref(d), srcAgent, 0)
	want := []libvirt.DomainInterface{
		{Name: "docker0", Hwaddr: libvirt.OptString{"02:42:00:00:00:01"}, Addrs: []libvirt.DomainIPAddr{{Type: 0, Addr: "172.17.0.1", Prefix: 16}}},
		{Name: "tun\x1b0", Hwaddr: libvirt.OptString{}, Addrs: []libvirt.DomainIPAddr{{Type: 0, Addr: "169.254.3.4", Prefix: 16}, {Type: 1, Addr: "fe80::1", Prefix: 64}}},
	}
	if err != nil || !reflect.DeepEqual(normal(ifs), normal(want)) {
		t.Errorf("%v, %v\nwant %v", ifs, err, want)
	}
	d.SetAgentInterfaces([]Interface{})
	if got := read(l, d, srcAgent); got != "" {
		t.Errorf("an empty list: %q", got)
	}
	d.SetAgentInterfaces(nil)
	if got := read(l, d, srcAgent); got == "" {
		t.Error("the truth is empty")
	}
}

// normal makes nil and empty optional texts equal.
func normal(ifs []libvirt.DomainInterface) []libvirt.DomainInterface {
	for i := range ifs {
		if len(ifs[i].Hwaddr) == 0 {
			ifs[i].Hwaddr = nil
		}
	}
	return ifs
}

func TestLeases(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true, NICs: []NIC{{MAC: "525400ABCDEF", Network: "default"}}})
		l := connect(t, h)
		const first, second = "vnet0 52:54:00:ab:cd:ef 192.168.122.2/24; ", "vnet0 52:54:00:ab:cd:ef 192.168.122.99/24; "
		check := func(when, want string) {
			t.Helper()
			if got := read(l, d, srcLease); got != want {
				t.Errorf("%s: lease %q, want %q", when, got, want)
			}
		}
		check("at first", first)
		time.Sleep(10 * time.Hour)
		check("renewed for ten hours", first)
		d.LoseLease()
		check("lost", "")
		d.SetAddress(prefix("192.168.122.99/24"))
		check("another address", second)
		d.ExpireLease()
		check("ended", "")
		time.Sleep(time.Hour)
		check("still ended", "")
		d.SetAddress(prefix("192.168.122.99/24"))
		h.AddLease("default", Lease{MAC: "52:54:00:AB:CD:EF", Address: prefix("192.168.122.7/24"), Hostname: "old"})
		check("two of one card", "vnet0 52:54:00:ab:cd:ef 192.168.122.99/24 192.168.122.7/24; ")

		// A lease outlives its guest, until its end.
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		net, err := l.NetworkLookupByName("default")
		if err != nil {
			t.Fatal(err)
		}
		leases := func() int {
			t.Helper()
			_, n, err := l.NetworkGetDhcpLeases(net, nil, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
		if n := leases(); n != 2 {
			t.Errorf("%d leases after the end of the guest, want 2", n)
		}
		time.Sleep(61 * time.Minute)
		if n := leases(); n != 1 {
			t.Errorf("%d leases an hour later, want the endless one", n)
		}
	})
}

// A clock that is set ahead ends the leases by the daemon's book; the guests,
// which know nothing of it, bring them back when they renew.
func TestClockJump(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true})
		l := connect(t, h)
		have := func() bool { return read(l, d, srcLease) != "" }
		time.Sleep(10 * time.Minute)
		h.ShiftClock(30 * time.Minute)
		if !have() {
			t.Error("a lease of an hour has ended after 40 minutes")
		}
		h.ShiftClock(2 * time.Hour)
		if have() {
			t.Error("a lease of an hour has not ended after three")
		}
		if ahead := time.Until(h.Clock()); ahead != 150*time.Minute {
			t.Errorf("the clock is %v ahead", ahead)
		}
		time.Sleep(19 * time.Minute)
		if have() {
			t.Error("renewed before half of its life")
		}
		time.Sleep(2 * time.Minute)
		if !have() {
			t.Error("not renewed at half of its life")
		}
		h.ShiftClock(-5 * time.Hour)
		if !have() {
			t.Error("a clock that is set back ends no lease")
		}
	})
}

func TestARPHidden(t *testing.T) {
	h := newHost(t, Options{})
	d := h.AddDomain(DomainSpec{Name: "d", Running: true})
	l := connect(t, h)
	before := read(l, d, srcARP)
	d.HideARP(true)
	hidden := read(l, d, srcARP)
	d.HideARP(false)
	if before == "" || hidden != "" || read(l, d, srcARP) != before {
		t.Errorf("arp %q, hidden %q", before, hidden)
	}
}
