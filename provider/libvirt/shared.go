package libvirt

import (
	"context"
	"sync"
	"time"
)

// shared is a value that many callers use while it is young enough for them,
// and that one call at a time fetches. A hundred reads of a hundred domains
// then cost one look at the host.
type shared[T any] struct {
	mu      sync.Mutex
	val     T
	started time.Time // when the fetch of val began; zero: there is none
	flight  *flight[T]
}

type flight[T any] struct {
	started time.Time
	done    chan struct{}
	val     T
	err     error
}

// get returns a value whose fetch began at or after notBefore. The fetch runs
// in a goroutine of its own and ends by itself; ctx ends this caller's wait
// alone. Errors are not kept: the next caller fetches again.
func (s *shared[T]) get(ctx context.Context, notBefore time.Time, fetch func() (T, error)) (T, error) {
	for {
		s.mu.Lock()
		if !s.started.IsZero() && !s.started.Before(notBefore) {
			v := s.val
			s.mu.Unlock()
			return v, nil
		}
		f := s.flight
		if f == nil {
			f = &flight[T]{started: time.Now(), done: make(chan struct{})}
			s.flight = f
			go func() {
				v, err := fetch()
				s.mu.Lock()
				f.val, f.err = v, err
				s.flight = nil
				if err == nil {
					s.val, s.started = v, f.started
				}
				s.mu.Unlock()
				close(f.done)
			}()
		}
		s.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			var zero T
			return zero, ctx.Err()
		}
		if !f.started.Before(notBefore) {
			return f.val, f.err
		}
	}
}

// invalidate makes the next caller fetch.
func (s *shared[T]) invalidate() {
	s.mu.Lock()
	s.started = time.Time{}
	s.mu.Unlock()
}
