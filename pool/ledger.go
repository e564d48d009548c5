package pool

import (
	"fmt"
	"slices"
	"time"

	"virdeck/model"
)

// Limits are the replacement budget. A limit of 0 allows nothing that an
// operator has not asked for.
type Limits struct {
	PerHost int
	PerPool int
	Window  time.Duration
}

// Entry is one counted action: a create that replaces, a start or restart, a
// delete.
type Entry struct {
	At   time.Time
	Host model.HostName
	Pool string // empty: of none
	What string // "delete web-3"
	By   string // the operator who asked for it; empty: nobody did
}

// Key is what a limit is for: a host or a pool.
type Key struct {
	Host model.HostName // or
	Pool string
}

// String returns the key in words.
func (k Key) String() string {
	if k.Pool != "" {
		return "pool " + k.Pool
	}
	return "host " + string(k.Host)
}

// Verdict is whether an action may be taken now.
type Verdict struct {
	OK   bool
	Why  string    // of a refusal, in words
	Key  Key       // of a refusal: whose limit it is
	Next time.Time // of a refusal: when the next comes free; zero: never of itself
}

// Ledger counts actions in a sliding window, by host and by pool. What an
// operator asks for is counted and never refused. It is not safe for concurrent
// use; it is to be kept in a store, by Entries, and made again by NewLedger.
type Ledger struct {
	limits  Limits
	entries []Entry // oldest first
}

// NewLedger returns a ledger with what an earlier one had. It neither keeps nor
// changes entries.
func NewLedger(l Limits, entries []Entry) *Ledger {
	out := &Ledger{limits: l, entries: slices.Clone(entries)}
	slices.SortStableFunc(out.entries, func(a, b Entry) int { return a.At.Compare(b.At) })
	return out
}

// SetLimits changes the limits, as when a configuration is read again; what has
// been counted stays counted.
func (l *Ledger) SetLimits(limits Limits) { l.limits = limits }

// Entries returns what is counted at now, oldest first.
func (l *Ledger) Entries(now time.Time) []Entry {
	l.prune(now)
	return slices.Clone(l.entries)
}

// Allow reports whether an action of one's own accord may be taken now.
func (l *Ledger) Allow(host model.HostName, pool string, now time.Time) Verdict {
	l.prune(now)
	worst := Verdict{OK: true}
	for _, k := range keys(host, pool) {
		v := l.one(k, now)
		if !v.OK && (worst.OK || v.Next.IsZero() || !worst.Next.IsZero() && v.Next.After(worst.Next)) {
			worst = v
		}
	}
	return worst
}

// Take counts an action that is about to be taken, and returns whether it may
// be. An Entry with By is counted in any case; another that is refused is not.
func (l *Ledger) Take(e Entry, now time.Time) Verdict {
	v := l.Allow(e.Host, e.Pool, now)
	if e.By != "" {
		v = Verdict{OK: true}
	}
	if v.OK {
		e.At = now
		l.entries = append(l.entries, e)
	}
	return v
}

// Return takes back what was counted for an action that was not taken after all.
// e is as it was taken, with the time; what is not there is no matter.
func (l *Ledger) Return(e Entry) {
	if i := slices.Index(l.entries, e); i >= 0 {
		l.entries = slices.Delete(l.entries, i, i+1)
	}
}

// View returns the budget of a host or pool as screens show it.
func (l *Ledger) View(k Key, now time.Time) model.BudgetView {
	l.prune(now)
	n, _ := l.used(k)
	return model.BudgetView{Used: n, Of: l.limit(k), Window: l.limits.Window, Next: l.one(k, now).Next}
}

func keys(host model.HostName, pool string) []Key {
	var out []Key
	if host != "" {
		out = append(out, Key{Host: host})
	}
	if pool != "" {
		out = append(out, Key{Pool: pool})
	}
	return out
}

func (l *Ledger) limit(k Key) int {
	if k.Pool != "" {
		return l.limits.PerPool
	}
	return l.limits.PerHost
}

// used returns how many entries count for the key, and when they were.
func (l *Ledger) used(k Key) (int, []time.Time) {
	var at []time.Time
	for _, e := range l.entries {
		if k.Pool != "" && e.Pool == k.Pool || k.Pool == "" && e.Host == k.Host {
			at = append(at, e.At)
		}
	}
	return len(at), at
}

func (l *Ledger) one(k Key, now time.Time) Verdict {
	n, at := l.used(k)
	limit := l.limit(k)
	switch {
	case n < limit:
		return Verdict{OK: true}
	case limit <= 0:
		return Verdict{Key: k, Why: fmt.Sprintf("the budget of %s is 0: nothing is replaced unless an operator asks for it", k)}
	}
	next := at[n-limit].Add(l.limits.Window)
	return Verdict{Key: k, Next: next, Why: fmt.Sprintf("the budget of %s is used up: %d of %d in %s, the next in %s",
		k, n, limit, short(l.limits.Window), short(next.Sub(now)))}
}

// prune forgets what has left the window. A clock that was set back must not
// hold the budget for longer than the window, so that what lies in the future
// happened now.
func (l *Ledger) prune(now time.Time) {
	for i := range l.entries {
		if l.entries[i].At.After(now) {
			l.entries[i].At = now
		}
	}
	l.entries = slices.DeleteFunc(l.entries, func(e Entry) bool { return !e.At.After(now.Add(-l.limits.Window)) })
}

// short is a duration in whole seconds, rounded up, without zero parts at its end.
func short(d time.Duration) string {
	return model.Length(max(0, (d + time.Second - 1).Truncate(time.Second)))
}
