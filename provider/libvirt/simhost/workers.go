package simhost

import (
	"context"
	"slices"
	"sync"
)

// workers are a daemon's threads. Normal ones take every call, in the order of
// arrival; priority ones only calls that never wait for a guest.
type workers struct {
	mu     sync.Mutex
	normal int // free
	prio   int // free
	queue  []*waiter
}

type waiter struct {
	high bool
	got  chan bool // receives whether the worker is a priority one
}

func newWorkers(normal, prio int) *workers { return &workers{normal: normal, prio: prio} }

// acquire waits for a worker and returns the function that gives it back, or
// the context's error.
func (w *workers) acquire(ctx context.Context, high bool) (release func(), err error) {
	w.mu.Lock()
	switch {
	case w.normal > 0:
		w.normal--
		w.mu.Unlock()
		return func() { w.release(false) }, nil
	case high && w.prio > 0:
		w.prio--
		w.mu.Unlock()
		return func() { w.release(true) }, nil
	}
	me := &waiter{high: high, got: make(chan bool, 1)}
	w.queue = append(w.queue, me)
	w.mu.Unlock()
	select {
	case prio := <-me.got:
		return func() { w.release(prio) }, nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	i := slices.Index(w.queue, me)
	if i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
	w.mu.Unlock()
	if i < 0 { // it was given meanwhile
		w.release(<-me.got)
	}
	return nil, ctx.Err()
}

// release hands a worker to the first that may have it.
func (w *workers) release(prio bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, next := range w.queue {
		if next.high || !prio {
			w.queue = slices.Delete(w.queue, i, i+1)
			next.got <- prio
			return
		}
	}
	if prio {
		w.prio++
	} else {
		w.normal++
	}
}
