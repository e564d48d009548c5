package simhost

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// What a real daemon (libvirt 9.0.0, QEMU driver) answered to the steps below,
// whole frames in hex, a reply and the events that it brought on each line. It is
// made again with
//
//	go test -run TestRecorded -record SOCKET
//
// against a daemon that testdata/record-setup.sh has just set up.
const recording = "testdata/recorded-9.0.0.txt"

var record = flag.String("record", "", "unix socket of a real libvirt daemon: write testdata anew")

// recordedHost is the simulated twin of what record-setup.sh makes.
func recordedHost(t *testing.T) *Host {
	h := newHost(t, Options{Networks: []NetworkSpec{{
		Name: "default", Gateway: netip.MustParsePrefix("192.168.122.1/24"),
		UUID: [16]byte{0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x43, 0x33, 0x84, 0x44, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55},
	}}})
	never := Boot{Lease: -1, Agent: -1, AgentAddress: -1, Proxy: -1} // its guests have no system
	nics := []NIC{{MAC: "52:54:00:00:00:01", Network: "default"}}
	h.AddDomain(DomainSpec{Name: "agent", UUID: recordedUUID(1), NICs: nics, Boot: never, Running: true})
	h.AddDomain(DomainSpec{Name: "bare", UUID: recordedUUID(2), NICs: []NIC{}, NoAgentChannel: true, Boot: never, Running: true})
	h.AddDomain(DomainSpec{Name: "orphan", UUID: recordedUUID(4), NICs: []NIC{{Network: "other"}}, NoAgentChannel: true, Boot: never, Running: true})
	h.AddDomain(DomainSpec{Name: "off", UUID: recordedUUID(3), NICs: []NIC{}, Boot: never})
	h.SetARPError(ARPWrongLength)
	return h
}

func recordedUUID(n byte) libvirt.UUID {
	return libvirt.UUID{0xaa, 0xaa, 0xaa, 0xaa, 0, 0, 0x40, 0, 0x80, 15: n}
}

// step is one call, or one frame of another program.
type step struct {
	name string
	head header
	args any // nil means none; []byte is taken as it is
}

func does(name string, p Proc, args any) step {
	return step{name, header{prog: progRemote, vers: 1, proc: uint32(p)}, args}
}

func recordedDomain(n byte) libvirt.Domain {
	return libvirt.Domain{Name: "any", UUID: recordedUUID(n), ID: 1}
}

func reads(n byte, source, flags uint32) step {
	return does(fmt.Sprintf("addresses of %d by source %d, flags %d", n, source, flags), ProcDomainInterfaceAddresses,
		libvirt.DomainInterfaceAddressesArgs{Dom: recordedDomain(n), Source: source, Flags: flags})
}

// recordedSteps are the steps, one connection after the other.
func recordedSteps() [][]step {
	dom, network := recordedDomain, libvirt.Network{Name: "any", UUID: [16]byte{0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x43, 0x33, 0x84, 0x44, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55}}
	open := does("open", ProcConnectOpen, libvirt.ConnectOpenArgs{Name: libvirt.OptString{"qemu:///system"}})
	auth := does("auth list", ProcAuthList, nil)
	hostname := does("hostname too early", ProcConnectGetHostname, nil)
	timeout := func(n byte, seconds int32, flags uint32) step {
		return does(fmt.Sprintf("timeout of %d: %d, flags %d", n, seconds, flags), ProcDomainAgentSetResponseTimeout,
			libvirt.DomainAgentSetResponseTimeoutArgs{Dom: dom(n), Timeout: seconds, Flags: flags})
	}
	state := func(n byte) step {
		return does(fmt.Sprintf("state of %d", n), ProcDomainGetState, libvirt.DomainGetStateArgs{Dom: dom(n)})
	}
	feature := func(n int32) step {
		return does(fmt.Sprintf("feature %d", n), ProcConnectSupportsFeature, n)
	}
	stats := func(name string, doms []libvirt.Domain, group, flags uint32) step {
		return does(name, ProcConnectGetAllDomainStats, libvirt.ConnectGetAllDomainStatsArgs{Doms: doms, Stats: group, Flags: flags})
	}
	register := func(id int32) step {
		return does(fmt.Sprintf("register event %d", id), ProcConnectDomainEventCallbackRegisterAny,
			libvirt.ConnectDomainEventCallbackRegisterAnyArgs{EventID: id})
	}
	return [][]step{
		{hostname, auth, hostname, open, open, auth},
		{
			auth, open,
			does("unknown procedure", 9999, nil),
			{"procedure of the QEMU program", header{prog: progQEMU, vers: 1, proc: 77}, nil},
			{"unknown program", header{prog: 77, vers: 1, proc: 1}, nil},
		},
		{auth, open, {"unknown version", header{prog: progRemote, vers: 3, proc: 1}, nil}},
		{
			auth, open,
			does("arguments cut short", ProcDomainLookupByName, []byte{0, 0}),
			does("arguments too long", ProcConnectGetType, []byte{0, 0, 0, 0}),
			{"ping", header{prog: progKeepalive, vers: 1, proc: keepalivePing, typ: typeMessage}, nil},
			feature(8), feature(9), feature(14), feature(15), feature(16), feature(99),
			does("type", ProcConnectGetType, nil),
			does("uri", ProcConnectGetURI, nil),
			does("secure", ProcConnectIsSecure, nil),
			does("by name none", ProcDomainLookupByName, "none"),
			does("by uuid none", ProcDomainLookupByUUID, libvirt.UUID{1}),
			does("by id none", ProcDomainLookupByID, int32(77)),
			does("by name", ProcDomainLookupByName, "agent"),
			does("by uuid", ProcDomainLookupByUUID, recordedUUID(3)),
			does("by id", ProcDomainLookupByID, int32(2)),
			state(1), state(3), state(9),
			does("active", ProcDomainIsActive, dom(1)),
			does("persistent", ProcDomainIsPersistent, dom(1)),
			does("autostart", ProcDomainGetAutostart, dom(3)),
			does("metadata", ProcDomainGetMetadata, libvirt.DomainGetMetadataArgs{Dom: dom(1), Type: 2, Uri: libvirt.OptString{"urn:x"}}),
			does("count of domains", ProcConnectListAllDomains, libvirt.ConnectListAllDomainsArgs{}),
			does("inactive domains", ProcConnectListAllDomains, libvirt.ConnectListAllDomainsArgs{NeedResults: 1, Flags: libvirt.ConnectListDomainsInactive}),
			stats("stats of one", []libvirt.Domain{dom(1)}, 1, 0),
			stats("stats of inactive ones", nil, 1, uint32(libvirt.ConnectGetAllDomainsStatsInactive)),
			stats("stats of one that is gone", []libvirt.Domain{dom(9)}, 1, 0),
			stats("stats enforced", nil, 1<<20, uint32(libvirt.ConnectGetAllDomainsStatsEnforceStats)),
			does("network by name none", ProcNetworkLookupByName, "none"),
			does("network by uuid none", ProcNetworkLookupByUUID, libvirt.UUID{1}),
			does("network by name", ProcNetworkLookupByName, "default"),
			does("network by uuid", ProcNetworkLookupByUUID, network.UUID),
			does("networks", ProcConnectListAllNetworks, libvirt.ConnectListAllNetworksArgs{NeedResults: 1}),
			does("bridge", ProcNetworkGetBridgeName, libvirt.NetworkGetBridgeNameArgs{Net: network}),
			does("network active", ProcNetworkIsActive, libvirt.NetworkIsActiveArgs{Net: network}),
			does("network persistent", ProcNetworkIsPersistent, libvirt.NetworkIsPersistentArgs{Net: network}),
			does("leases", ProcNetworkGetDhcpLeases, libvirt.NetworkGetDhcpLeasesArgs{Net: network, NeedResults: 1}),
			does("leases of none", ProcNetworkGetDhcpLeases, libvirt.NetworkGetDhcpLeasesArgs{Net: libvirt.Network{Name: "q", UUID: libvirt.UUID{1}}, NeedResults: 1}),
			reads(1, 0, 0), reads(1, 1, 0), reads(1, 2, 0), reads(1, 7, 0), reads(1, 0, 1),
			reads(2, 0, 0), reads(2, 1, 0), reads(2, 2, 0),
			reads(3, 0, 0), reads(3, 1, 0), reads(3, 2, 0),
			reads(4, 0, 0), reads(9, 0, 0),
			timeout(1, 2, 0), timeout(2, 2, 0), timeout(3, 2, 0), timeout(1, -3, 0), timeout(1, 2, 1), timeout(9, 2, 0),
		},
		{
			auth, open, register(99), register(0), register(18), register(1), register(26),
			does("deregister one that is none", ProcConnectDomainEventCallbackDeregister, int32(55)),
			does("deregister", ProcConnectDomainEventCallbackDeregister, int32(3)),
			does("create a running one", ProcDomainCreate, dom(1)),
			does("create a running one with flags", ProcDomainCreateWithFlags, libvirt.DomainCreateWithFlagsArgs{Dom: dom(1)}),
			does("destroy an inactive one", ProcDomainDestroy, dom(3)),
			does("shut an inactive one down", ProcDomainShutdown, dom(3)),
			does("reboot an inactive one", ProcDomainReboot, libvirt.DomainRebootArgs{Dom: dom(3)}),
			does("reset an inactive one", ProcDomainReset, libvirt.DomainResetArgs{Dom: dom(3)}),
			does("suspend an inactive one", ProcDomainSuspend, dom(3)),
			does("resume an inactive one", ProcDomainResume, dom(3)),
			does("resume a running one", ProcDomainResume, dom(1)),
			does("suspend", ProcDomainSuspend, dom(1)),
			reads(1, 1, 0), state(1),
			does("suspend again", ProcDomainSuspend, dom(1)),
			does("shut a paused one down", ProcDomainShutdown, dom(1)),
			does("reboot a paused one", ProcDomainReboot, libvirt.DomainRebootArgs{Dom: dom(1)}),
			does("create a paused one", ProcDomainCreate, dom(1)),
			does("resume", ProcDomainResume, dom(1)), state(1),
			does("create", ProcDomainCreate, dom(3)), state(3),
			does("reset", ProcDomainReset, libvirt.DomainResetArgs{Dom: dom(3)}), state(3),
			does("destroy", ProcDomainDestroy, dom(3)), state(3),
			does("create with flags", ProcDomainCreateWithFlags, libvirt.DomainCreateWithFlagsArgs{Dom: dom(3)}),
			does("destroy with flags", ProcDomainDestroyFlags, libvirt.DomainDestroyFlagsArgs{Dom: dom(3)}),
			does("create paused", ProcDomainCreateWithFlags, libvirt.DomainCreateWithFlagsArgs{Dom: dom(3), Flags: 1}), state(3),
			does("destroy a paused one", ProcDomainDestroy, dom(3)),
			does("undefine", ProcDomainUndefineFlags, libvirt.DomainUndefineFlagsArgs{Dom: dom(3)}), state(3),
			does("undefine a running one", ProcDomainUndefine, dom(2)),
			does("undefine it again", ProcDomainUndefine, dom(2)), state(2),
			does("destroy a transient one", ProcDomainDestroy, dom(2)), state(2),
			does("close", ProcConnectClose, nil),
		},
	}
}

// play plays the steps on connections that dial gives, and returns a line for
// each: its name, the reply and, sorted, the events that came until nothing more did.
func play(t *testing.T, dial func() (net.Conn, error)) []string {
	t.Helper()
	var out []string
	for i, steps := range recordedSteps() {
		c, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		for serial, s := range steps {
			args, raw := s.args.([]byte)
			if !raw && s.args != nil {
				if args, err = marshal(s.args); err != nil {
					t.Fatal(err)
				}
			}
			s.head.serial = uint32(serial + 1)
			if _, err := c.Write(frame(s.head, args)); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			reply, events := "", []string(nil)
			for wait := 20 * time.Second; ; {
				if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
					t.Fatal(err)
				}
				head, body, err := readFrame(c)
				if errors.Is(err, os.ErrDeadlineExceeded) && reply != "" {
					break
				}
				if err != nil {
					events = append(events, "end")
					break
				}
				text := hex.EncodeToString(frame(head, body))
				if head.typ == typeMessage && head.prog == progRemote {
					events = append(events, text)
				} else {
					reply = text
					wait = 400 * time.Millisecond
					if i < 4 {
						wait = 5 * time.Millisecond // no events there
					}
				}
			}
			slices.Sort(events)
			events = slices.Compact(events) // a machine's firmware may reset it once more
			out = append(out, strings.Join(append([]string{fmt.Sprintf("%d %s", i+1, s.name), reply}, events...), "\t"))
		}
		_ = c.Close() // the daemon closes the last one
	}
	return out
}

func TestRecorded(t *testing.T) {
	if *record != "" {
		lines := play(t, func() (net.Conn, error) { return net.Dial("unix", *record) })
		if err := os.WriteFile(recording, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(recording)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	s := bufio.NewScanner(f)
	for s.Scan() {
		want = append(want, s.Text())
	}
	if err := errors.Join(s.Err(), f.Close()); err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(t *testing.T) {
		h := recordedHost(t)
		got := play(t, func() (net.Conn, error) { return h.Dial(context.Background()) })
		if len(got) != len(want) {
			t.Fatalf("%d steps, %d recorded ones", len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("step %d\ngot  %s\nwant %s", i+1, readable(got[i]), readable(want[i]))
			}
		}
	})
}

// readable makes a recorded line fit for a person.
func readable(line string) string {
	out := ""
	for i, part := range strings.Split(line, "\t") {
		raw, err := hex.DecodeString(part)
		if i == 0 || err != nil || len(raw) < headerLen {
			out += part + " "
			continue
		}
		out += fmt.Sprintf("\n    % x\n    %q", raw[:headerLen], raw[headerLen:])
	}
	return out
}

// A lease as a real daemon showed it, in the list of its network and of its domain.
func TestRecordedLease(t *testing.T) {
	const (
		list = "0000000100000006766972627230000000000000" + "6b0df023" + "00000000" +
			"0000000100000011" + "35323a35343a30303a30303a30303a3031000000" + "00000000" +
			"0000000e3139322e3136382e3132322e32370000" + "00000018" + "00000000" +
			"00000001000000143031" + "3a35323a35343a30303a30303a30303a3031" + "00000001"
		own = "0000000100000005766e657430000000" +
			"0000000100000011" + "35323a35343a30303a30303a30303a3031000000" +
			"00000001" + "00000000" + "0000000e3139322e3136382e3132322e32370000" + "00000018"
	)
	inBubble(t, func(t *testing.T) {
		h := recordedHost(t)
		h.AddLease("default", Lease{MAC: "52:54:00:00:00:01", Address: netip.MustParsePrefix("192.168.122.27/24"), Expires: time.Unix(0x6b0df023, 0)})
		c, err := h.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }() // the daemon goes with the test
		network, err := marshal(libvirt.NetworkGetDhcpLeasesArgs{Net: h.network("default").ref(), NeedResults: 1})
		if err != nil {
			t.Fatal(err)
		}
		domain, err := marshal(libvirt.DomainInterfaceAddressesArgs{Dom: recordedDomain(1)})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []struct {
			proc Proc
			args []byte
			want string
		}{
			{ProcConnectOpen, make([]byte, 8), ""},
			{ProcNetworkGetDhcpLeases, network, list},
			{ProcDomainInterfaceAddresses, domain, own},
		} {
			if _, err := c.Write(frame(header{prog: progRemote, vers: 1, proc: uint32(s.proc)}, s.args)); err != nil {
				t.Fatal(err)
			}
			_, body, err := readFrame(c)
			if got := hex.EncodeToString(body); err != nil || got != s.want {
				t.Errorf("%v: %v\ngot  %s\nwant %s", s.proc, err, got, s.want)
			}
		}
	})
}
