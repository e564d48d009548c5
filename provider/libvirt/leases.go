package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
)

// leaseAge is how old a network's leases may be for a Get. An error is as good:
// a network that has just failed is not asked again for each of its guests.
const leaseAge = time.Second

// What the leases may take of a Get and of a List. Beyond that the call goes on,
// for the next caller, and this one has the other sources to ask yet.
const (
	leaseShare     = time.Second
	leaseShareList = 2 * time.Second
)

// leaseCalls is how many networks may be asked at one time: where libvirt's
// network driver hangs, all of them do, and others need the slots.
const leaseCalls = 2

// lease is one DHCP lease of a libvirt network.
type lease struct {
	mac    []byte
	addr   string
	expiry int64 // unix seconds by the host's clock; 0 is infinite
}

// leaseTable is a network's leases by MAC (the bytes as a string), newest first.
type leaseTable struct {
	dhcp bool // libvirt gives out leases there at all
	by   map[string][]lease
}

// networks is what is known of a host's libvirt networks on one connection.
type networks struct {
	s    *session
	room chan struct{}

	mu sync.Mutex
	by map[string]*networkCache
}

// networkCache is one of them.
type networkCache struct {
	s      *session
	name   string
	q      lone
	leases shared[leaseTable]

	// For readLeases alone, of which one runs at a time.
	facts  *networkFacts // nil: not known
	last   []lease       // of the last reading
	lastAt time.Time
}

type networkFacts struct {
	net   golibvirt.Network
	dhcp  bool
	lease time.Duration
}

// leased is what a network's leases are, or why they are not known.
type leased struct {
	leaseTable
	err error
}

// network returns what is known of a network on the present connection.
func (h *Host) network(ctx context.Context, name string) (*networkCache, error) {
	s, err := h.link.session(ctx)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	if h.nets == nil || h.nets.s.gen < s.gen {
		h.nets = &networks{s: s, room: make(chan struct{}, leaseCalls), by: map[string]*networkCache{}}
	}
	all := h.nets
	h.mu.Unlock()
	all.mu.Lock()
	defer all.mu.Unlock()
	n := all.by[name]
	if n == nil {
		n = &networkCache{s: all.s, name: name, q: newLone(all.room)}
		n.leases.errs = true
		all.by[name] = n
	}
	return n, nil
}

// tables asks each network once, all at one time, for leases that were read at
// or after notBefore. It returns within share, or when ctx ends.
func (h *Host) tables(ctx context.Context, names []string, notBefore time.Time, share time.Duration) map[string]leased {
	sctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	out := make([]leased, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			n, err := h.network(sctx, name)
			if err == nil {
				out[i].leaseTable, err = n.leases.get(sctx, notBefore, func() (leaseTable, error) { return h.readLeases(n) })
			}
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				err = fmt.Errorf("%w: no answer within %s yet", provider.ErrNotAsked, share)
			}
			if err != nil {
				out[i].err = fmt.Errorf("network %s: %w", name, err)
			}
		})
	}
	wg.Wait()
	by := make(map[string]leased, len(names))
	for i, name := range names {
		by[name] = out[i]
	}
	return by
}

// askLease reads the leases of the domain's networks, one call a network and
// not one a domain.
func (h *Host) askLease(ctx context.Context, info domainInfo) answer {
	return fromLeases(info, h.tables(ctx, info.networks(), time.Now().Add(-leaseAge), leaseShare))
}

// fromLeases is the lease source's answer for a domain. One network that fails
// takes nothing away from what another one says; but where a connection has died
// under the question, nothing is to be concluded from the rest. It is pure.
func fromLeases(info domainInfo, tables map[string]leased) answer {
	var a answer
	var errs []error
	applies := false
	for _, name := range info.networks() {
		t := tables[name]
		switch {
		case t.err != nil:
			errs = append(errs, t.err)
		case !t.dhcp:
			continue
		}
		applies = true
		for _, nic := range info.nics {
			if nic.network != name {
				continue
			}
			for _, l := range t.by[string(nic.mac)] {
				a.take(l.addr, true, name)
			}
		}
	}
	err := errors.Join(errs...)
	switch {
	case !applies:
		return answer{Outcome: model.Outcome{Kind: model.OutcomeNotApplicable, Message: "no interface on a libvirt network with DHCP"}}
	case err == nil:
		return a.done()
	case len(a.Addresses) > 0 && !errors.Is(err, provider.ErrLinkDown):
		a.Message = err.Error()
		return a.done()
	}
	return failed(err)
}

// readLeases reads a network's leases, newest first: where one MAC has two, the
// later one is what the guest was told last.
func (h *Host) readLeases(n *networkCache) (leaseTable, error) {
	ctx, cancel := readCtx()
	defer cancel()
	t, err := h.leasesOf(ctx, n)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%w: no answer within %s", provider.ErrNotAsked, readLimit)
	case code(err) == provider.CodeNoNetwork:
		n.facts = nil // the next one of that name is another
	}
	return t, err
}

func (h *Host) leasesOf(ctx context.Context, n *networkCache) (leaseTable, error) {
	if n.facts == nil {
		f, err := h.readNetwork(ctx, n)
		if err != nil {
			return leaseTable{}, err
		}
		n.facts = &f
	}
	if !n.facts.dhcp {
		return leaseTable{}, nil
	}
	net, start := n.facts.net, time.Now()
	raw, err := onLone(ctx, h.link, n.s, n.q, call{Class: ClassRead, What: "leases of network " + n.name},
		func(v *golibvirt.Libvirt) ([]golibvirt.NetworkDhcpLease, error) {
			ls, _, err := v.NetworkGetDhcpLeases(net, nil, 1, 0)
			return ls, err
		})
	if err != nil {
		return leaseTable{}, err
	}
	out := sortLeases(raw)
	h.mu.Lock()
	h.clock = h.clock.learn(n.last, out, n.facts.lease, n.lastAt, time.Now())
	h.mu.Unlock()
	n.last, n.lastAt = out, start
	t := leaseTable{dhcp: true, by: make(map[string][]lease, len(out))}
	for _, l := range out {
		t.by[string(l.mac)] = append(t.by[string(l.mac)], l)
	}
	return t, nil
}

func (h *Host) readNetwork(ctx context.Context, n *networkCache) (networkFacts, error) {
	type read struct {
		net golibvirt.Network
		xml string
	}
	r, err := onLone(ctx, h.link, n.s, n.q, call{Class: ClassRead, What: "read network " + n.name},
		func(v *golibvirt.Libvirt) (r read, err error) {
			if r.net, err = v.NetworkLookupByName(n.name); err == nil {
				r.xml, err = v.NetworkGetXMLDesc(r.net, 0)
			}
			return r, err
		})
	if err != nil {
		return networkFacts{}, err
	}
	dhcp, lease, err := parseNetwork(r.xml)
	return networkFacts{net: r.net, dhcp: dhcp, lease: lease}, err
}

// sortLeases returns the leases that name a MAC, newest first.
func sortLeases(raw []golibvirt.NetworkDhcpLease) []lease {
	var out []lease
	for _, l := range raw {
		if len(l.Mac) == 0 {
			continue
		}
		if mac, ok := parseMAC(l.Mac[0]); ok {
			out = append(out, lease{mac: mac, addr: l.Ipaddr, expiry: l.Expirytime})
		}
	}
	slices.SortStableFunc(out, func(a, b lease) int {
		switch {
		case a.expiry == b.expiry:
			return 0
		case a.expiry == 0, b.expiry != 0 && a.expiry > b.expiry:
			return -1
		default:
			return 1
		}
	})
	return out
}
