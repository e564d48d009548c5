package libvirt

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"virdeck/model"
	"virdeck/provider"
)

// Family is the address family that is preferred where a guest has both.
type Family int

// The families.
const (
	FamilyIPv4 Family = iota
	FamilyIPv6
)

// The ranges that no host has beside those that netip knows (RFC 6890, RFC 3879).
var (
	broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	nobodys   = [...]struct {
		netip.Prefix
		why string
	}{
		{netip.PrefixFrom(netip.AddrFrom4([4]byte{}), 8), "of no host"},
		{netip.PrefixFrom(netip.AddrFrom4([4]byte{240}), 4), "reserved"},
		{netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfe, 0xc0}), 10), "site-local"},
	}
)

// usable returns why an address does not count, or "".
func usable(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "not an address"
	case a.IsUnspecified():
		return "unspecified"
	case a.IsLoopback():
		return "loopback"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast():
		return "multicast"
	case a == broadcast:
		return "broadcast"
	}
	for _, n := range nobodys {
		if n.Contains(a) {
			return n.why + " (" + n.String() + ")"
		}
	}
	return ""
}

// answer is an outcome with the error behind it, if it failed.
type answer struct {
	model.Outcome
	err error
}

// judged is what the sources' answers amount to.
type judged struct {
	state      model.InstanceState
	address    netip.Addr
	won        model.Source
	candidates []netip.Addr
}

// errNoSource: the configuration or the domain leaves nobody to ask.
var errNoSource = provider.Transient("no address source applies to this domain", nil)

// judge is the address rule. It is pure. The first of these that is true:
//
//   - a source names a usable address: running, with it;
//   - a source that could decide was not asked for a reason of ours:
//     ErrTransient, since a neighbour's trouble is not this guest's silence;
//   - a source answered with nothing: provisioning;
//   - every source that applies failed: ErrTransient, with every cause.
//
// The wrap in the last case is load-bearing. Without it the first libvirt code
// among the joined causes would decide the class, and a failed read of an
// address would condemn a running proxy (code 8, INVALID_ARG, is permanent).
func judge(answers []answer, hint netip.Addr, prefer Family) (judged, error) {
	if j, ok := choose(answers, hint, prefer); ok {
		return j, nil
	}
	var causes []error
	empty, notAsked, applies := false, false, false
	for _, a := range answers {
		switch a.Kind {
		case model.OutcomeAddresses: // choose has seen it
		case model.OutcomeEmpty:
			empty, applies = true, true
		case model.OutcomeNotAsked:
			notAsked, applies = true, true
			causes = append(causes, fmt.Errorf("%s: %w", a.Source, a.err))
		case model.OutcomeFailed:
			applies = true
			causes = append(causes, fmt.Errorf("%s: %w", a.Source, a.err))
		case model.OutcomeNone, model.OutcomeNotApplicable:
		}
	}
	switch {
	case !applies:
		return judged{}, errNoSource
	case notAsked:
		return judged{}, fmt.Errorf("%w: %w", provider.ErrNotAsked, errors.Join(causes...))
	case empty:
		return judged{state: model.InstanceProvisioning}, nil
	default:
		return judged{}, provider.Transient("every address source failed", errors.Join(causes...))
	}
}

// preference is the order in which sources are believed when nothing else
// decides: the guest itself, then the host's DHCP server, then its neighbour
// table.
var preference = [...]model.Source{model.SourceAgent, model.SourceLease, model.SourceARP}

// choose picks one address among all that were named. The caller's hint wins if
// it is still named and the agent, where it answered, names it too; else the
// preferred family first, then the preferred source, in the source's own order.
func choose(answers []answer, hint netip.Addr, prefer Family) (judged, bool) {
	type cand struct {
		addr netip.Addr
		src  model.Source
	}
	var cands []cand
	agentSays := false
	agentHas := map[netip.Addr]bool{}
	for _, src := range preference {
		for _, a := range answers {
			if a.Source != src || a.Kind != model.OutcomeAddresses {
				continue
			}
			for _, ad := range a.Addresses {
				if src == model.SourceAgent {
					agentSays = true
					agentHas[ad] = true
				}
				if !slices.ContainsFunc(cands, func(c cand) bool { return c.addr == ad }) {
					cands = append(cands, cand{ad, src})
				}
			}
		}
	}
	if len(cands) == 0 {
		return judged{}, false
	}
	slices.SortStableFunc(cands, func(a, b cand) int {
		switch pa, pb := preferred(a.addr, prefer), preferred(b.addr, prefer); {
		case pa == pb:
			return 0
		case pa:
			return -1
		default:
			return 1
		}
	})
	win := 0
	for i, c := range cands {
		if c.addr == hint && (!agentSays || agentHas[hint]) {
			win = i
		}
	}
	j := judged{state: model.InstanceRunning, address: cands[win].addr, won: cands[win].src}
	for _, c := range cands {
		j.candidates = append(j.candidates, c.addr)
	}
	return j, true
}

func preferred(a netip.Addr, f Family) bool { return a.Is4() == (f == FamilyIPv4) }
