package pool

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"virdeck/model"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

func TestLedger_slidingWindow(t *testing.T) {
	l := NewLedger(Limits{PerHost: 3, PerPool: 2, Window: time.Hour}, nil)
	take := func(d time.Duration, host model.HostName, pool, by string) string {
		v := l.Take(Entry{Host: host, Pool: pool, By: by, What: "x"}, at(d))
		if v.OK != (v.Why == "") {
			t.Errorf("OK %v with %q", v.OK, v.Why)
		}
		return v.Why
	}
	for i, tt := range []struct {
		at       time.Duration
		host     model.HostName
		pool, by string
		want     string
	}{
		{0, "a", "web", "", ""},
		{10 * time.Minute, "b", "web", "", ""},
		{20 * time.Minute, "a", "web", "", "the budget of pool web is used up: 2 of 2 in 1h, the next in 40m"},
		{20 * time.Minute, "a", "api", "", ""},
		{30 * time.Minute, "a", "", "", ""},
		{30*time.Minute + time.Millisecond, "a", "", "", "the budget of host a is used up: 3 of 3 in 1h, the next in 30m"},
		{31 * time.Minute, "a", "web", "alice", ""}, // counted, and not limited
		{31 * time.Minute, "b", "web", "", "the budget of pool web is used up: 3 of 2 in 1h, the next in 39m"},
		{60 * time.Minute, "b", "web", "", "the budget of pool web is used up: 2 of 2 in 1h, the next in 10m"},
		{70 * time.Minute, "b", "web", "", ""},
	} {
		if got := take(tt.at, tt.host, tt.pool, tt.by); got != tt.want {
			t.Errorf("%d: %q, want %q", i, got, tt.want)
		}
	}
	if v := l.Allow("a", "web", at(71*time.Minute)); !v.Next.Equal(at(91*time.Minute)) || v.Key != (Key{Pool: "web"}) {
		t.Errorf("of both, the later is to be named: %+v", v)
	}
	if got := len(l.Entries(at(10 * time.Hour))); got != 0 {
		t.Errorf("%d entries of long ago", got)
	}
}

func TestLedger_none(t *testing.T) {
	l := NewLedger(Limits{PerHost: 9, PerPool: 0, Window: time.Hour}, nil)
	const never = "the budget of pool web is 0: nothing is replaced unless an operator asks for it"
	if v := l.Take(Entry{Host: "a", Pool: "web"}, t0); v.Why != never || !v.Next.IsZero() {
		t.Errorf("%+v", v)
	}
	if got := len(l.Entries(t0)); got != 0 {
		t.Errorf("%d entries: what was refused must not count", got)
	}
}

// What was counted, and not done, is as if it had never been counted.
func TestLedger_return(t *testing.T) {
	l := NewLedger(Limits{PerHost: 1, PerPool: 1, Window: time.Hour}, nil)
	other := Entry{At: t0, Host: "b", Pool: "api", What: "start api-1"}
	if v := l.Take(other, t0); !v.OK {
		t.Fatalf("%+v", v)
	}
	for range 3 {
		e := Entry{At: t0, Host: "a", Pool: "web", What: "start web-1"}
		if v := l.Take(e, t0); !v.OK {
			t.Fatalf("%+v", v)
		}
		if v := l.Allow("a", "web", t0); v.OK {
			t.Error("the budget is used up, and allows more")
		}
		l.Return(e)
		l.Return(e) // once is enough
	}
	if diff := cmp.Diff([]Entry{other}, l.Entries(t0)); diff != "" {
		t.Error(diff)
	}
}

func TestLedger_view(t *testing.T) {
	l := NewLedger(Limits{PerHost: 2, PerPool: 9, Window: time.Hour}, []Entry{{At: at(time.Minute), Host: "a"}, {At: t0, Host: "a", Pool: "web"}})
	want := model.BudgetView{Used: 2, Of: 2, Window: time.Hour, Next: at(time.Hour)}
	if diff := cmp.Diff(want, l.View(Key{Host: "a"}, at(2*time.Minute))); diff != "" {
		t.Error(diff)
	}
	l.SetLimits(Limits{PerHost: 1, PerPool: 9, Window: time.Hour}) // then both have to go
	if got := l.View(Key{Host: "a"}, at(2*time.Minute)).Next; !got.Equal(at(61 * time.Minute)) {
		t.Errorf("next %v", got)
	}
}

// A clock that was an hour ahead and is set back must not hold the budget for
// more than one window.
func TestLedger_clockSetBack(t *testing.T) {
	l := NewLedger(Limits{PerHost: 1, PerPool: 1, Window: time.Hour}, []Entry{{At: at(24 * time.Hour), Host: "a"}})
	if v := l.Allow("a", "", t0); v.OK || !v.Next.Equal(at(time.Hour)) {
		t.Errorf("%+v", v)
	}
	if v := l.Allow("a", "", at(time.Hour)); !v.OK {
		t.Errorf("%+v", v)
	}
}

// An image that never works: each member is made, does not get ready, and is
// made again, as soon as it is allowed to. The loop has to come to a near stop.
func TestBrokenImage(t *testing.T) {
	l := NewLedger(Limits{PerHost: 10, PerPool: 5, Window: time.Hour}, nil)
	perHour := map[int]int{}
	for now := t0; now.Before(at(24 * time.Hour)); now = now.Add(time.Second) {
		for range 4 {
			perHour[int(now.Sub(t0)/time.Hour)] += count(l.Take(Entry{Host: "a", Pool: "web"}, now).OK)
		}
	}
	for h := range 24 {
		if n := perHour[h]; n != 5 {
			t.Errorf("hour %d: %d creates, want 5", h, n)
		}
	}
}

// Whatever is asked for in whatever order: what nobody asked for never exceeds a
// limit in any window, and is allowed at the very time that Next promised.
func TestLedger_anySequence(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		limits := Limits{PerHost: 1 + r.IntN(5), PerPool: 1 + r.IntN(5), Window: time.Hour}
		l := NewLedger(limits, nil)
		now := t0
		var own []Entry // what was done without an operator
		for range 300 {
			e := Entry{Host: names(3)[r.IntN(3)], Pool: []string{"", "web", "api"}[r.IntN(3)]}
			if r.IntN(8) == 0 {
				e.By = "alice"
			}
			v := l.Take(e, now)
			e.At = now
			switch {
			case e.By != "" && !v.OK:
				t.Fatalf("seed %d: an operator was refused: %s", seed, v.Why)
			case e.By == "" && v.OK:
				own = append(own, e)
			case !v.OK && !l.Allow(e.Host, e.Pool, v.Next).OK:
				t.Fatalf("seed %d: refused at the time that was promised", seed)
			case !v.OK: // asking has moved the ledger's view of time: go there
				now = v.Next
			}
			host, pool := 0, 0
			for _, o := range own {
				if o.At.After(now.Add(-time.Hour)) {
					host += count(o.Host == e.Host)
					pool += count(e.Pool != "" && o.Pool == e.Pool)
				}
			}
			if host > limits.PerHost || pool > limits.PerPool {
				t.Fatalf("seed %d: %d on a host and %d in a pool with %+v", seed, host, pool, limits)
			}
			now = now.Add(time.Duration(r.IntN(900)) * time.Second)
			if r.IntN(20) == 0 { // a restart
				l = NewLedger(limits, l.Entries(now))
			}
		}
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
