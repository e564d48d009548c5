package simhost_test

import (
	"context"
	"fmt"
	"net"

	libvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider/libvirt/simhost"
)

// simDialer is what the client library needs to reach a simulated host.
type simDialer struct{ h *simhost.Host }

func (d simDialer) Dial() (net.Conn, error) { return d.h.Dial(context.Background()) }

// A host with one guest, read by the real client while its agent is stopped.
func Example() {
	h := simhost.New(simhost.Options{Name: "beelink"})
	defer func() { _ = h.Close() }()
	d := h.AddDomain(simhost.DomainSpec{Name: "p-01", Running: true})

	l := libvirt.NewWithDialer(simDialer{h})
	if err := l.Connect(); err != nil {
		fmt.Println(err)
		return
	}
	dom, err := l.DomainLookupByName("p-01")
	if err != nil {
		fmt.Println(err)
		return
	}
	d.AgentStop()
	for _, source := range []libvirt.DomainInterfaceAddressesSource{
		libvirt.DomainInterfaceAddressesSrcLease,
		libvirt.DomainInterfaceAddressesSrcAgent,
	} {
		cards, err := l.DomainInterfaceAddresses(dom, uint32(source), 0)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(cards[0].Addrs[0].Addr)
	}
	// Output:
	// 192.168.122.2
	// Guest agent is not responding: QEMU guest agent is not connected
}
