package libvirt

import (
	"context"
	"sync"
	"time"
)

// shared is a value that many callers use while it is young enough for them,
// and that one call at a time fetches. A hundred reads of a hundred domains
// then cost one look at the host. The zero value is ready for use.
type shared[T any] struct {
	errs bool // errors are kept and shared like values; to be set before use

	mu      sync.Mutex
	val     T
	err     error
	started time.Time // when the fetch of val and err began; zero: there is none
	turn    uint64    // counts what made older fetches void
	flight  *flight[T]
}

type flight[T any] struct {
	started time.Time
	turn    uint64
	done    chan struct{}
	val     T
	err     error
}

// get returns a value whose fetch began at or after notBefore, and after
// whatever had made older ones void when get was called. The fetch runs in a
// goroutine of its own and ends by itself; ctx ends this caller's wait alone.
func (s *shared[T]) get(ctx context.Context, notBefore time.Time, fetch func() (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		var zero T
		return zero, err // who has left asks nothing
	}
	s.mu.Lock()
	turn := s.turn
	for {
		if !s.started.IsZero() && !s.started.Before(notBefore) {
			v, err := s.val, s.err
			s.mu.Unlock()
			return v, err
		}
		f := s.flight
		if f == nil {
			f = &flight[T]{started: time.Now(), turn: s.turn, done: make(chan struct{})}
			s.flight = f
			go s.fly(f, fetch)
		}
		s.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			var zero T
			return zero, ctx.Err()
		}
		if f.turn >= turn && !f.started.Before(notBefore) {
			return f.val, f.err
		}
		s.mu.Lock()
	}
}

func (s *shared[T]) fly(f *flight[T], fetch func() (T, error)) {
	v, err := fetch()
	s.mu.Lock()
	f.val, f.err = v, err
	s.flight = nil
	if f.turn == s.turn && (err == nil || s.errs) {
		s.val, s.err, s.started = v, err, f.started
	}
	s.mu.Unlock()
	close(f.done)
}

// invalidate makes the next caller fetch, and what is being fetched now void:
// its source may have been read before whatever the caller of invalidate knows.
func (s *shared[T]) invalidate() {
	s.mu.Lock()
	s.started = time.Time{}
	s.turn++
	s.mu.Unlock()
}
