package controller

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

var ( // fixed points of the tests' time
	t0  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ip1 = netip.MustParseAddr("10.0.0.21")
	ip2 = netip.MustParseAddr("10.0.0.22")
)

// known1 is a proxy with an address, in its first incarnation.
func known1() status {
	return status{ip: ip1, ipSource: model.SourceAgent, ipAt: t0, incarnation: "u/1", uuid: "u", seen: t0, domain: model.DomainRunning}
}

func at(sec int) time.Time { return t0.Add(time.Duration(sec) * time.Second) }

func inst(sec int, st model.InstanceState, inc model.Incarnation, addrs ...netip.Addr) model.Instance {
	in := model.Instance{Name: "p", UUID: "u", State: st, Domain: model.DomainRunning, Incarnation: inc, At: at(sec), Candidates: addrs, Won: model.SourceAgent}
	if len(addrs) > 0 {
		in.Address = addrs[0]
	}
	if st == model.InstanceStopped {
		in.Domain, in.Reason = model.DomainShutoff, "destroyed"
	}
	return in
}

// passing and failing are the word of the probes through the present address.
func passing(sec int) model.Health {
	return model.Health{InRotation: true, Fall: 3, LastPass: at(sec), Last: model.ProbeResult{Passed: true, Started: at(sec)}}
}

func failing(sec int, demoted bool, fails int) model.Health {
	return model.Health{
		InRotation: !demoted, Demoted: demoted, Fall: 3, Fails: fails, LastFault: at(sec),
		Last: model.ProbeResult{Culprit: model.CulpritHop, Reason: "refused", Started: at(sec)},
	}
}

func TestApply_table(t *testing.T) {
	transient := fmt.Errorf("host h: %w: agent and arp failed", provider.ErrTransient)
	step := func(sec int, in model.Instance, err error, h model.Health, scheduled bool) read {
		return read{inst: in, err: err, now: at(sec), health: h, scheduled: scheduled, hold: 3}
	}
	prov := func(sec int) model.Instance { return inst(sec, model.InstanceProvisioning, "u/1") }
	tests := []struct {
		name  string
		start status
		reads []read
		check func(status) string // what is wrong, or ""
		notes []string
	}{
		{name: "the address known before: confirmed, hold reset",
			start: func() status {
				s := known1()
				s.hold = model.Hold{Active: true, Polls: 2, Of: 3, Since: at(-20)}
				return s
			}(),
			reads: []read{step(1, inst(1, model.InstanceRunning, "u/1", ip1), nil, passing(0), true)},
			check: func(s status) string { return want(s.ip == ip1 && !s.hold.Active && s.ipAt.Equal(at(1)), "confirmed") },
			notes: []string{"address 10.0.0.21 confirmed again by agent"}},
		{name: "provisioning without an address before",
			start: status{},
			reads: []read{step(1, prov(1), nil, model.Health{}, true)},
			check: func(s status) string {
				return want(s.provisioning && !s.ip.IsValid() && !s.hold.Active, "provisioning")
			}},
		{name: "provisioning with an address before: held on the first",
			start: known1(),
			reads: []read{step(1, prov(1), nil, passing(0), true)},
			check: func(s status) string {
				return want(s.ip == ip1 && s.hold.Active && s.hold.Polls == 1 && !s.provisioning, "held")
			},
			notes: []string{"no source names an address now: 10.0.0.21 is held"}},
		{name: "held while its probes pass, however many polls",
			start: known1(),
			reads: repeat(20, func(i int) read { return step(i, prov(i), nil, passing(i), true) }),
			check: func(s status) string { return want(s.ip == ip1 && s.hold.Polls == 20, "held after 20 polls") },
			notes: []string{"no source names an address now: 10.0.0.21 is held"}},
		{name: "only scheduled polls count",
			start: known1(),
			reads: repeat(20, func(i int) read { return step(i, prov(i), nil, failing(i, true, 3), false) }),
			check: func(s status) string { return want(s.ip == ip1 && s.hold.Polls == 0, "held, none counted") },
			notes: []string{"no source names an address now: 10.0.0.21 is held"}},
		{name: "given up when the polls have passed and the probes have condemned it",
			start: known1(),
			reads: []read{step(1, prov(1), nil, passing(0), true), step(6, prov(6), nil, failing(5, true, 3), true), step(11, prov(11), nil, failing(10, true, 6), true)},
			check: func(s status) string { return want(!s.ip.IsValid() && s.provisioning && s.hint == ip1, "given up") },
			notes: []string{"no source names an address now: 10.0.0.21 is held", "the held address 10.0.0.21 is given up"}},
		{name: "one lost probe does not condemn a held address",
			start: known1(),
			reads: repeat(8, func(i int) read { return step(i+1, prov(i+1), nil, failing(i+1, false, 1), true) }),
			check: func(s status) string { return want(s.ip == ip1 && s.hold.Active, "held") },
			notes: []string{"no source names an address now: 10.0.0.21 is held"}},
		{name: "a failure from before the hold does not condemn it",
			start: known1(),
			reads: repeat(8, func(i int) read { return step(i+5, prov(i+5), nil, failing(0, true, 3), true) }),
			check: func(s status) string { return want(s.ip == ip1 && s.hold.Active, "held") },
			notes: []string{"no source names an address now: 10.0.0.21 is held"}},
		{name: "a failure of ours does not condemn it",
			start: known1(),
			reads: repeat(8, func(i int) read {
				h := failing(i+1, true, 3)
				h.Last.Culprit = model.CulpritUs
				return step(i+1, prov(i+1), nil, h, true)
			}),
			check: func(s status) string { return want(s.ip == ip1 && s.hold.Active, "held") },
			notes: []string{"no source names an address now: 10.0.0.21 is held"}},
		{name: "transient: nothing is cleared, nothing counted",
			start: func() status { s := known1(); s.hold = model.Hold{Active: true, Polls: 2, Of: 3}; return s }(),
			reads: repeat(50, func(i int) read { return step(i, model.Instance{Name: "p"}, transient, failing(i, true, 9), true) }),
			check: func(s status) string {
				return want(s.ip == ip1 && s.hold.Polls == 2 && s.failed.Equal(at(0)) && s.readErr == "transient: agent and arp failed" && !s.notAsked, "kept since the first failure")
			}},
		{name: "a caller's own deadline says nothing either",
			start: known1(),
			reads: []read{step(1, model.Instance{Name: "p"}, context.DeadlineExceeded, passing(0), true)},
			check: func(s status) string { return want(s.ip == ip1 && !s.failed.IsZero(), "kept") }},
		{name: "a good read ends the trouble",
			start: known1(),
			reads: []read{step(1, model.Instance{Name: "p"}, transient, passing(0), true), step(2, inst(2, model.InstanceRunning, "u/1", ip1), nil, passing(0), true)},
			check: func(s status) string { return want(s.failed.IsZero() && s.readErr == "", "good") }},
		{name: "a good listing alone does not end it",
			start: known1(),
			reads: []read{step(1, model.Instance{Name: "p"}, transient, passing(0), true),
				{bulk: true, inst: inst(2, model.InstanceUnknown, "u/1"), now: at(2), health: passing(0), hold: 3}},
			check: func(s status) string { return want(!s.failed.IsZero(), "still in doubt") }},
		{name: "another address: make before break",
			start: known1(),
			reads: []read{step(1, inst(1, model.InstanceRunning, "u/1", ip2), nil, passing(0), true), step(2, inst(2, model.InstanceRunning, "u/1", ip2), nil, passing(0), true)},
			check: func(s status) string { return want(s.ip == ip1 && s.candidate == ip2, "both") },
			notes: []string{"another address, 10.0.0.22: 10.0.0.21 stays while it passes, and the new one is proven beside it"}},
		{name: "another address, and then the old one again",
			start: known1(),
			reads: []read{step(1, inst(1, model.InstanceRunning, "u/1", ip2), nil, passing(0), true), step(2, inst(2, model.InstanceRunning, "u/1", ip1), nil, passing(0), true)},
			check: func(s status) string { return want(s.ip == ip1 && !s.candidate.IsValid(), "the old one alone") },
			notes: []string{"another address, 10.0.0.22: 10.0.0.21 stays while it passes, and the new one is proven beside it"}},
		{name: "a new incarnation voids the address, even if the read then fails",
			start: known1(),
			reads: []read{step(1, inst(1, model.InstanceUnknown, "u/2"), transient, passing(0), true)},
			check: func(s status) string {
				return want(!s.ip.IsValid() && s.hint == ip1 && s.incarnation == "u/2" && s.provisioning, "void")
			},
			notes: []string{"the domain was started anew: its address and its proof are void"}},
		{name: "a read that a bulk look overtook counts in the same run",
			start: known1(),
			reads: []read{
				step(1, model.Instance{}, transient, passing(0), true),
				{inst: inst(5, model.InstanceUnknown, "u/1"), bulk: true, now: at(5), health: passing(4), hold: 3},
				step(6, inst(4, model.InstanceRunning, "u/1", ip1), nil, passing(5), true),
			},
			check: func(s status) string {
				return want(s.readErr == "" && s.failed.IsZero() && s.ipAt.Equal(at(6)) && s.seen.Equal(at(5)), "read, and the address confirmed")
			}},
		{name: "a read that a bulk look overtook does not undo that the domain is off",
			start: known1(),
			reads: []read{
				{inst: inst(5, model.InstanceStopped, "u/1"), bulk: true, now: at(5), health: passing(4), hold: 3},
				step(6, inst(4, model.InstanceRunning, "u/1", ip1), nil, passing(5), true),
				{inst: inst(7, model.InstanceStopped, "u/1"), bulk: true, now: at(7), health: passing(4), hold: 3},
			},
			check: func(s status) string { return want(!s.ip.IsValid() && s.off.n == 2, "void") },
			notes: []string{"domain is shut off (destroyed)"}},
		{name: "an older look that comes late changes nothing",
			start: func() status { s := known1(); s.incarnation, s.seen = "u/2", at(10); return s }(),
			reads: []read{step(11, inst(5, model.InstanceRunning, "u/1", ip2), nil, passing(0), true)},
			check: func(s status) string {
				return want(s.ip == ip1 && !s.candidate.IsValid() && s.incarnation == "u/2", "as it was")
			}},
		{name: "shut off once: nothing yet",
			start: known1(),
			reads: []read{step(1, inst(1, model.InstanceStopped, ""), nil, passing(0), true)},
			check: func(s status) string { return want(s.ip == ip1 && s.out == "", "kept") }},
		{name: "shut off, the same look twice, is once",
			start: known1(),
			reads: []read{step(1, inst(1, model.InstanceStopped, ""), nil, passing(0), true), step(2, inst(1, model.InstanceStopped, ""), nil, passing(0), true)},
			check: func(s status) string { return want(s.ip == ip1, "kept") }},
		{name: "shut off twice: void, and out",
			start: known1(),
			reads: []read{step(1, inst(1, model.InstanceStopped, ""), nil, passing(0), true), step(2, inst(2, model.InstanceStopped, ""), nil, passing(0), true)},
			check: func(s status) string {
				return want(!s.ip.IsValid() && s.out == "domain is shut off (destroyed)", "void")
			},
			notes: []string{"domain is shut off (destroyed)"}},
		{name: "shut off, running, shut off is not twice",
			start: known1(),
			reads: []read{step(1, inst(1, model.InstanceStopped, ""), nil, passing(0), true), step(2, inst(2, model.InstanceRunning, "u/1", ip1), nil, passing(0), true),
				step(3, inst(3, model.InstanceStopped, ""), nil, passing(0), true)},
			check: func(s status) string { return want(s.ip == ip1, "kept") }},
		{name: "runs again after it was off",
			start: status{out: "domain is shut off", hint: ip1},
			reads: []read{step(1, prov(1), nil, model.Health{}, true), step(2, inst(2, model.InstanceRunning, "u/1", ip1), nil, model.Health{}, true)},
			check: func(s status) string { return want(s.ip == ip1 && s.out == "", "back") },
			notes: []string{"the domain runs again", "address 10.0.0.21, named by agent"}},
		{name: "paused voids nothing",
			start: known1(),
			reads: repeat(10, func(i int) read { return step(i, inst(i, model.InstancePaused, "u/1"), nil, passing(i), true) }),
			check: func(s status) string { return want(s.ip == ip1 && s.failed.IsZero() && !s.hold.Active, "kept") }},
		{name: "missing once: nothing yet",
			start: known1(),
			reads: []read{step(1, model.Instance{Name: "p", At: at(1)}, provider.ErrNotFound, failing(0, true, 3), true)},
			check: func(s status) string { return want(s.ip == ip1 && s.missing.n == 1, "kept") }},
		{name: "missing twice, and the address passes: kept",
			start: known1(),
			reads: repeat(5, func(i int) read {
				return step(i+1, model.Instance{Name: "p", At: at(i + 1)}, provider.ErrNotFound, passing(i), true)
			}),
			check: func(s status) string { return want(s.ip == ip1 && s.out == "", "kept") },
			notes: []string{"the domain is not listed on this host any more; kept, since 10.0.0.21 still passes probes or has not failed them"}},
		{name: "missing twice, and probes have condemned it: out",
			start: known1(),
			reads: repeat(3, func(i int) read {
				return step(i+1, model.Instance{Name: "p", At: at(i + 1)}, provider.ErrNotFound, failing(i+1, true, 3), true)
			}),
			check: func(s status) string { return want(!s.ip.IsValid() && s.out == "domain missing", "out") },
			notes: []string{"the domain is missing"}},
		{name: "a lease in a listing confirms, and no more",
			start: func() status { s := known1(); s.hold = model.Hold{Active: true, Of: 3, Since: at(-1)}; return s }(),
			reads: []read{{bulk: true, now: at(1), hold: 3, inst: func() model.Instance {
				in := inst(1, model.InstanceUnknown, "u/1")
				in.Outcomes = []model.Outcome{{Source: model.SourceLease, Kind: model.OutcomeAddresses, Addresses: []netip.Addr{ip2, ip1}, At: at(1)}}
				return in
			}()}},
			check: func(s status) string {
				return want(s.ip == ip1 && !s.hold.Active && !s.candidate.IsValid(), "confirmed")
			},
			notes: []string{"address 10.0.0.21 confirmed again by lease"}},
		{name: "a lease in a listing that names another address changes nothing by itself",
			start: known1(),
			reads: []read{{bulk: true, now: at(1), hold: 3, inst: func() model.Instance {
				in := inst(1, model.InstanceUnknown, "u/1")
				in.Outcomes = []model.Outcome{{Source: model.SourceLease, Kind: model.OutcomeAddresses, Addresses: []netip.Addr{ip2}, At: at(1)}}
				return in
			}()}},
			check: func(s status) string { return want(s.ip == ip1 && !s.candidate.IsValid(), "as it was") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.start
			var said []string
			for _, r := range tt.reads {
				var notes []note
				s, notes = s.apply(r)
				for _, n := range notes {
					said = append(said, n.what)
				}
			}
			if bad := tt.check(s); bad != "" {
				t.Errorf("want %s; got %+v", bad, s)
			}
			if !slices.Equal(said, tt.notes) {
				t.Errorf("told\n%q\nwant\n%q", said, tt.notes)
			}
		})
	}
}

func want(ok bool, what string) string {
	if ok {
		return ""
	}
	return what
}

func repeat(n int, f func(int) read) []read {
	out := make([]read, 0, n)
	for i := range n {
		out = append(out, f(i))
	}
	return out
}

func TestKeepOutcomes_notAskedKeepsTheRestWithItsAge(t *testing.T) {
	s := status{}.keepOutcomes([]model.Outcome{{Source: model.SourceAgent, Kind: model.OutcomeAddresses, Addresses: []netip.Addr{ip1}, At: at(1)}})
	s = s.keepOutcomes([]model.Outcome{{Source: model.SourceLease, Kind: model.OutcomeEmpty, At: at(5)}})
	got := s.outcomeList()
	if got[model.SourceAgent].Kind != model.OutcomeAddresses || !got[model.SourceAgent].At.Equal(at(1)) {
		t.Errorf("agent: %+v, want what it said at 1 s", got[model.SourceAgent])
	}
	if got[model.SourceLease].Kind != model.OutcomeEmpty || got[model.SourceARP].Kind != model.OutcomeNone {
		t.Errorf("lease %v, arp %v", got[model.SourceLease].Kind, got[model.SourceARP].Kind)
	}
}
