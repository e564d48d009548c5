package pool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"virdeck/model"
)

// text is a decision in lines, for tests.
func text(d Decision) string {
	var b strings.Builder
	for _, k := range []struct {
		what string
		as   []Action
	}{{"add", d.Add}, {"drain", d.Drain}, {"undrain", d.Undrain}, {"delete", d.Delete}} {
		for _, a := range k.as {
			fmt.Fprintf(&b, "%s %s on %s: %s [%s]\n", k.what, a.Name, a.Host, a.Why, a.Cause)
		}
	}
	for _, w := range d.Waits {
		fmt.Fprintf(&b, "wait %s: %s\n", w.Name, w.Why)
	}
	if !d.Again.IsZero() {
		fmt.Fprintf(&b, "again in %s\n", d.Again.Sub(t0))
	}
	return b.String()
}

func pool3() Spec {
	return Spec{Hash: "new", PoolSpec: model.PoolSpec{
		Name: "web", Count: 3, Hosts: names(2), Surge: 1, MinAvailable: 2, DrainTime: 30 * time.Second, FailoverAfter: 5 * time.Minute,
	}}
}

// serves is a member of the wanted template in rotation.
func serves(n int, host model.HostName) Member {
	return Member{Ordinal: n, Host: host, Hash: "new", Created: t0, InRotation: true, Passing: true, Proven: true, Tunnels: -1}
}

func with(m Member, changes ...func(*Member)) Member {
	for _, c := range changes {
		c(&m)
	}
	return m
}

func old(m *Member)   { m.Hash = "old" }
func fails(m *Member) { m.InRotation, m.Passing = false, false }
func fresh(m *Member) { m.InRotation, m.Passing, m.Proven = false, false, false }
func held(m *Member)  { m.InRotation, m.Held = false, true }
func latched(m *Member) {
	fresh(m)
	m.Failed = true
}
func draining(m *Member) { m.InRotation, m.Draining = false, t0.Add(-10*time.Second) }
func drained(m *Member)  { m.InRotation, m.Draining = false, t0.Add(-30*time.Second) }
func quiet(m *Member)    { m.Tunnels = 0 }
func deleting(m *Member) {
	drained(m)
	m.Deleting = true
}

func TestPlan(t *testing.T) {
	bDown := []Host{{Name: "a"}, {Name: "b", DownSince: t0.Add(-time.Minute)}}
	bLost := []Host{{Name: "a"}, {Name: "b", DownSince: t0.Add(-5 * time.Minute)}}
	allDown := []Host{{Name: "a", DownSince: t0}, {Name: "b", DownSince: t0}}
	three := []Member{serves(1, "a"), serves(2, "b"), serves(3, "a")}
	oldThree := []Member{with(serves(1, "a"), old), with(serves(2, "b"), old), with(serves(3, "a"), old)}
	and := func(ms []Member, more ...Member) []Member { return append(append([]Member{}, ms...), more...) }
	for _, tt := range []struct {
		name  string
		spec  func(*Spec)
		ms    []Member
		hosts []Host // nil: a and b answer
		want  string
	}{
		{name: "settled", ms: three},
		{name: "from nothing", want: `
add web-1 on a: declared, and not there [scale]
add web-2 on b: declared, and not there [scale]
add web-3 on a: declared, and not there [scale]`},
		{name: "the host with fewer VMs of others comes first", hosts: []Host{{Name: "a", Others: 5}, {Name: "b"}}, want: `
add web-1 on b: declared, and not there [scale]
add web-2 on a: declared, and not there [scale]
add web-3 on b: declared, and not there [scale]`},
		{name: "from nothing, a host down", hosts: bDown, want: `
add web-1 on a: declared, and not there [scale]
add web-2 on a: declared, and not there [scale]
add web-3 on a: declared, and not there [scale]`},
		{name: "from nothing, all hosts down", hosts: allDown, want: `
wait web-1: no host of the pool answers`},
		{name: "a hole is filled from the lowest", ms: []Member{serves(3, "a")}, want: `
add web-1 on b: declared, and not there [scale]
add web-2 on b: declared, and not there [scale]`},
		{name: "scaled down: the highest first", spec: func(s *Spec) { s.Count = 1; s.MinAvailable = 1 }, ms: three, want: `
drain web-3 on a: surplus [scale]
drain web-2 on b: surplus [scale]`},
		{name: "scaled down while a lower one fails", spec: func(s *Spec) { s.Count = 1; s.MinAvailable = 1 },
			ms: []Member{with(serves(1, "a"), fails), serves(2, "b"), serves(3, "a")}, want: `
drain web-3 on a: surplus [scale]
wait web-2: surplus; stays until web-1 is in rotation`},
		{name: "scaled down, no surge: what is left is min_available", spec: func(s *Spec) { s.Count = 2; s.MinAvailable = 1; s.Surge = 0 },
			ms: []Member{with(serves(1, "a"), fails), with(serves(2, "b"), latched), serves(3, "a")}, want: `
wait web-3: min_available 1: waits until web-1 is in rotation`},
		{name: "draining", spec: func(s *Spec) { s.Count = 2 }, ms: []Member{serves(1, "a"), serves(2, "b"), with(serves(3, "a"), draining)}, want: `
again in 20s`},
		{name: "drained long enough", spec: func(s *Spec) { s.Count = 2 }, ms: []Member{serves(1, "a"), serves(2, "b"), with(serves(3, "a"), drained)}, want: `
delete web-3 on a: surplus [scale]`},
		{name: "no tunnels left", spec: func(s *Spec) { s.Count = 2 }, ms: []Member{serves(1, "a"), serves(2, "b"), with(serves(3, "a"), draining, quiet)}, want: `
delete web-3 on a: surplus [scale]`},
		{name: "scaled up again while it drains", ms: []Member{serves(1, "a"), serves(2, "b"), with(serves(3, "a"), draining)}, want: `
undrain web-3 on a: it is wanted again [scale]`},
		{name: "scaled up again too late", ms: []Member{serves(1, "a"), serves(2, "b"), with(serves(3, "a"), deleting)}},
		{name: "surplus that failed needs no drain", spec: func(s *Spec) { s.Count = 2 }, ms: []Member{serves(1, "a"), serves(2, "b"), with(serves(3, "a"), latched)}, want: `
delete web-3 on a: surplus, and it failed [scale]`},
		{name: "surplus on a host that is down", spec: func(s *Spec) { s.Count = 1; s.MinAvailable = 0 }, hosts: bDown,
			ms: []Member{serves(1, "a"), with(serves(2, "b"), drained)}, want: `
wait web-2: host b does not answer: removed after that`},
		{name: "a new template: the extra comes first", ms: oldThree, want: `
add web-4 on b: stands in while others are replaced (its template has changed) [template]
wait web-1: its template has changed: waits until web-4 is in rotation; 2 more after it`},
		{name: "the extra is not ready", ms: and(oldThree, with(serves(4, "b"), fresh)), want: `
wait web-1: its template has changed: waits until web-4 is in rotation; 2 more after it`},
		{name: "the extra failed", ms: and(oldThree, with(serves(4, "b"), latched)), want: `
wait web-1: its template has changed: waits until web-4 is in rotation (it failed); 2 more after it`},
		{name: "the extra is ready", ms: and(oldThree, serves(4, "b")), want: `
drain web-1 on a: its template has changed [template]
wait web-2: its template has changed: at most 1 replaced at once, waits until web-1 is in rotation; 1 more after it`},
		{name: "the first is being made again", ms: []Member{with(serves(1, "a"), fresh), with(serves(2, "b"), old), with(serves(3, "a"), old), serves(4, "b")}, want: `
wait web-2: its template has changed: at most 1 replaced at once, waits until web-1 is in rotation; 1 more after it`},
		{name: "the last is being made again: the extra stays", ms: []Member{serves(1, "a"), serves(2, "b"), with(serves(3, "a"), fresh), serves(4, "b")}, want: `
wait web-4: surplus; stays until web-3 is in rotation`},
		{name: "all are new: the extra goes", ms: and(three, serves(4, "b")), want: `
drain web-4 on b: surplus [scale]`},
		{name: "in place", spec: func(s *Spec) { s.Surge = 0 }, ms: oldThree, want: `
drain web-1 on a: its template has changed [template]
wait web-2: its template has changed: at most 1 replaced at once, waits until web-1 is in rotation; 1 more after it`},
		{name: "in place, one fails: it is the first", spec: func(s *Spec) { s.Surge = 0 },
			ms: []Member{with(serves(1, "a"), old), with(serves(2, "b"), old, fails), with(serves(3, "a"), old)}, want: `
drain web-2 on b: its template has changed [template]
wait web-1: its template has changed: at most 1 replaced at once, waits until web-2 is in rotation; 1 more after it`},
		{name: "min_available", spec: func(s *Spec) { s.Surge = 0 },
			ms: []Member{with(serves(1, "a"), old), with(serves(2, "b"), fails), with(serves(3, "a"), old)}, want: `
wait web-1: its template has changed: min_available 2: waits until web-2 is in rotation; 1 more after it`},
		{name: "another fails while one drains: that one is taken back", spec: func(s *Spec) { s.Surge = 0 },
			ms: []Member{with(serves(1, "a"), old, draining), with(serves(2, "b"), fails), serves(3, "a")}, want: `
undrain web-1 on a: only 1 in rotation, and min_available is 2 [template]`},
		{name: "the template is changed back while one drains", ms: []Member{with(serves(1, "a"), draining), serves(2, "b"), serves(3, "a")}, want: `
undrain web-1 on a: it is wanted again [scale]`},
		{name: "one that failed is replaced without a drain or an extra",
			ms: []Member{with(serves(1, "a"), old, latched), serves(2, "b"), serves(3, "a")}, want: `
delete web-1 on a: its template has changed [template]`},
		{name: "what an operator holds is left", ms: []Member{serves(1, "a"), with(serves(2, "b"), old, held), serves(3, "a")}, want: `
wait web-2: an operator has taken it out: replaced when it is back (its template has changed)`},
		{name: "a host that is down delays its members alone", hosts: bDown, ms: and(oldThree, serves(4, "a")), want: `
drain web-1 on a: its template has changed [template]
wait web-2: host b does not answer: replaced after that (its template has changed)
wait web-3: its template has changed: at most 1 replaced at once, waits until web-1 is in rotation`},
		{name: "drained, and its host goes down: it serves on", hosts: bDown, ms: []Member{serves(1, "a"), with(serves(2, "b"), old, draining), serves(3, "a")}, want: `
undrain web-2 on b: it is wanted again [template]
wait web-2: host b does not answer: replaced after that (its template has changed)`},
		{name: "a host down makes nothing elsewhere", hosts: bLost, ms: []Member{serves(1, "a"), with(serves(2, "b"), fails), serves(3, "a")}},
		{name: "failover, not yet", spec: func(s *Spec) { s.Failover = true }, hosts: bDown,
			ms: []Member{serves(1, "a"), with(serves(2, "b"), fails), serves(3, "a")}, want: `
again in 4m0s`},
		{name: "failover", spec: func(s *Spec) { s.Failover = true; s.Surge = 0 }, hosts: bLost,
			ms: []Member{serves(1, "a"), with(serves(2, "b"), fails), serves(3, "a")}, want: `
add web-4 on a: stands in for web-2, whose host b does not answer [failover]`},
		{name: "failover is not for those that serve", spec: func(s *Spec) { s.Failover = true }, hosts: bLost, ms: three},
		{name: "the lost one is back, and serves not yet", spec: func(s *Spec) { s.Failover = true; s.Surge = 0 },
			ms: []Member{serves(1, "a"), with(serves(2, "b"), fails), serves(3, "a"), serves(4, "a")}, want: `
wait web-4: surplus; stays until web-2 is in rotation`},
		{name: "the lost one serves again", spec: func(s *Spec) { s.Failover = true }, ms: and(three, serves(4, "a")), want: `
drain web-4 on a: surplus [scale]`},
		{name: "a host that is none of the pool's any more", spec: func(s *Spec) { s.Hosts = names(1); s.Surge = 0 }, ms: three, want: `
drain web-2 on b: host b is none of the pool's [hosts]`},
		{name: "a host that is not there any more", hosts: []Host{{Name: "a"}}, spec: func(s *Spec) { s.Hosts = names(1) }, ms: three, want: `
wait web-2: host b does not answer: replaced after that (host b is none of the pool's)`},
		{name: "old age", spec: func(s *Spec) { s.MaxAge = time.Hour; s.Surge = 0 },
			ms: []Member{serves(1, "a"), with(serves(2, "b"), func(m *Member) { m.Created = at(-time.Hour) }), serves(3, "a")}, want: `
drain web-2 on b: it is older than 1h [age]
again in 1h0m0s`},
		{name: "no more than count and surge", ms: []Member{serves(1, "a"), with(serves(3, "a"), fails), with(serves(4, "b"), draining), with(serves(5, "b"), draining)},
			spec: func(s *Spec) { s.MinAvailable = 1 }, want: `
wait web-2: at most 4 members: waits until one of them is gone
again in 20s`},
		{name: "each one that is replaced has an extra of its own", spec: func(s *Spec) { s.Surge = 2 },
			ms: []Member{with(serves(1, "a"), fresh), with(serves(2, "b"), old), with(serves(3, "a"), old), serves(4, "b"), with(serves(5, "a"), fresh)}, want: `
wait web-2: its template has changed: waits until web-5 is in rotation; 1 more after it`},
		{name: "surplus that min_available keeps does not keep out what it waits for", spec: func(s *Spec) { s.Count = 2; s.Surge = 0; s.MinAvailable = 1 },
			ms: []Member{with(serves(1, "a"), old, fails), serves(3, "a")}, want: `
add web-2 on b: declared, and not there [scale]
wait web-1: its template has changed: at most 1 replaced at once, waits until web-2 is in rotation
wait web-3: min_available 1: waits until web-1 is in rotation`},
		{name: "nor does surplus that was taken back", spec: func(s *Spec) { s.Count = 2; s.Surge = 0; s.MinAvailable = 1 },
			ms: []Member{with(serves(1, "a"), fails), with(serves(3, "a"), drained)}, want: `
add web-2 on b: declared, and not there [scale]
undrain web-3 on a: only 0 in rotation, and min_available is 1 [scale]`},
		{name: "nor does surplus on a host that is down", spec: func(s *Spec) { s.Count = 2; s.Surge = 0; s.MinAvailable = 1 }, hosts: bDown,
			ms: []Member{serves(1, "a"), with(serves(3, "b"), drained)}, want: `
add web-2 on a: declared, and not there [scale]
wait web-3: host b does not answer: removed after that`},
		{name: "none", spec: func(s *Spec) { s.Count = 0 }, ms: three[:1], want: `
drain web-1 on a: surplus [scale]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := pool3()
			if tt.spec != nil {
				tt.spec(&spec)
			}
			hosts := tt.hosts
			if hosts == nil {
				hosts = []Host{{Name: "a"}, {Name: "b"}}
			}
			got := text(Plan(spec, tt.ms, hosts, t0))
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), strings.TrimSuffix(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCause(t *testing.T) {
	for c, want := range map[Cause]string{CauseScale: "scale true", CauseTemplate: "template true", CauseHosts: "hosts true", CauseAge: "age false", CauseFailover: "failover false", 99: "unknown false"} {
		if got := fmt.Sprint(c, " ", c.Declared()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
