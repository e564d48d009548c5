package pool

import (
	"testing"
	"time"

	"virdeck/model"
)

// repair ends every fault.
func (w *world) repair() {
	clear(w.down)
	if w.spec.Hash == "bad" {
		w.spec.Hash = "good-1"
	}
	for _, m := range w.ms {
		m.broken, m.Held, m.Failed = false, false, false
	}
	w.log("repaired, template %s", w.spec.Hash)
}

// converge carries out decisions until nothing moves any more. Time passes only
// as Again says, so that an Again that is missing is found.
func (w *world) converge() {
	w.t.Helper()
	for range 600 {
		d := w.plan()
		w.carryOut(d, true)
		w.members()
		if w.settle(true) || !d.Empty() {
			continue
		}
		if d.Again.IsZero() {
			break
		}
		w.now = d.Again
	}
	for o := 1; o <= w.spec.Count; o++ {
		if m := w.ms[o]; m == nil || !m.InRotation || m.Hash != w.spec.Hash {
			w.fatal("web-%d is not as declared", o)
		}
	}
	if len(w.ms) != w.spec.Count {
		w.fatal("%d members, %d declared", len(w.ms), w.spec.Count)
	}
	for _, later := range []time.Duration{0, time.Second, time.Hour, 1000 * time.Hour} {
		if d := Plan(w.spec, w.members(), w.hosts(), w.now.Add(later)); !d.Empty() || len(d.Waits) > 0 || !d.Again.IsZero() {
			w.fatal("settled, and still: %+v", d)
		}
	}
}

// Whatever happens, no rule is broken; and when the faults end, the pool comes
// to what is declared, and stays there.
func TestPlan_anySequence(t *testing.T) {
	for seed := range uint64(800) {
		w := newWorld(t, seed)
		w.log("seed %d", seed)
		for range 2 { // repaired, and again
			for range 60 {
				if w.r.IntN(3) == 0 {
					w.event()
				}
				w.carryOut(w.plan(), w.r.IntN(2) == 0)
				w.settle(false)
				w.now = w.now.Add(time.Duration(w.r.IntN(60)) * time.Second)
			}
			w.repair()
			w.converge()
		}
	}
}

// A pool that settled and then has faults alone, without a change of what is
// declared, makes and removes nothing: unless failover is asked for, and then
// one stand-in for each that is lost.
func TestPlan_faultsAloneMakeNothing(t *testing.T) {
	standIns := 0
	for seed := range uint64(500) {
		w := newWorld(t, seed)
		w.log("seed %d", seed)
		w.converge()
		made, all := w.made, w.ordinals()
		lost := 0
		for range 100 {
			switch m := w.pick(); {
			case m == nil:
			case w.r.IntN(2) == 0:
				m.broken = !m.broken
			default:
				if w.up(m.Host) {
					w.down[m.Host] = w.now
				} else {
					delete(w.down, m.Host)
				}
			}
			d := w.plan()
			if !w.spec.Failover && !d.Empty() {
				w.fatal("a fault is no reason to do anything: %+v", d)
			}
			w.carryOut(d, true)
			w.settle(true)
			w.now = w.now.Add(time.Duration(w.r.IntN(200)) * time.Second)
			lost = max(lost, len(w.down))
		}
		if !w.spec.Failover && w.made != made {
			w.fatal("%d were made", w.made-made)
		}
		standIns += w.made - made
		for _, o := range all {
			if m := w.ms[o]; m == nil || !m.Created.Before(t0.Add(time.Hour)) {
				w.fatal("web-%d did not outlive the faults of others", o)
			}
		}
	}
	if standIns == 0 {
		t.Error("failover was never seen")
	}
}

// Each rollout of a good template on a healthy pool never leaves fewer than
// min_available in rotation at any instant, and of a bad one neither.
func TestPlan_rolloutKeepsMinAvailable(t *testing.T) {
	for seed := range uint64(500) {
		w := newWorld(t, seed)
		w.converge()
		w.spec.Hash = []string{"good-1", "bad"}[seed%2]
		for range 400 {
			w.carryOut(w.plan(), w.r.IntN(2) == 0)
			w.settle(w.r.IntN(2) == 0)
			serving := 0
			for _, m := range w.members() {
				if m.serving() {
					serving++
				}
			}
			if serving < w.spec.MinAvailable {
				w.fatal("seed %d: %d in rotation", seed, serving)
			}
			if w.spec.Hash == "bad" && serving < w.spec.Count-max(0, 1-w.spec.Surge) {
				w.fatal("seed %d: a bad template took %d of %d", seed, w.spec.Count-serving, w.spec.Count)
			}
			w.now = w.now.Add(5 * time.Second)
		}
		if w.spec.Hash == "good-1" {
			w.converge()
		}
	}
}

// Old members go by turns, too, and do not take the pool with them.
func TestPlan_maxAge(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(t, seed)
		w.log("seed %d", seed)
		w.spec.MaxAge = 24 * time.Hour
		for range 3000 {
			w.carryOut(w.plan(), true)
			w.settle(true)
			w.now = w.now.Add(time.Minute)
		}
		for o := 1; o <= w.spec.Count; o++ {
			if m := w.ms[o]; m == nil || w.now.Sub(m.Created) > 25*time.Hour {
				w.fatal("web-%d is too old, or gone", o)
			}
		}
		if w.spec.Count > 0 && w.made < 2*w.spec.Count {
			w.fatal("%d were made", w.made)
		}
	}
}

// Members never move, and new ones go where the fewest are.
func TestPlan_spread(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(t, seed)
		w.log("seed %d", seed)
		w.converge()
		evenly := func() {
			load := map[model.HostName]int{}
			for _, h := range w.spec.Hosts {
				load[h] = 0
			}
			for _, m := range w.ms {
				load[m.Host]++
			}
			low, high := len(w.ms), 0
			for _, n := range load {
				low, high = min(low, n), max(high, n)
			}
			if high > low+1 {
				w.fatal("spread: %v", load)
			}
		}
		evenly()
		before := map[int]model.HostName{}
		for o, m := range w.ms {
			before[o] = m.Host
		}
		w.spec.Hash = "good-1"
		w.converge()
		evenly()
		for o, m := range w.ms {
			// of several that are replaced at once, one may take another's place
			if w.spec.Surge < 2 && before[o] != m.Host {
				w.fatal("web-%d came from %s to %s", o, before[o], m.Host)
			}
		}
	}
}

// Plan does not change what it is given, and does not depend on its order.
func TestPlan_pure(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(t, seed)
		for range 30 {
			w.event()
			ms := w.members()
			first := Plan(w.spec, ms, w.hosts(), w.now)
			again := Plan(w.spec, w.members(), w.hosts(), w.now) // in another order
			if a, b := text(first), text(again); a != b {
				w.fatal("seed %d: %s\n%s", seed, a, b)
			}
			w.carryOut(first, false)
			w.settle(false)
			w.now = w.now.Add(20 * time.Second)
		}
	}
}

// BenchmarkPlan is a large pool from nothing, and one that is scaled to nothing
// while min_available keeps it.
func BenchmarkPlan(b *testing.B) {
	spec := Spec{Hash: "new", PoolSpec: model.PoolSpec{Name: "web", Count: 10000, Hosts: names(4), Surge: 1}}
	var hosts []Host
	var kept []Member
	for _, h := range names(4) {
		hosts = append(hosts, Host{Name: h})
	}
	for n := range 10000 {
		kept = append(kept, serves(10001+n, "a"))
	}
	for b.Loop() {
		if d := Plan(spec, nil, hosts, t0); len(d.Add) != 10000 {
			b.Fatal(len(d.Add))
		}
		spec.MinAvailable = 10000
		if d := Plan(spec, kept, hosts, t0); len(d.Waits) == 0 {
			b.Fatal("nothing waits")
		}
		spec.MinAvailable = 0
	}
}
