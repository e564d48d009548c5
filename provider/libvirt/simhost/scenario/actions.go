package scenario

import (
	"maps"
	"slices"
	"strings"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider/libvirt/simhost"
)

// An action is something that can happen. Its run does it on a stage and
// returns how to end it; with "for" that comes after so long, without "for" never.
type action struct {
	on    target
	needs []string // parameters that must be given
	takes []string // parameters that may be given
	// check finds what is wrong with the parameters' values; "" is nothing.
	check func(*Scenario, *step) (key, msg string)
	run   func(*Stage, *step) (end func() error, err error)
}

// Actions returns the words that a step's "what" may be.
func Actions() []string { return slices.Sorted(maps.Keys(actions())) }

// actions is the table of all that can happen. A word may mean one thing for a
// host and another for a guest.
func actions() map[string][]action {
	all := map[string][]action{}
	for _, part := range []map[string]action{daemonActions(), networkActions(), callActions(), powerActions(), guestActions(), originActions(), poolActions()} {
		for word, a := range part {
			all[word] = append(all[word], a)
		}
	}
	return all
}

// eachHost makes an action's run from what is done to one host, and undone.
func eachHost(do func(h *simhost.Host, s *step) error, undo func(h *simhost.Host, s *step) error) func(*Stage, *step) (func() error, error) {
	return func(st *Stage, s *step) (func() error, error) {
		if err := st.onHosts(s, do); err != nil {
			return nil, err
		}
		if undo == nil {
			return nil, nil //nolint:nilnil // nothing to end
		}
		return func() error { return st.onHosts(s, undo) }, nil
	}
}

// never makes a function of what cannot fail.
func never[T any](f func(T)) func(T, *step) error {
	return func(t T, _ *step) error {
		f(t)
		return nil
	}
}

func daemonActions() map[string]action {
	kill, start := never((*simhost.Host).Kill), func(h *simhost.Host, _ *step) error { return h.Start() }
	freeze, thaw := never((*simhost.Host).Freeze), never((*simhost.Host).Thaw)
	refuse := func(v bool) func(*simhost.Host, *step) error { return never(func(h *simhost.Host) { h.Refuse(v) }) }
	lose := func(v bool) func(*simhost.Host, *step) error { return never(func(h *simhost.Host) { h.DropEvents(v) }) }
	arpOK := never(func(h *simhost.Host) { h.SetARPError("") })
	lasts := []string{"for"}
	return map[string]action{
		"kill":        {on: onHost, takes: lasts, run: eachHost(kill, start)},
		"start":       {on: onHost, run: eachHost(start, nil)},
		"restart":     {on: onHost, needs: lasts, run: eachHost(kill, start)},
		"freeze":      {on: onHost, takes: lasts, run: eachHost(freeze, thaw)},
		"thaw":        {on: onHost, run: eachHost(thaw, nil)},
		"refuse":      {on: onHost, takes: lasts, run: eachHost(refuse(true), refuse(false))},
		"accept":      {on: onHost, run: eachHost(refuse(false), nil)},
		"lose-events": {on: onHost, takes: lasts, run: eachHost(lose(true), lose(false))},
		"send-events": {on: onHost, run: eachHost(lose(false), nil)},
		"arp-ok":      {on: onHost, run: eachHost(arpOK, nil)},
		"power-off":   {on: onHost, takes: lasts, run: eachHost(never((*simhost.Host).PowerOff), start)},
		"auth": {on: onHost, needs: []string{"mode"}, takes: lasts,
			check: func(_ *Scenario, s *step) (string, string) { return checkWord("mode", s.Mode, authModes) },
			run: eachHost(func(h *simhost.Host, s *step) error {
				h.SetAuth(authModes[s.Mode])
				return nil
			}, never(func(h *simhost.Host) { h.SetAuth(simhost.AuthNone) }))},
		"arp-error": {on: onHost, needs: []string{"message"}, takes: lasts, run: eachHost(func(h *simhost.Host, s *step) error {
			m := s.Message
			switch m { // the two of a known bug have a word
			case "wrong-length":
				m = simhost.ARPWrongLength
			case "malformed":
				m = simhost.ARPMalformed
			}
			h.SetARPError(m)
			return nil
		}, arpOK)},
		"clock": {on: onHost, needs: []string{"by"}, takes: lasts, run: eachHost(func(h *simhost.Host, s *step) error {
			h.ShiftClock(s.By)
			return nil
		}, func(h *simhost.Host, s *step) error {
			h.ShiftClock(-s.By)
			return nil
		})},
	}
}

var authModes = map[string]simhost.Auth{
	"none": simhost.AuthNone, "polkit": simhost.AuthPolkit, "denied": simhost.AuthDenied, "sasl": simhost.AuthSASL,
}

// knownNetwork checks that each host of a step, or of its guests, has the network
// that it names, or that a step defines one of that name.
func knownNetwork(sc *Scenario, s *step) (string, string) {
	if !s.given["network"] {
		return "", ""
	}
	on := slices.Clone(s.hosts)
	for _, id := range s.guests {
		host, _, _ := strings.Cut(id, "/")
		on = append(on, host)
	}
	for _, host := range on {
		names := slices.Clone(sc.later)
		for _, n := range sc.networksOf(host) {
			names = append(names, n.Name)
		}
		if !slices.Contains(names, s.Network) {
			return "network", unknown("network", s.Network, names)
		}
	}
	return "", ""
}

func networkActions() map[string]action {
	active := func(v bool) func(*simhost.Host, *step) error {
		return func(h *simhost.Host, s *step) error {
			h.SetNetworkActive(s.Network, v)
			return nil
		}
	}
	oneGateway := func(_ *Scenario, s *step) (string, string) {
		if len(s.Gateway) != 1 {
			return "gateway", "want one address"
		}
		return "", ""
	}
	oneAddress := func(sc *Scenario, s *step) (string, string) {
		if len(s.Address) != 1 {
			return "address", "want one address"
		}
		return knownNetwork(sc, s)
	}
	return map[string]action{
		"network-stop":  {on: onHost, needs: []string{"network"}, takes: []string{"for"}, check: knownNetwork, run: eachHost(active(false), active(true))},
		"network-start": {on: onHost, needs: []string{"network"}, check: knownNetwork, run: eachHost(active(true), nil)},
		"undefine-network": {on: onHost, needs: []string{"network"}, check: knownNetwork, run: eachHost(func(h *simhost.Host, s *step) error {
			h.UndefineNetwork(s.Network)
			return nil
		}, nil)},
		"define-network": {on: onHost, needs: []string{"network", "gateway"}, takes: []string{"bridge", "no_dhcp"}, check: oneGateway,
			run: eachHost(func(h *simhost.Host, s *step) error {
				h.AddNetwork(simhost.NetworkSpec{Name: s.Network, Gateway: s.Gateway[0], Bridge: s.Bridge, NoDHCP: s.NoDHCP})
				return nil
			}, nil)},
		"add-lease": {on: onHost, needs: []string{"network", "mac", "address"}, takes: []string{"expires"}, check: oneAddress,
			run: eachHost(func(h *simhost.Host, s *step) error {
				h.AddLease(s.Network, simhost.Lease{MAC: s.MAC, Address: s.Address[0], Expires: s.expiry(h)})
				return nil
			}, nil)},
	}
}

// expiry is the end of a lease by the host's clock; without "expires" there is none.
func (s *step) expiry(h *simhost.Host) time.Time {
	if s.Expires.d == 0 {
		return time.Time{}
	}
	return h.Clock().Add(s.Expires.d)
}

// callActions hit calls, of a host or about a guest.
func callActions() map[string]action {
	out := map[string]action{}
	add := func(word string, kind simhost.FaultKind, needs ...string) {
		out[word] = action{
			on: onHost | onGuest, needs: needs, takes: []string{"proc", "times", "message", "for"},
			check: func(_ *Scenario, s *step) (string, string) {
				if s.given["message"] && kind != simhost.FaultError {
					return "message", word + " has no message"
				}
				if kind == simhost.FaultError && s.Code == 0 {
					return "code", "want a number of libvirt's virErrorNumber, from 1"
				}
				return "", ""
			},
			run: func(st *Stage, s *step) (func() error, error) {
				f := simhost.Fault{Proc: s.Proc, Kind: kind, Delay: s.Delay, Times: s.Times}
				if kind == simhost.FaultError {
					f.Error = simhost.Error{Code: libvirt.ErrorNumber(s.Code), Message: s.Message}
					if f.Error.Message == "" {
						f.Error.Message = "commanded error"
					}
				}
				return st.inject(s, f), nil
			},
		}
	}
	add("call-error", simhost.FaultError, "code")
	add("call-hang", simhost.FaultHang)
	add("call-delay", simhost.FaultDelay, "delay")
	add("call-cut-before", simhost.FaultCutBefore)
	add("call-cut-reply", simhost.FaultCutReply)
	add("call-cut-inside", simhost.FaultCutInside)
	add("call-garbage", simhost.FaultGarbage)
	add("call-noise", simhost.FaultNoise)
	add("call-short", simhost.FaultShort)
	add("call-huge", simhost.FaultHuge)
	out["calls-ok"] = action{on: onHost | onGuest, run: func(st *Stage, s *step) (func() error, error) {
		st.callsOK(s)
		return nil, nil //nolint:nilnil // nothing to end
	}}
	return out
}

// poolActions happen to a storage pool of a host.
func poolActions() map[string]action {
	active := func(v bool) func(*simhost.Host, *step) error {
		return func(h *simhost.Host, s *step) error {
			h.SetPoolActive(s.Pool, v)
			return nil
		}
	}
	known := func(_ *Scenario, s *step) (string, string) {
		if name := simhost.DefaultPool().Name; s.Pool != name {
			return "pool", unknown("pool", s.Pool, []string{name})
		}
		return "", ""
	}
	return map[string]action{
		"pool-stop":  {on: onHost, needs: []string{"pool"}, takes: []string{"for"}, check: known, run: eachHost(active(false), active(true))},
		"pool-start": {on: onHost, needs: []string{"pool"}, check: known, run: eachHost(active(true), nil)},
		"pool-size": {on: onHost, needs: []string{"pool", "mib"}, check: known, run: eachHost(func(h *simhost.Host, s *step) error {
			h.SetPoolCapacity(s.Pool, uint64(s.MiB)<<20)
			return nil
		}, nil)},
	}
}

var originModes = map[string]simhost.OriginMode{
	"ok": simhost.OriginOK, "down": simhost.OriginDown, "hang": simhost.OriginHang, "error": simhost.OriginError,
}

func originActions() map[string]action {
	return map[string]action{
		"origin": {on: onNobody, needs: []string{"mode"}, takes: []string{"for"},
			check: func(_ *Scenario, s *step) (string, string) { return checkWord("mode", s.Mode, originModes) },
			run: func(st *Stage, s *step) (func() error, error) {
				st.origin.SetMode(originModes[s.Mode])
				return func() error {
					st.origin.SetMode(simhost.OriginOK)
					return nil
				}, nil
			}},
	}
}

func checkWord[V any](key, got string, allowed map[string]V) (string, string) {
	if _, ok := allowed[got]; ok {
		return "", ""
	}
	return key, unknown(strings.ToLower(key), got, slices.Sorted(maps.Keys(allowed)))
}
