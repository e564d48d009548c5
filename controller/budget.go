package controller

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"virdeck/model"
	"virdeck/pool"
	"virdeck/store"
)

// budget is the replacement ledger, shared by all hosts, with what of it the
// store has.
type budget struct {
	mu    sync.Mutex
	l     *pool.Ledger
	saved map[store.BudgetKey]int // entries that the store has, by key
}

// newBudget goes on where an earlier process stopped: a crash loop refills no
// budget. The store has times by key, so each becomes an entry of that key.
func newBudget(b Budget, s store.State) *budget {
	var es []pool.Entry
	out := &budget{saved: map[store.BudgetKey]int{}}
	for key, at := range s.Budget {
		for _, t := range at {
			e := pool.Entry{At: t}
			if h, ok := strings.CutPrefix(string(key), string(store.HostBudget(""))); ok {
				e.Host = model.HostName(h)
			} else if p, ok := strings.CutPrefix(string(key), string(store.PoolBudget(""))); ok {
				e.Pool = p
			}
			es = append(es, e)
		}
		out.saved[key] = len(at)
	}
	out.l = pool.NewLedger(limits(b), es)
	return out
}

func limits(b Budget) pool.Limits {
	return pool.Limits{PerHost: b.PerHost, PerPool: b.PerPool, Window: b.Window}
}

func (b *budget) set(d Budget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.l.SetLimits(limits(d))
}

// budgetHold returns why the budget holds an action now; empty if it does not.
func (c *Controller) budgetHold(h model.HostName, poolName string, now time.Time) string {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	return c.ledger.l.Allow(h, poolName, now).Why
}

// count counts an action that is being taken, and returns its entry. by is the operator who asked for it; empty if nobody did.
func (c *Controller) count(h model.HostName, poolName, what, by string, now time.Time) pool.Entry {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	if by == "" {
		by = "virdeck" // it was allowed when it was decided
	}
	e := pool.Entry{At: now, Host: h, Pool: poolName, What: what, By: by}
	c.ledger.l.Take(e, now)
	return e
}

// uncount takes back what was counted, since it was not done.
func (c *Controller) uncount(e pool.Entry) {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	c.ledger.l.Return(e)
}

// count counts what has been decided about a managed proxy. The lock is held.
func (h *host) count(p *proxy, d decision, now time.Time) pool.Entry {
	what := d.job.String()
	if d.remake {
		what = "replace"
	}
	return h.c.count(h.name, p.m.pool, what+" "+string(p.spec.Name), d.by, now)
}

func (c *Controller) budgetView(h model.HostName, poolName string, now time.Time) model.BudgetView {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	return c.ledger.l.View(pool.Key{Host: h, Pool: poolName}, now)
}

// changed returns the records that differ from what the store has.
func (b *budget) changed(now time.Time) map[store.BudgetKey][]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[store.BudgetKey][]time.Time{}
	for _, e := range b.l.Entries(now) {
		if e.Host != "" {
			k := store.HostBudget(e.Host)
			all[k] = append(all[k], e.At)
		}
		if e.Pool != "" {
			k := store.PoolBudget(e.Pool)
			all[k] = append(all[k], e.At)
		}
	}
	out := map[store.BudgetKey][]time.Time{}
	for _, k := range slices.Concat(slices.Collect(maps.Keys(all)), slices.Collect(maps.Keys(b.saved))) {
		if len(all[k]) != b.saved[k] {
			out[k] = all[k]
		}
	}
	return out
}

// wrote notes what the store has now.
func (b *budget) wrote(recs map[store.BudgetKey][]time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, at := range recs {
		if b.saved[k] = len(at); len(at) == 0 {
			delete(b.saved, k)
		}
	}
}
