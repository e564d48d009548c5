package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
)

// The sources as DomainInterfaceAddresses numbers them.
const (
	ifaceAgent = 1
	ifaceARP   = 2
)

// leaseAge is how old a network's leases may be for a Get.
const leaseAge = time.Second

// agentAge is how old an agent's answer may be: only so old that two proxies in
// one VM, read at one time, ask once.
const agentAge = 100 * time.Millisecond

// agentSlack is how long after libvirt's own limit an agent call is given up.
// Without such a limit, agentPatience is all that it gets.
const (
	agentSlack    = time.Second
	agentPatience = 4 * time.Second
)

// ask puts the question to one source and times it. The answer's err is set
// exactly when the kind is failed or not asked.
func (h *Host) ask(ctx context.Context, src model.Source, in *model.Instance, dom golibvirt.Domain, info domainInfo, enabled []model.Source) answer {
	if !slices.Contains(enabled, src) {
		return answer{Outcome: model.Outcome{Source: src, Kind: model.OutcomeNotApplicable, Message: "turned off in the configuration"}}
	}
	start := time.Now()
	var a answer
	switch src {
	case model.SourceLease:
		return h.askLease(ctx, info, start.Add(-leaseAge))
	case model.SourceAgent:
		a = h.askAgent(ctx, in, dom, info, start.Add(-agentAge))
	case model.SourceARP:
		a = h.askARP(ctx, dom, info)
	}
	a.Source, a.At, a.Took = src, time.Now(), time.Since(start)
	return a
}

func (h *Host) askAgent(ctx context.Context, in *model.Instance, dom golibvirt.Domain, info domainInfo, notBefore time.Time) answer {
	if !info.agent {
		return answer{Outcome: model.Outcome{Kind: model.OutcomeNotApplicable, Message: "the domain has no guest agent channel"}}
	}
	patience := agentPatience
	if h.opts.AgentTimeout > 0 {
		patience = h.opts.AgentTimeout + agentSlack
	}
	guest := *in // the call may outlive the caller's
	if err := h.mayAsk(&guest, time.Now()); err != nil {
		return failed(err)
	}
	h.mu.Lock()
	a := h.agents[in.UUID]
	if a == nil {
		a = &agentCall{}
		h.agents[in.UUID] = a
	}
	h.mu.Unlock()
	ifs, err := a.get(ctx, notBefore, func() ([]golibvirt.DomainInterface, error) {
		actx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ifs, err := h.interfaces(actx, ClassAgent, dom, ifaceAgent)
		if errors.Is(err, context.DeadlineExceeded) {
			// Asked, and silent: that is the guest's doing, not ours.
			h.agentHangs(&guest, time.Now())
			err = fmt.Errorf("the agent gave no answer within %s; libvirt still waits for it", patience)
		} else if err == nil {
			h.agentLives(guest.UUID)
		}
		return ifs, err
	})
	return h.fromInterfaces(ifs, err, info)
}

func (h *Host) askARP(ctx context.Context, dom golibvirt.Domain, info domainInfo) answer {
	if !slices.ContainsFunc(info.nics, func(n nic) bool { return n.hostDev != "" }) {
		return answer{Outcome: model.Outcome{Kind: model.OutcomeNotApplicable, Message: "the domain has no interface on the host"}}
	}
	ifs, err := h.interfaces(ctx, ClassRead, dom, ifaceARP)
	if arpUnreadable(err) {
		h.mu.Lock()
		h.arpBroken = true
		h.mu.Unlock()
		return answer{Outcome: model.Outcome{Kind: model.OutcomeEmpty, Code: provider.CodeInternal,
			Message: "this host's libvirt cannot read a short neighbour table on its kernel; taken as empty"}}
	}
	return h.fromInterfaces(ifs, err, info)
}

// arpUnreadable recognises the two errors that libvirt before 10 or so gives
// for an empty or short neighbour table on kernels from about 6.10, where
// NLMSG_DONE came to ride in the last datagram (virarptable.c checks the length
// first). Exact messages, and only with code 1.
func arpUnreadable(err error) bool {
	var ce *provider.CodedError
	if !errors.As(err, &ce) || ce.Code != provider.CodeInternal {
		return false
	}
	m := strings.TrimPrefix(ce.Message, "internal error: ")
	return m == "wrong nlmsg len" || m == "malformed netlink response message"
}

func (h *Host) interfaces(ctx context.Context, c Class, dom golibvirt.Domain, source uint32) ([]golibvirt.DomainInterface, error) {
	what := "agent addresses"
	if source == ifaceARP {
		what = "arp addresses"
	}
	ifs, _, err := do(ctx, h.link, call{Class: c, What: what, Domain: dom.Name},
		func(v *golibvirt.Libvirt) ([]golibvirt.DomainInterface, error) {
			return v.DomainInterfaceAddresses(dom, source, 0)
		})
	return ifs, err
}

// failed makes the outcome of a question that got no answer.
func failed(err error) answer {
	a := answer{err: err, Outcome: model.Outcome{Kind: model.OutcomeFailed, Message: err.Error()}}
	if errors.Is(err, provider.ErrNotAsked) {
		a.Kind = model.OutcomeNotAsked
		return a
	}
	if ce, ok := errors.AsType[*provider.CodedError](err); ok {
		a.Code, a.Message = ce.Code, ce.Message
	}
	return a
}

// fromInterfaces keeps the usable addresses of the domain's own NICs, and says
// of every other why it does not count.
func (h *Host) fromInterfaces(ifs []golibvirt.DomainInterface, err error, info domainInfo) answer {
	if err != nil {
		return failed(err)
	}
	var a answer
	for _, i := range ifs {
		var own bool
		if len(i.Hwaddr) > 0 {
			mac, ok := parseMAC(i.Hwaddr[0])
			own = ok && info.owns(mac)
		}
		for _, ad := range i.Addrs {
			a.take(ad.Addr, own, i.Name)
		}
	}
	return a.done()
}

// take sorts one address in.
func (a *answer) take(text string, own bool, iface string) {
	ad, err := netip.ParseAddr(text)
	if err != nil {
		a.Ignored = append(a.Ignored, model.Ignored{Why: fmt.Sprintf("%q is not an address", text)})
		return
	}
	ad = ad.Unmap().WithZone("")
	why := usable(ad)
	if why == "" && !own {
		why = "interface " + iface + " is not a NIC of this domain"
	}
	switch {
	case why != "":
		a.Ignored = append(a.Ignored, model.Ignored{Address: ad, Why: why})
	case !slices.Contains(a.Addresses, ad):
		a.Addresses = append(a.Addresses, ad)
	}
}

// done settles the kind.
func (a answer) done() answer {
	a.Kind = model.OutcomeEmpty
	if len(a.Addresses) > 0 {
		a.Kind = model.OutcomeAddresses
	}
	return a
}

// lease is one DHCP lease of a libvirt network.
type lease struct {
	mac    []byte
	addr   string
	expiry int64 // unix seconds by the host's clock; 0 is infinite
}

// leaseTable is a network's leases by MAC (the bytes as a string), newest first.
type leaseTable struct{ by map[string][]lease }

// askLease reads the leases of the domain's networks, one call a network and
// not one a domain, no older than notBefore.
func (h *Host) askLease(ctx context.Context, info domainInfo, notBefore time.Time) answer {
	start := time.Now()
	var a answer
	applies := false
	for _, name := range info.networks() {
		n, err := h.network(ctx, name)
		if err == nil && !n.facts.dhcp {
			continue
		}
		applies = true
		var ls leaseTable
		if err == nil {
			ls, err = n.leases.get(ctx, notBefore, func() (leaseTable, error) { return h.readLeases(n) })
		}
		if err != nil {
			a = failed(fmt.Errorf("network %s: %w", name, err))
			break
		}
		for _, nic := range info.nics {
			if nic.network != name {
				continue
			}
			for _, l := range ls.by[string(nic.mac)] {
				a.take(l.addr, true, name)
			}
		}
	}
	switch {
	case !applies:
		a = answer{Outcome: model.Outcome{Kind: model.OutcomeNotApplicable, Message: "no interface on a libvirt network with DHCP"}}
	case a.err == nil:
		a = a.done()
	}
	a.Source, a.At, a.Took = model.SourceLease, time.Now(), time.Since(start)
	return a
}

// network returns what is known of a network, read once a generation.
func (h *Host) network(ctx context.Context, name string) (*networkCache, error) {
	gen := h.link.Status().Generation
	h.mu.Lock()
	n := h.networks[name]
	h.mu.Unlock()
	if n != nil && n.gen == gen {
		return n, nil
	}
	facts, gen, err := do(ctx, h.link, call{Class: ClassRead, What: "read network " + name},
		func(v *golibvirt.Libvirt) (networkFacts, error) {
			net, err := v.NetworkLookupByName(name)
			if err != nil {
				return networkFacts{}, err
			}
			text, err := v.NetworkGetXMLDesc(net, 0)
			return networkFacts{net: net, xml: text}, err
		})
	if err != nil {
		return nil, err
	}
	if facts.dhcp, facts.lease, err = parseNetwork(facts.xml); err != nil {
		return nil, err
	}
	facts.xml = ""
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.networks[name]; n != nil && n.gen == gen {
		return n, nil // another caller was quicker; share its leases
	}
	n = &networkCache{gen: gen, facts: facts}
	h.networks[name] = n
	return n, nil
}

// readLeases reads a network's leases, newest first: where one MAC has two, the
// later one is what the guest was told last.
func (h *Host) readLeases(n *networkCache) (leaseTable, error) {
	ctx, cancel := readCtx()
	defer cancel()
	start := time.Now()
	raw, _, err := do(ctx, h.link, call{Class: ClassRead, What: "leases of network " + n.facts.net.Name},
		func(v *golibvirt.Libvirt) ([]golibvirt.NetworkDhcpLease, error) {
			ls, _, err := v.NetworkGetDhcpLeases(n.facts.net, nil, 1, 0)
			return ls, err
		})
	if err != nil {
		return leaseTable{}, err
	}
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
	h.mu.Lock()
	h.clock = h.clock.learn(n.last, out, n.facts.lease, n.lastAt, time.Now())
	h.mu.Unlock()
	n.last, n.lastAt = out, start
	t := leaseTable{by: make(map[string][]lease, len(out))}
	for _, l := range out {
		t.by[string(l.mac)] = append(t.by[string(l.mac)], l)
	}
	return t, nil
}
