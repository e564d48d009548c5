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
		a = h.askLease(ctx, info)
	case model.SourceAgent:
		a = h.askAgent(ctx, in, dom, info)
	case model.SourceARP:
		a = h.askARP(ctx, dom, info)
	}
	a.Source, a.At, a.Took = src, time.Now(), time.Since(start)
	return a
}

func (h *Host) askARP(ctx context.Context, dom golibvirt.Domain, info domainInfo) answer {
	if !slices.ContainsFunc(info.nics, func(n nic) bool { return n.hostDev != "" }) {
		return answer{Outcome: model.Outcome{Kind: model.OutcomeNotApplicable, Message: "the domain has no interface on the host"}}
	}
	ifs, _, err := do(ctx, h.link, call{Class: ClassRead, What: "arp addresses", Domain: dom.Name},
		func(v *golibvirt.Libvirt) ([]golibvirt.DomainInterface, error) {
			return v.DomainInterfaceAddresses(dom, ifaceARP, 0)
		})
	if arpUnreadable(err) {
		h.mu.Lock()
		h.arpBroken = true
		h.mu.Unlock()
		return answer{Outcome: model.Outcome{Kind: model.OutcomeEmpty, Code: provider.CodeInternal,
			Message: "this host's libvirt cannot read a short neighbour table on its kernel; taken as empty"}}
	}
	return fromInterfaces(ifs, err, info)
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
func fromInterfaces(ifs []golibvirt.DomainInterface, err error, info domainInfo) answer {
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
