package simhost

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// synTimeout is how long a kernel tries to connect to where packets vanish.
const synTimeout = 127 * time.Second

// DialProxy opens an in-memory connection to address ("10.0.0.21:3128") behind
// which a guest of this host may listen, and fails as a real dial would:
//
//   - nobody has the address, or its guest is off or has no address yet:
//     EHOSTUNREACH after Options.NoRouteAfter;
//   - the guest is up and nothing listens on the port: ECONNREFUSED at once;
//   - the guest is paused, or drops packets: it hangs, ETIMEDOUT after 127 s.
//
// The context ends it at any time. Of several guests with one address the one
// that took it last answers. It serves guests whatever the daemon's state.
func (h *Host) DialProxy(ctx context.Context, network, address string) (net.Conn, error) {
	opErr := func(err error) error {
		return &net.OpError{Op: "dial", Net: network, Addr: simAddr(address), Err: err}
	}
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, opErr(&net.AddrError{Err: "not an address and port", Addr: address})
	}
	begin := time.Now()
	for {
		d, reach := h.reach(target)
		var limit time.Duration
		switch reach {
		case reachYes:
			client, server := newPipe(network, simAddr("client"), simAddr(address))
			if !d.servePipe(server) {
				return nil, opErr(syscall.ECONNREFUSED)
			}
			return client, nil
		case reachRefused:
			return nil, opErr(syscall.ECONNREFUSED)
		case reachNobody:
			limit, err = h.opts.NoRouteAfter, syscall.EHOSTUNREACH
		case reachSilent:
			limit, err = synTimeout, syscall.ETIMEDOUT
		}
		// A kernel sends again after one, two, four seconds; once a second is
		// near enough to find out that somebody is there by now.
		left := limit - time.Since(begin)
		if left <= 0 {
			return nil, opErr(err)
		}
		t := time.NewTimer(min(left, time.Second))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, opErr(ctx.Err())
		case <-h.ctx.Done():
			t.Stop()
			return nil, opErr(syscall.ENETDOWN)
		}
	}
}

// HasAddress says whether a guest of this host has the address, up or not.
func (h *Host) HasAddress(a netip.Addr) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.holders[a]) > 0
}

// reachability is what a dial meets.
type reachability int

const (
	reachYes reachability = iota
	reachRefused
	reachNobody
	reachSilent
)

func (h *Host) reach(target netip.AddrPort) (*Domain, reachability) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var owner *nic
	for _, n := range h.holders[target.Addr()] {
		if n.d.netRunning() && (owner == nil || n.claimed > owner.claimed) {
			owner = n
		}
	}
	if h.closed || owner == nil {
		return nil, reachNobody
	}
	return owner.d, owner.d.listens(int(target.Port()))
}

// listens says what a dial to a port of a guest with an address meets.
func (d *Domain) listens(port int) reachability {
	switch {
	case d.state != libvirt.DomainRunning || d.proxy.Mode == ProxyDrop:
		return reachSilent
	case port != d.spec.Port || !d.guest.proxyUp || d.proxy.Mode == ProxyOff:
		return reachRefused
	}
	return reachYes
}

// ProxyAddress returns address and port of the domain's proxy as it is declared,
// "" when the guest has no address.
func (d *Domain) ProxyAddress() string {
	if a := d.Addresses(); len(a) > 0 {
		return net.JoinHostPort(a[0].String(), strconv.Itoa(d.Port()))
	}
	return ""
}
