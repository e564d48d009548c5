package health

import (
	"math/rand/v2"
	"testing"
	"time"

	"virdeck/model"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(sec float64) time.Time { return t0.Add(time.Duration(sec * float64(time.Second))) }

func pass(sec float64) model.ProbeResult {
	return model.ProbeResult{Passed: true, Started: at(sec)}
}

func miss(sec float64, c model.Culprit, self bool) model.ProbeResult {
	return model.ProbeResult{Culprit: c, SelfSeen: self, Started: at(sec), Reason: c.String()}
}

func TestNext_riseAndFall(t *testing.T) {
	hop := func(s float64) model.ProbeResult { return miss(s, model.CulpritHop, true) }
	us := func(s float64) model.ProbeResult { return miss(s, model.CulpritUs, false) }
	target := func(s float64) model.ProbeResult { return miss(s, model.CulpritTarget, false) }
	tests := []struct {
		name          string
		results       []model.ProbeResult
		in, proven    bool
		passes, fails int
	}{
		{"one pass is not enough", []model.ProbeResult{pass(1)}, false, false, 1, 0},
		{"rise passes in a row", []model.ProbeResult{pass(1), pass(2)}, true, true, 2, 0},
		{"a failure between resets", []model.ProbeResult{pass(1), hop(2), pass(3)}, false, false, 1, 0},
		{"a failure of ours between does not", []model.ProbeResult{pass(1), us(2), target(3), pass(4)}, true, true, 2, 0},
		{"failures over a lifetime do not add up", []model.ProbeResult{pass(1), pass(2), hop(3), pass(4), hop(5), pass(6), hop(7)}, true, true, 0, 1},
		{"failures in a row", []model.ProbeResult{pass(1), pass(2), hop(3), hop(4), hop(5)}, true, true, 0, 3},
		{"ours count nothing", []model.ProbeResult{pass(1), pass(2), us(3), us(4), us(5), target(6)}, true, true, 2, 0},
	}
	for _, tt := range tests {
		var c counters
		for _, r := range tt.results {
			c, _ = next(c, r, 2)
		}
		if c.in != tt.in || c.proven != tt.proven || c.passes != tt.passes || c.fails != tt.fails {
			t.Errorf("%s: in %v proven %v passes %d fails %d, want %v %v %d %d", tt.name, c.in, c.proven, c.passes, c.fails, tt.in, tt.proven, tt.passes, tt.fails)
		}
	}
}

// Whatever the order of results, counters are what the last ones explain: never
// both kinds at once, and a member is one because it passed rise in a row at
// some time.
func TestNext_properties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var c counters
		run, best := 0, 0
		for i := range 60 {
			r := pass(float64(i))
			if n := rng.IntN(4); n > 0 {
				r = miss(float64(i), []model.Culprit{model.CulpritHop, model.CulpritUs, model.CulpritTarget}[n-1], n == 1)
			}
			switch {
			case r.Passed:
				run++
			case r.Culprit.ProxysFault():
				run = 0
			}
			best = max(best, run)
			c, _ = next(c, r, 2)
			if c.passes > 0 && c.fails > 0 {
				t.Fatalf("passes %d and fails %d at once", c.passes, c.fails)
			}
			if c.passes != run {
				t.Fatalf("passes %d, the row is %d", c.passes, run)
			}
			if c.in != (best >= 2) {
				t.Fatalf("in %v with a best row of %d", c.in, best)
			}
			if (c.fails > 0) == c.firstFail.IsZero() {
				t.Fatalf("fails %d, first at %v", c.fails, c.firstFail)
			}
		}
	}
}

func TestDecide(t *testing.T) {
	// accused has failed three times, at 10, 11 and 12 s.
	accused := func(c model.Culprit, self bool) counters {
		var k counters
		for _, s := range []float64{10, 11, 12} {
			k, _ = next(k, miss(s, c, self), 2)
		}
		k.in = true
		return k
	}
	seen := func(k counters, sec float64) counters { k.witnessed = at(sec); return k }
	ok := control{state: model.WitnessPassing, lastPass: at(10.5)}
	tests := []struct {
		name   string
		s      scene
		commit bool
		void   bool
		text   string // of the wait or the proof
	}{
		{name: "refused: the VM itself answered", s: scene{c: accused(model.CulpritHop, true)}, commit: true, text: "the VM itself answered: hop"},
		{name: "silence, and the control passed in between", s: scene{c: accused(model.CulpritWayOut, false), control: ok, others: 3},
			commit: true, text: "the target answers without a proxy"},
		{name: "silence, and a witness was noted in between", s: scene{c: seen(accused(model.CulpritWayOut, false), 10.5), others: 3},
			commit: true, text: "another way to the target passed in the meantime"},
		{name: "silence, and a peer passed in between", s: scene{c: accused(model.CulpritWayOut, false), others: 3, peerPass: at(11.5)},
			commit: true, text: "the target answers through another proxy"},
		{name: "a witness from before the first failure proves nothing",
			s:    scene{c: accused(model.CulpritWayOut, false), others: 3, peerPass: at(9), control: control{state: model.WitnessPassing, lastPass: at(9)}},
			text: "cannot tell whose fault it is: no control passes, and no other proxy"},
		{name: "a witness from after the last failure: ask once more first",
			s:    scene{c: accused(model.CulpritWayOut, false), others: 3, peerPass: at(13)},
			text: "failed again since the target answers through another proxy? asking"},
		{name: "the target fails without a proxy too: forgiven",
			s:    scene{c: accused(model.CulpritWayOut, false), others: 3, control: control{state: model.WitnessFailing, lastPass: at(5), lastFail: at(12), why: "connect failed"}, explains: true},
			void: true, text: "the target fails without a proxy, too: connect failed"},
		{name: "our own way to the target is lost, and another proxy reaches it: it convicts",
			s:      scene{c: accused(model.CulpritWayOut, false), others: 3, peerPass: at(11.5), control: control{state: model.WitnessFailing, lastPass: at(5), lastFail: at(12)}},
			commit: true, text: "the target answers through another proxy"},
		{name: "refused is refused, whatever the target does",
			s:      scene{c: accused(model.CulpritHop, true), others: 3, failing: 1, explains: true, control: control{state: model.WitnessFailing, lastPass: at(5), lastFail: at(12)}},
			commit: true, text: "the VM itself answered: hop"},
		{name: "alone, no control, hop silent: the hop is the witness", s: scene{c: accused(model.CulpritHop, false), control: control{state: model.WitnessNone}},
			commit: true, text: "no control and no other proxy to ask; the hop itself fails: hop"},
		{name: "alone, no control, and the target could explain it", s: scene{c: accused(model.CulpritWayOut, false), control: control{state: model.WitnessNone}},
			text: "cannot tell whose fault it is: no control passes, and no other proxy"},
		{name: "brake: many together wait", s: scene{c: accused(model.CulpritHop, true), failing: 3, brake: at(12), now: at(12.5), limit: 10 * time.Second, others: 5},
			text: "3 proxies fail together; waiting for a witness"},
		{name: "brake: a witness from before it does not count",
			s:    scene{c: accused(model.CulpritHop, true), failing: 3, brake: at(12), now: at(12.5), limit: 10 * time.Second, others: 5, control: ok},
			text: "3 proxies fail together; waiting for a witness"},
		{name: "brake: a fresh witness lets the dead go",
			s: scene{c: accused(model.CulpritHop, true), failing: 3, brake: at(12), now: at(12.5), limit: 10 * time.Second, others: 5,
				control: control{state: model.WitnessPassing, lastPass: at(12.2)}},
			commit: true, text: "the target answers without a proxy"},
		{name: "brake: control fails, nobody goes, not even the refused",
			s: scene{c: accused(model.CulpritHop, true), failing: 5, brake: at(12), now: at(40), limit: 10 * time.Second, others: 5,
				control: control{state: model.WitnessFailing, lastPass: at(5), lastFail: at(39), why: "no route from here"}, explains: true},
			text: "the target fails without a proxy, too: no route from here"},
		{name: "brake: it delays, and never keeps the dead",
			s:      scene{c: accused(model.CulpritHop, true), failing: 5, brake: at(12), now: at(22), limit: 10 * time.Second, others: 5, control: control{state: model.WitnessNone}},
			commit: true, text: "no witness within 10s, but the VM itself answered: hop"},
		{name: "brake: without any witness the merely silent stay",
			s:    scene{c: accused(model.CulpritHop, false), failing: 5, brake: at(12), now: at(60), limit: 10 * time.Second, others: 5, control: control{state: model.WitnessNone}},
			text: "cannot tell whose fault it is: no control passes, and no other proxy"},
		{name: "not due", s: scene{c: func() counters { c, _ := next(counters{}, miss(1, model.CulpritHop, true), 2); return c }()}, text: ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.s.fall = 3
			v := decide(tt.s)
			if v.commit != tt.commit || v.void != tt.void || v.wait+v.proof != tt.text {
				t.Errorf("commit %v void %v %q, want %v %v %q", v.commit, v.void, v.wait+v.proof, tt.commit, tt.void, tt.text)
			}
		})
	}
}

func TestPace(t *testing.T) {
	cfg := Defaults()
	in := counters{in: true, proven: true}
	for name, tt := range map[string]struct {
		c    counters
		out  time.Duration
		want time.Duration
	}{
		"in":               {in, 0, 5 * time.Second},
		"failing":          {counters{in: true, fails: 1}, 0, time.Second},
		"new":              {counters{}, 0, time.Second},
		"coming back":      {counters{demoted: true, passes: 1}, time.Hour, time.Second},
		"out":              {counters{demoted: true, fails: 9}, time.Minute, 5 * time.Second},
		"long out":         {counters{demoted: true, fails: 99}, 5 * time.Minute, 30 * time.Second},
		"never in, long":   {counters{fails: 99}, 6 * time.Minute, 30 * time.Second},
		"in, very long in": {in, time.Hour, 5 * time.Second},
	} {
		if got := pace(tt.c, cfg, t0, t0.Add(tt.out)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
