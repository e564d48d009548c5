package pool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"virdeck/model"
)

// world carries out decisions, with faults. It holds each decision against the
// rules, by its own reckoning.
type world struct {
	t     *testing.T
	r     *rand.Rand
	now   time.Time
	spec  Spec
	ms    map[int]*vm
	down  map[model.HostName]time.Time
	made  int
	trail []string
}

// vm is a member, and what the world knows of it beside.
type vm struct {
	Member
	broken bool // a fault: its probes fail
}

func names(n int) []model.HostName {
	return []model.HostName{"a", "b", "c", "d"}[:n]
}

func newWorld(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{t: t, r: r, now: t0, ms: map[int]*vm{}, down: map[model.HostName]time.Time{}}
	w.spec = Spec{Hash: "good-0", PoolSpec: model.PoolSpec{
		Name: "web", Hosts: names(1 + r.IntN(4)), DrainTime: 30 * time.Second,
		Failover: r.IntN(3) == 0, FailoverAfter: 5 * time.Minute,
	}}
	w.rescale()
	return w
}

// rescale declares other numbers, within what the configuration allows.
func (w *world) rescale() {
	w.spec.Count, w.spec.Surge = w.r.IntN(7), w.r.IntN(3)
	most := w.spec.Count
	if w.spec.Surge == 0 {
		most--
	}
	w.spec.MinAvailable = w.r.IntN(max(0, most) + 1)
}

func (w *world) hosts() []Host {
	var out []Host
	for _, n := range names(4) {
		out = append(out, Host{Name: n, DownSince: w.down[n]})
	}
	return out
}

func (w *world) members() []Member {
	var out []Member
	for _, n := range w.ordinals() {
		m := w.ms[n]
		m.Passing = m.Hash != "" && !m.broken && !m.Failed && m.Hash != "bad"
		// It comes into the rotation in settle; it leaves it at once.
		m.InRotation = m.InRotation && m.Passing && m.Draining.IsZero() && !m.Deleting && !m.Held
		out = append(out, m.Member)
	}
	w.r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func (w *world) ordinals() []int {
	var out []int
	for n := range w.ms {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func (w *world) up(h model.HostName) bool { return w.down[h].IsZero() }

// pick is one of the members, or nil.
func (w *world) pick() *vm {
	if len(w.ms) == 0 {
		return nil
	}
	o := w.ordinals()
	return w.ms[o[w.r.IntN(len(o))]]
}

// event is a random change from outside.
func (w *world) event() {
	m := w.pick()
	switch k := w.r.IntN(16); {
	case k == 0:
		w.rescale()
		w.log("count %d surge %d min %d", w.spec.Count, w.spec.Surge, w.spec.MinAvailable)
	case k == 1:
		w.spec.Hash = []string{"good-0", "good-1", "good-2", "bad"}[w.r.IntN(4)]
		w.log("template %s", w.spec.Hash)
	case k == 2:
		w.spec.Hosts = names(1 + w.r.IntN(4))
		w.log("hosts %v", w.spec.Hosts)
	case k <= 4:
		h := names(4)[w.r.IntN(4)]
		if w.up(h) {
			w.down[h] = w.now
		} else {
			delete(w.down, h)
		}
		w.log("host %s up %v", h, w.up(h))
	case m == nil:
	case k == 5:
		m.Held = !m.Held
		w.log("web-%d held %v", m.Ordinal, m.Held)
	case k <= 8:
		m.broken = !m.broken
		w.log("web-%d broken %v", m.Ordinal, m.broken)
	case k == 9 && m.Hash == "":
		m.Failed = true
		w.log("web-%d failed", m.Ordinal)
	case k == 10:
		m.Tunnels = w.r.IntN(3) - 1
	}
}

// settle lets what is under way come further; all of it, or chance decides.
func (w *world) settle(all bool) (moved bool) {
	maybe := func() bool { return all || w.r.IntN(2) == 0 }
	for _, n := range w.ordinals() {
		m := w.ms[n]
		switch {
		case m.Deleting:
			if w.up(m.Host) && maybe() {
				delete(w.ms, n)
				moved = true
			}
		case m.Failed:
		case m.Hash == "":
			if w.up(m.Host) && maybe() {
				m.Hash = w.spec.Hash
				moved = true
			}
		case !m.InRotation && m.Passing && m.Draining.IsZero() && !m.Held && maybe():
			m.InRotation, m.Proven, moved = true, true, true
		}
	}
	return moved
}

// carryOut does what was decided; all of it, or chance decides.
func (w *world) carryOut(d Decision, all bool) {
	each := func(what string, as []Action, f func(Action)) {
		for _, a := range as {
			if all || w.r.IntN(4) > 0 {
				w.log("%s %s on %s: %s (%s)", what, a.Name, a.Host, a.Why, a.Cause)
				f(a)
			}
		}
	}
	each("undrain", d.Undrain, func(a Action) { w.ms[a.Ordinal].Draining = time.Time{} })
	each("drain", d.Drain, func(a Action) { w.ms[a.Ordinal].Draining = w.now })
	each("delete", d.Delete, func(a Action) { w.ms[a.Ordinal].Deleting = true })
	each("add", d.Add, func(a Action) {
		w.ms[a.Ordinal] = &vm{Member: Member{Ordinal: a.Ordinal, Host: a.Host, Created: w.now, Tunnels: w.r.IntN(3) - 1}}
		w.made++
	})
}

func (w *world) log(format string, args ...any) {
	w.trail = append(w.trail, w.now.Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
}

// fatal ends the test with the way that led there.
func (w *world) fatal(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.trail {
		w.t.Log(line)
	}
	for _, n := range w.ordinals() {
		w.t.Logf("%+v", *w.ms[n])
	}
	w.t.Logf("%+v down %v now %s", w.spec, w.down, w.now.Format(time.TimeOnly))
	w.t.Fatalf(format, args...)
}

// plan asks for a decision and checks it.
func (w *world) plan() Decision {
	w.t.Helper()
	ms := w.members()
	d := Plan(w.spec, ms, w.hosts(), w.now)
	serving, writtenOff, standIns, stuck := 0, 0, 0, 0
	for _, m := range w.ms {
		lost := w.spec.Failover && !w.up(m.Host) && w.now.Sub(w.down[m.Host]) >= w.spec.FailoverAfter && !m.Passing && !m.Held
		if m.InRotation {
			serving++
		} else if lost {
			writtenOff++
		}
		switch {
		case m.Ordinal <= w.spec.Count:
		case m.InRotation:
			standIns++
		case !w.up(m.Host) && !lost:
			stuck++
		}
	}
	seen := map[int]bool{}
	once := func(what string, a Action) *vm {
		if seen[a.Ordinal] || a.Why == "" || a.Name != w.spec.Member(a.Ordinal) {
			w.fatal("%s %+v: twice, or it does not say why", what, a)
		}
		seen[a.Ordinal] = true
		m := w.ms[a.Ordinal]
		if (m == nil) != (what == "add") || m != nil && (m.Host != a.Host || m.Deleting) {
			w.fatal("%s %+v of %+v", what, a, m)
		}
		return m
	}
	after, rolled := serving, 0
	for _, a := range d.Drain {
		m := once("drain", a)
		if m.Held && a.Ordinal <= w.spec.Count {
			w.fatal("what an operator holds is replaced: %+v", a)
		}
		switch {
		case !m.InRotation:
		case a.Ordinal <= w.spec.Count:
			after--
			rolled++
		default:
			after--
			standIns--
			if !w.up(m.Host) {
				stuck++
			}
		}
	}
	if after < serving && after < w.spec.MinAvailable {
		w.fatal("%d of %d left in rotation by %+v", after, serving, d.Drain)
	}
	if rolled > 0 && w.between(d) > max(1, w.spec.Surge) {
		w.fatal("%d replaced at once by %+v", w.between(d), d.Drain)
	}
	for _, a := range d.Delete {
		m := once("delete", a)
		long := !m.Draining.IsZero() && w.now.Sub(m.Draining) >= w.spec.DrainTime
		quiet := !m.Draining.IsZero() && (m.Tunnels == 0 || !m.Proven)
		if !m.Failed && !long && !quiet || m.InRotation || !w.up(m.Host) {
			w.fatal("not drained, or its host is down: delete %+v", a)
		}
	}
	for _, a := range d.Undrain {
		if once("undrain", a).Draining.IsZero() {
			w.fatal("undrain of what does not drain: %+v", a)
		}
		if a.Ordinal > w.spec.Count && serving < w.spec.MinAvailable {
			stuck++ // taken back to keep it
		}
	}
	for _, a := range d.Add {
		once("add", a)
		if !w.up(a.Host) || !slices.Contains(w.spec.Hosts, a.Host) {
			w.fatal("made on a wrong host: %+v", a)
		}
		if a.Ordinal < 1 {
			w.fatal("ordinal: %+v", a)
		}
	}
	// What serves beyond count and surge is what min_available keeps.
	kept := max(0, standIns-w.spec.Surge)
	if after <= w.spec.MinAvailable {
		kept = standIns
	}
	if n := len(w.ms) - writtenOff - stuck - kept + len(d.Add); len(d.Add) > 0 && n > w.spec.Count+w.spec.Surge {
		w.fatal("%d members of %d+%d by %+v", n, w.spec.Count, w.spec.Surge, d.Add)
	}
	if !d.Again.IsZero() && !d.Again.After(w.now) {
		w.fatal("again at %v, which is past", d.Again)
	}
	return d
}

// between counts the declared members on hosts that answer that are between two
// VMs once the decision is carried out.
func (w *world) between(d Decision) int {
	n := 0
	for o := 1; o <= w.spec.Count; o++ {
		m := w.ms[o]
		drained := slices.ContainsFunc(d.Drain, func(a Action) bool { return a.Ordinal == o })
		back := slices.ContainsFunc(d.Undrain, func(a Action) bool { return a.Ordinal == o })
		switch {
		case m == nil || drained:
			n++
		case !w.up(m.Host) || m.Held || back:
		case m.Deleting || !m.Draining.IsZero():
			n++
		case !m.Proven && (m.Hash == "" || m.Hash == w.spec.Hash) && slices.Contains(w.spec.Hosts, m.Host):
			n++
		}
	}
	return n
}
