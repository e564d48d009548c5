package simhost

import (
	"encoding/xml"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// wantError checks a libvirt error by code and exact message.
func wantError(t *testing.T, err error, code libvirt.ErrorNumber, message string) {
	t.Helper()
	var e libvirt.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %T %v, want code %d", err, err, code)
	}
	if e.Code != uint32(code) || e.Message != message {
		t.Errorf("error %d %q, want %d %q", e.Code, e.Message, code, message)
	}
}

func TestConnection(t *testing.T) {
	h := newHost(t, Options{Name: "beelink", UUID: [16]byte{1, 2, 3, 15: 9}})
	l := connect(t, h)

	name, err := l.ConnectGetHostname()
	if err != nil || name != "beelink" {
		t.Errorf("hostname %q, %v", name, err)
	}
	version, err := l.ConnectGetLibVersion()
	if err != nil || version != 9_000_000 {
		t.Errorf("version %d, %v", version, err)
	}
	kind, err := l.ConnectGetType()
	if err != nil || kind != "QEMU" {
		t.Errorf("type %q, %v", kind, err)
	}
	uri, err := l.ConnectGetUri()
	if err != nil || uri != "qemu:///system" {
		t.Errorf("uri %q, %v", uri, err)
	}
	caps, err := l.ConnectGetCapabilities()
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Host struct {
			UUID string `xml:"uuid"`
		} `xml:"host"`
	}
	if err := xml.Unmarshal([]byte(caps), &parsed); err != nil || parsed.Host.UUID != "01020300-0000-0000-0000-000000000009" {
		t.Errorf("host uuid %q, %v", parsed.Host.UUID, err)
	}
	model, mem, cpus, _, _, _, _, _, err := l.NodeGetInfo()
	if err != nil || cpus != 4 || mem != 16<<20 || model[0] != 'x' {
		t.Errorf("node info %v %d %d, %v", model[:6], mem, cpus, err)
	}
	for feature, want := range map[int32]int32{1: 0, 14: 1, 15: 1, 99: 0} {
		if yes, err := l.ConnectSupportsFeature(feature); err != nil || yes != want {
			t.Errorf("feature %d: %d, %v; want %d", feature, yes, err, want)
		}
	}
	if err := l.Disconnect(); err != nil {
		t.Errorf("disconnect: %v", err)
	}
}

func TestLookupsAndStates(t *testing.T) {
	h := newHost(t, Options{Name: "h"})
	up := h.AddDomain(DomainSpec{Name: "up", Running: true, VCPUs: 2, MemoryMiB: 512})
	off := h.AddDomain(DomainSpec{Name: "off", Autostart: true})
	l := connect(t, h)

	got, err := l.DomainLookupByName("up")
	if err != nil || got != ref(up) || got.ID != 1 {
		t.Errorf("by name: %v, %v", got, err)
	}
	got, err = l.DomainLookupByUUID(off.UUID())
	if err != nil || got != ref(off) || got.ID != -1 {
		t.Errorf("by uuid: %v, %v", got, err)
	}
	got, err = l.DomainLookupByID(1)
	if err != nil || got != ref(up) {
		t.Errorf("by id: %v, %v", got, err)
	}
	_, err = l.DomainLookupByName("none")
	wantError(t, err, libvirt.ErrNoDomain, "Domain not found: no domain with matching name 'none'")
	_, err = l.DomainLookupByUUID(libvirt.UUID{1})
	wantError(t, err, libvirt.ErrNoDomain, "Domain not found: no domain with matching uuid '01000000-0000-0000-0000-000000000000'")
	_, err = l.DomainLookupByID(7)
	wantError(t, err, libvirt.ErrNoDomain, "Domain not found: no domain with matching id 7")
	_, _, err = l.DomainGetState(libvirt.Domain{Name: "x", UUID: libvirt.UUID{1}}, 0)
	wantError(t, err, libvirt.ErrNoDomain, "Domain not found: no domain with matching uuid '01000000-0000-0000-0000-000000000000' (x)")

	state, reason, err := l.DomainGetState(ref(up), 0)
	if err != nil || state != int32(libvirt.DomainRunning) || reason != int32(libvirt.DomainRunningBooted) {
		t.Errorf("state %d %d, %v", state, reason, err)
	}
	s8, maxMem, mem, cpus, _, err := l.DomainGetInfo(ref(up))
	if err != nil || s8 != 1 || maxMem != 512<<10 || mem != 512<<10 || cpus != 2 {
		t.Errorf("info %d %d %d %d, %v", s8, maxMem, mem, cpus, err)
	}
	kept, err := l.DomainIsPersistent(ref(off))
	if err != nil || kept != 1 {
		t.Errorf("persistent %d, %v", kept, err)
	}
	active, err := l.DomainIsActive(ref(off))
	if err != nil || active != 0 {
		t.Errorf("active %d, %v", active, err)
	}
	auto, err := l.DomainGetAutostart(ref(off))
	if err != nil || auto != 1 {
		t.Errorf("autostart %d, %v", auto, err)
	}
	if err := l.DomainSetAutostart(ref(off), 0); err != nil {
		t.Error(err)
	}
	if auto, err = l.DomainGetAutostart(ref(off)); err != nil || auto != 0 {
		t.Errorf("autostart %d, %v", auto, err)
	}
	_, err = l.DomainGetMetadata(ref(up), 2, libvirt.OptString{"urn:x"}, 0)
	wantError(t, err, libvirt.ErrNoDomainMetadata, "metadata not found: Requested metadata element is not present")
}

func TestListFilters(t *testing.T) {
	h := newHost(t, Options{Name: "h"})
	h.AddDomain(DomainSpec{Name: "run", Running: true})
	h.AddDomain(DomainSpec{Name: "pause", Running: true}).Pause(libvirt.DomainPausedIoerror)
	h.AddDomain(DomainSpec{Name: "off", Autostart: true})
	h.AddDomain(DomainSpec{Name: "passing", Running: true}).Undefine()
	l := connect(t, h)
	for _, c := range []struct {
		flags libvirt.ConnectListAllDomainsFlags
		want  string
	}{
		{0, "run pause off passing"},
		{libvirt.ConnectListDomainsActive, "run pause passing"},
		{libvirt.ConnectListDomainsInactive, "off"},
		{libvirt.ConnectListDomainsActive | libvirt.ConnectListDomainsInactive, "run pause off passing"},
		{libvirt.ConnectListDomainsRunning, "run passing"},
		{libvirt.ConnectListDomainsPaused, "pause"},
		{libvirt.ConnectListDomainsShutoff | libvirt.ConnectListDomainsPaused, "pause off"},
		{libvirt.ConnectListDomainsActive | libvirt.ConnectListDomainsTransient, "passing"},
		{libvirt.ConnectListDomainsAutostart, "off"},
		{libvirt.ConnectListDomainsOther, ""},
	} {
		domains, n, err := l.ConnectListAllDomains(1, c.flags)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range domains {
			names = append(names, d.Name)
		}
		if got := strings.Join(names, " "); got != c.want || int(n) != len(names) {
			t.Errorf("flags %d: %q (%d), want %q", c.flags, got, n, c.want)
		}
	}
	none, n, err := l.ConnectListAllDomains(0, 0)
	if err != nil || n != 4 || len(none) != 0 {
		t.Errorf("without results: %d %v, %v", n, none, err)
	}
}

func TestAllDomainStats(t *testing.T) {
	h := newHost(t, Options{Name: "h"})
	run := h.AddDomain(DomainSpec{Name: "run", Running: true})
	paused := h.AddDomain(DomainSpec{Name: "paused", Running: true})
	paused.Pause(libvirt.DomainPausedIoerror)
	l := connect(t, h)

	recs, err := l.ConnectGetAllDomainStats(nil, uint32(libvirt.DomainStatsState), 0)
	if err != nil || len(recs) != 2 {
		t.Fatalf("%d records, %v", len(recs), err)
	}
	if recs[1].Dom != ref(paused) {
		t.Errorf("second record is about %v", recs[1].Dom)
	}
	want := []libvirt.TypedParam{
		{Field: "state.state", Value: libvirt.TypedParamValue{D: 1, I: int32(libvirt.DomainPaused)}},
		{Field: "state.reason", Value: libvirt.TypedParamValue{D: 1, I: int32(libvirt.DomainPausedIoerror)}},
	}
	if !slices.Equal(recs[1].Params, want) {
		t.Errorf("params %v, want %v", recs[1].Params, want)
	}
	recs, err = l.ConnectGetAllDomainStats([]libvirt.Domain{ref(run), {UUID: libvirt.UUID{9}}}, 0, 0)
	if err != nil || len(recs) != 1 || recs[0].Dom.Name != "run" {
		t.Errorf("chosen: %v, %v", recs, err)
	}
	recs, err = l.ConnectGetAllDomainStats(nil, 1, uint32(libvirt.ConnectGetAllDomainsStatsPaused))
	if err != nil || len(recs) != 1 || recs[0].Dom.Name != "paused" {
		t.Errorf("filtered: %v, %v", recs, err)
	}
	_, err = l.ConnectGetAllDomainStats(nil, 5, uint32(libvirt.ConnectGetAllDomainsStatsEnforceStats))
	wantError(t, err, libvirt.ErrArgumentUnsupported, "argument unsupported: Stats types bits 0x4 are not supported by this daemon or QEMU")
}

func TestUnknownProcedure(t *testing.T) {
	h := newHost(t, Options{})
	l := connect(t, h)
	if _, err := l.ConnectGetMaxVcpus(nil); !errors.Is(err, libvirt.ErrUnsupported) {
		t.Errorf("error %v, want %v", err, libvirt.ErrUnsupported)
	}
	if _, err := l.ConnectGetHostname(); err != nil {
		t.Errorf("the connection lives on: %v", err)
	}
}

// The description has what the provider needs of it, whatever the name holds.
func TestDomainXML(t *testing.T) {
	h := newHost(t, Options{Name: "h"})
	d := h.AddDomain(DomainSpec{
		Name: "a<b>\x1b[31m&'\u009b", Running: true,
		NICs: []NIC{{MAC: "52:54:00:AB:CD:EF", Network: "default"}, {MAC: "52-54-00-00-00-02", Bridge: "br0"}},
	})
	l := connect(t, h)
	got, err := l.DomainLookupByUUID(d.UUID())
	if err != nil || got.Name != "a<b>\x1b[31m&'\u009b" {
		t.Fatalf("name %q, %v", got.Name, err)
	}
	text, err := l.DomainGetXMLDesc(got, 0)
	if err != nil {
		t.Fatal(err)
	}
	type target struct {
		Dev   string `xml:"dev,attr"`
		Name  string `xml:"name,attr"`
		State string `xml:"state,attr"`
	}
	var dom struct {
		ID      string `xml:"id,attr"`
		UUID    string `xml:"uuid"`
		Devices struct {
			Interfaces []struct {
				Type string `xml:"type,attr"`
				MAC  struct {
					Address string `xml:"address,attr"`
				} `xml:"mac"`
				Source struct {
					Network string `xml:"network,attr"`
					Bridge  string `xml:"bridge,attr"`
				} `xml:"source"`
				Target target `xml:"target"`
			} `xml:"interface"`
			Channels []struct {
				Target target `xml:"target"`
			} `xml:"channel"`
		} `xml:"devices"`
	}
	if err := xml.Unmarshal([]byte(text), &dom); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if dom.ID != "1" || dom.UUID != uuidText(d.UUID()) {
		t.Errorf("id %q uuid %q", dom.ID, dom.UUID)
	}
	first, second := dom.Devices.Interfaces[0], dom.Devices.Interfaces[1]
	if first.Type != "network" || first.MAC.Address != "52:54:00:AB:CD:EF" || first.Source.Network != "default" ||
		first.Source.Bridge != "virbr0" || first.Target.Dev != "vnet0" {
		t.Errorf("first interface %+v", first)
	}
	if second.Type != "bridge" || second.MAC.Address != "52-54-00-00-00-02" || second.Source.Bridge != "br0" || second.Target.Dev != "vnet1" {
		t.Errorf("second interface %+v", second)
	}
	channel := dom.Devices.Channels[0].Target
	if channel.Name != "org.qemu.guest_agent.0" || channel.State != "connected" {
		t.Errorf("channel %+v", channel)
	}
	d.AgentStop()
	if text, err = l.DomainGetXMLDesc(got, 0); err != nil || !strings.Contains(text, "state='disconnected'") {
		t.Errorf("channel of a stopped agent: %v in\n%s", err, text)
	}
	if text, err = l.DomainGetXMLDesc(got, libvirt.DomainXMLInactive); err != nil || strings.Contains(text, "vnet") {
		t.Errorf("inactive description: %v in\n%s", err, text)
	}
}

func TestNetworks(t *testing.T) {
	gw := netip.MustParsePrefix("10.9.0.1/16")
	h := newHost(t, Options{Networks: []NetworkSpec{DefaultNetwork(), {Name: "static", Bridge: "virbr9", Gateway: gw, NoDHCP: true}}})
	d := h.AddDomain(DomainSpec{Name: "d", Running: true})
	h.AddDomain(DomainSpec{Name: "s", Running: true, NICs: []NIC{{Network: "static", Addresses: []netip.Prefix{netip.MustParsePrefix("10.9.0.7/16")}}}})
	l := connect(t, h)

	nets, n, err := l.ConnectListAllNetworks(1, libvirt.ConnectListNetworksActive)
	if err != nil || n != 2 || nets[0].Name != "default" || nets[1].Name != "static" {
		t.Fatalf("networks %v %d, %v", nets, n, err)
	}
	byName, err := l.NetworkLookupByName("static")
	if err != nil || byName != nets[1] {
		t.Errorf("by name %v, %v", byName, err)
	}
	byUUID, err := l.NetworkLookupByUUID(nets[0].UUID)
	if err != nil || byUUID != nets[0] {
		t.Errorf("by uuid %v, %v", byUUID, err)
	}
	_, err = l.NetworkLookupByName("none")
	wantError(t, err, libvirt.ErrNoNetwork, "Network not found: no network with matching name 'none'")

	type desc struct {
		Bridge struct {
			Name string `xml:"name,attr"`
		} `xml:"bridge"`
		IP struct {
			Address string `xml:"address,attr"`
			Netmask string `xml:"netmask,attr"`
			DHCP    *struct {
				Range struct {
					Start string `xml:"start,attr"`
					End   string `xml:"end,attr"`
				} `xml:"range"`
			} `xml:"dhcp"`
		} `xml:"ip"`
	}
	for i, want := range []struct{ bridge, mask, start, end string }{
		{"virbr0", "255.255.255.0", "192.168.122.2", "192.168.122.254"},
		{"virbr9", "255.255.0.0", "", ""},
	} {
		text, err := l.NetworkGetXMLDesc(nets[i], 0)
		if err != nil {
			t.Fatal(err)
		}
		var x desc
		if err := xml.Unmarshal([]byte(text), &x); err != nil {
			t.Fatal(err)
		}
		start, end := "", ""
		if x.IP.DHCP != nil {
			start, end = x.IP.DHCP.Range.Start, x.IP.DHCP.Range.End
		}
		if x.Bridge.Name != want.bridge || x.IP.Netmask != want.mask || start != want.start || end != want.end {
			t.Errorf("network %d: %+v, dhcp %s to %s; want %+v", i, x, start, end, want)
		}
	}
	_, err = l.NetworkLookupByUUID(libvirt.UUID{1})
	wantError(t, err, libvirt.ErrNoNetwork, "Network not found: no network with matching uuid '01000000-0000-0000-0000-000000000000'")
	if kept, err := l.NetworkIsPersistent(nets[0]); err != nil || kept != 1 {
		t.Errorf("persistent %d, %v", kept, err)
	}
	if active, err := l.NetworkIsActive(nets[0]); err != nil || active != 1 {
		t.Errorf("active %d, %v", active, err)
	}
	bridge, err := l.NetworkGetBridgeName(nets[1])
	if err != nil || bridge != "virbr9" {
		t.Errorf("bridge %q, %v", bridge, err)
	}
	leases, n, err := l.NetworkGetDhcpLeases(nets[0], nil, 1, 0)
	if err != nil || n != 1 {
		t.Fatalf("leases %v %d, %v", leases, n, err)
	}
	if x := leases[0]; x.Iface != "virbr0" || x.Mac[0] != d.MAC() || x.Ipaddr != "192.168.122.2" || x.Prefix != 24 ||
		x.Hostname[0] != "d" || time.Until(time.Unix(x.Expirytime, 0)) < 59*time.Minute {
		t.Errorf("lease %+v", x)
	}
	if leases, n, err = l.NetworkGetDhcpLeases(nets[1], nil, 1, 0); err != nil || n != 0 || len(leases) != 0 {
		t.Errorf("leases without dhcp: %v %d, %v", leases, n, err)
	}
	_, n, err = l.NetworkGetDhcpLeases(nets[0], libvirt.OptString{"00:00:00:00:00:01"}, 1, 0)
	if err != nil || n != 0 {
		t.Errorf("leases of a stranger: %d, %v", n, err)
	}
	h.UndefineNetwork("default")
	_, _, err = l.NetworkGetDhcpLeases(nets[0], nil, 1, 0)
	wantError(t, err, libvirt.ErrNoNetwork, "Network not found: no network with matching uuid '"+uuidText(nets[0].UUID)+"' (default)")
	_, err = l.DomainInterfaceAddresses(ref(d), uint32(libvirt.DomainInterfaceAddressesSrcLease), 0)
	wantError(t, err, libvirt.ErrNoNetwork, "Network not found: no network with matching name 'default'")
}
