package libvirt

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider"
)

// lone is a question that is in the daemon once at most. A call that its caller
// has given up is still there, and holds a slot of ours and a worker of the
// daemon, until it returns or its connection ends; to ask again meanwhile would
// cost another of each and teach nothing. One lone is of one connection.
type lone struct {
	mine chan struct{} // capacity 1
	// room is shared by questions of one kind, so that they leave slots to others
	// even when each of them hangs; nil: there is no such limit.
	room chan struct{}
}

func newLone(room chan struct{}) lone { return lone{mine: make(chan struct{}, 1), room: room} }

// onLone is onSession for such a question. While the one before is still in the
// daemon it returns ErrNotAsked at once; for room it waits as for a slot.
func onLone[T any](ctx context.Context, l *Link, s *session, q lone, c call, fn func(*golibvirt.Libvirt) (T, error)) (T, error) {
	var zero T
	if err := q.enter(ctx, s, l.opts.SlotWait); err != nil {
		return zero, fmt.Errorf("%s: %w", c.text(), err)
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

func (q lone) enter(ctx context.Context, s *session, patience time.Duration) error {
	select {
	case q.mine <- struct{}{}:
	default:
		return fmt.Errorf("%w: the call before has not been answered yet", provider.ErrNotAsked)
	}
	if q.room == nil {
		return nil
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	var err error
	select {
	case q.room <- struct{}{}:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.dead():
		err = s.downErr()
	case <-t.C:
		err = fmt.Errorf("%w: %d calls of its kind have not been answered yet", provider.ErrNotAsked, cap(q.room))
	}
	<-q.mine
	return err
}

func (q lone) leave() {
	if q.room != nil {
		<-q.room
	}
	<-q.mine
}

// free waits until the question is not in the daemon; false: the connection has
// ended first.
func (q lone) free(s *session) bool {
	select {
	case q.mine <- struct{}{}:
		<-q.mine
		return true
	case <-s.dead():
		return false
	}
}
