package libvirt

import (
	"context"
	"fmt"
	"sync/atomic"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider"
)

// lone is a question that is in the daemon once at most. A call that its caller
// has given up is still there, and holds a slot of ours and a worker of the
// daemon, until it returns or its connection ends; to ask again meanwhile would
// cost another of each and teach nothing. One lone is of one connection.
type lone chan struct{}

func newLone() lone { return make(lone, 1) }

// onLone is onSession for such a question. While the one before is still in the
// daemon it returns ErrNotAsked at once.
func onLone[T any](ctx context.Context, l *Link, s *session, q lone, c call, fn func(*golibvirt.Libvirt) (T, error)) (T, error) {
	var zero T
	select {
	case q <- struct{}{}:
	default:
		return zero, fmt.Errorf("%w: %s is still under way", provider.ErrNotAsked, c.text())
	}
	// Who comes first takes the question out again: fn when it returns, or, where
	// fn has not begun, its caller.
	var taken atomic.Bool
	v, err := onSession(ctx, l, s, c, func(v *golibvirt.Libvirt) (T, error) {
		if !taken.CompareAndSwap(false, true) {
			return zero, nil // nobody waits for it any more
		}
		defer q.leave()
		return fn(v)
	})
	if taken.CompareAndSwap(false, true) {
		q.leave()
	}
	return v, err
}

func (q lone) leave() { <-q }

// free waits until the question is not in the daemon; false: the connection has
// ended first.
func (q lone) free(s *session) bool {
	select {
	case q <- struct{}{}:
		q.leave()
		return true
	case <-s.dead():
		return false
	}
}
