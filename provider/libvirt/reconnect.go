package libvirt

import (
	"context"
	"fmt"
	"slices"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// waiter is a Reconnect that waits: for nil when the link is up, else for the
// error of the first dial that began after it.
type waiter struct {
	told  chan error // capacity 1
	begun bool
}

// Reconnect implements provider.Host.Reconnect: it closes the connection under
// its callers, which works on a frozen daemon and on a half-open connection
// alike, and dials again now. While the dial of another Reconnect is under way it
// joins that: a key that is held down must not begin it anew for ever.
func (l *Link) Reconnect(ctx context.Context) (provider.ReconnectReport, error) {
	start := time.Now()
	w := &waiter{told: make(chan error, 1)}
	l.mu.Lock()
	rep := provider.ReconnectReport{From: l.gen}
	var victims []*session
	if n := len(l.waiters); n > 0 && l.cur == nil {
		w.begun = l.waiters[n-1].begun
	} else {
		victims = l.force(start)
	}
	l.waiters = append(l.waiters, w)
	l.mu.Unlock()
	for _, s := range victims {
		rep.Interrupted = append(rep.Interrupted, s.under()...)
		s.kill(errForced)
	}
	l.opts.OnChange(l.Status())
	select {
	case err := <-w.told:
		rep.Took = time.Since(start)
		if err != nil {
			return rep, fmt.Errorf("%w: %s", provider.ErrLinkDown, err.Error()) // a dial's deadline is not ctx's
		}
		rep.To = l.Status().Generation
		return rep, nil
	case <-ctx.Done():
		l.leave(w) // the next one begins anew: there is nobody to join
		rep.Took = time.Since(start)
		return rep, ctx.Err()
	case <-l.ctx.Done():
		rep.Took = time.Since(start)
		return rep, provider.ErrLinkDown
	}
}

// leave takes out one who waits no longer.
func (l *Link) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiters = slices.DeleteFunc(l.waiters, func(o *waiter) bool { return o == w })
}

// force begins a redial now and returns the generations to kill. l.mu is held.
func (l *Link) force(now time.Time) []*session {
	victims := append([]*session{}, l.draining...)
	if l.cur != nil {
		victims = append(victims, l.cur)
		l.cur = nil
		l.state, l.since, l.phase = model.LinkConnecting, now, "close"
		l.outage = now
	}
	l.forcedAt = now
	if l.cancelDial != nil {
		l.cancelDial() // a dial that hangs on a frozen daemon begins anew
	}
	select {
	case l.kick <- struct{}{}:
	default:
	}
	return victims
}

// tell answers those who wait in Reconnect, and lets the first callers go: nil to
// all, an error to those whose dial it was. l.mu is held.
func (l *Link) tell(err error) {
	l.waiters = slices.DeleteFunc(l.waiters, func(w *waiter) bool {
		if err != nil && !w.begun {
			return false
		}
		w.told <- err
		return true
	})
	select {
	case <-l.first:
	default:
		close(l.first)
	}
}
