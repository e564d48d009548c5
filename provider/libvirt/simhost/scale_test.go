package simhost

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// bigHost is a host with n running NAT guests.
func bigHost(t testing.TB, n int) *Host {
	t.Helper()
	h := newHost(t, Options{Networks: []NetworkSpec{{Name: "default", Gateway: netip.MustParsePrefix("10.64.0.1/10")}}})
	for i := range n {
		h.AddDomain(DomainSpec{Name: fmt.Sprintf("vm-%05d", i), Running: true})
	}
	return h
}

// Thousands of domains need no goroutine each, little memory, and no two of
// them share an address, a card or an exit.
func TestManyDomains(t *testing.T) {
	const n = 5000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	h := bigHost(t, n)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if more := runtime.NumGoroutine() - goroutines; more > 2 {
		t.Errorf("%d domains take %d goroutines", n, more)
	}
	if each := int64(after.HeapAlloc-before.HeapAlloc) / n; each > 8<<10 {
		t.Errorf("a domain takes %d bytes, want at most 8 KiB", each)
	}
	addresses, macs, exits := map[netip.Addr]bool{}, map[string]bool{}, map[netip.Addr]int{}
	for _, d := range h.Domains() {
		addresses[d.Addresses()[0]], macs[d.MAC()] = true, true
		exits[d.Exit()]++
	}
	if len(addresses) != n || len(macs) != n || len(exits) != n {
		t.Errorf("%d addresses, %d cards, %d exits of %d domains", len(addresses), len(macs), len(exits), n)
	}
	l := connect(t, h)
	recs, err := l.ConnectGetAllDomainStats(nil, 1, 0)
	if err != nil || len(recs) != n {
		t.Errorf("%d records, %v", len(recs), err)
	}
	net, err := l.NetworkLookupByName("default")
	if err != nil {
		t.Fatal(err)
	}
	if leases, _, err := l.NetworkGetDhcpLeases(net, nil, 1, 0); err != nil || len(leases) != n {
		t.Errorf("%d leases, %v", len(leases), err)
	}
}

// A thousand guests boot at once, in virtual time.
func TestManyBoots(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{Networks: []NetworkSpec{{Name: "default", Gateway: netip.MustParsePrefix("10.64.0.1/10")}}})
		for i := range 1000 {
			if err := h.AddDomain(DomainSpec{Name: fmt.Sprintf("vm-%d", i)}).Start(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		l := connect(t, h)
		for i, d := range h.Domains() {
			if got, want := read(l, d, srcLease), fmt.Sprintf("vnet%d %s %s/10; ", i, d.MAC(), d.Addresses()[0]); got != want {
				t.Fatalf("lease %q, want %q", got, want)
			}
		}
	})
}

func BenchmarkAllDomainStats1000(b *testing.B) {
	l := connect(b, bigHost(b, 1000))
	for b.Loop() {
		if _, err := l.ConnectGetAllDomainStats(nil, 1, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLeases1000(b *testing.B) {
	l := connect(b, bigHost(b, 1000))
	net, err := l.NetworkLookupByName("default")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := l.NetworkGetDhcpLeases(net, nil, 1, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGetState(b *testing.B) {
	h := bigHost(b, 1000)
	l := connect(b, h)
	d := ref(h.Domains()[500])
	for b.Loop() {
		if _, _, err := l.DomainGetState(d, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAgentAddresses(b *testing.B) {
	h := bigHost(b, 1000)
	l := connect(b, h)
	d := ref(h.Domains()[500])
	for b.Loop() {
		if _, err := l.DomainInterfaceAddresses(d, uint32(libvirt.DomainInterfaceAddressesSrcAgent), 0); err != nil {
			b.Fatal(err)
		}
	}
}
