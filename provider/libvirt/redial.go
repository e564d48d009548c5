package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// dialOnce makes a session within limit: dial, authenticate, open, one call. It
// obeys ctx and the link in every phase, whatever the dialer does. It publishes
// its phases if it is the link's own redial, and not a second opinion behind a
// link that is up.
func (l *Link) dialOnce(ctx context.Context, limit time.Duration, publish bool) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	phase := func(string) {}
	if publish {
		phase = func(p string) {
			l.mu.Lock()
			l.phase = p
			l.mu.Unlock()
		}
		l.beginDial(cancel)
		defer l.endDial()
	}
	start := time.Now()
	c, err := l.dial(ctx, limit)
	if err != nil {
		return nil, l.dialErr(ctx, err)
	}
	l.dialTook.Store(int64(time.Since(start)))
	s := newSession(c, l.opts.Slots)
	if err := s.open(ctx, l.opts.URI, phase); err != nil {
		s.kill(err)
		return nil, l.dialErr(ctx, err)
	}
	return s, nil
}

// beginDial publishes that the link's own redial is under way. A kick from before
// has had its wish, and who waits in Reconnect is told what becomes of this one.
func (l *Link) beginDial(cancel context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.kick:
	default:
	}
	l.phase, l.nextRetry, l.cancelDial = "dial", time.Time{}, cancel
	for _, w := range l.waiters {
		w.begun = true
	}
}

func (l *Link) endDial() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancelDial = nil
}

// lastWords is how long a dialer that ran out of time may take to say in what.
const lastWords = 250 * time.Millisecond

// dial calls the dialer, and does not wait for one that outlasts ctx: such a
// connection is closed when it comes.
func (l *Link) dial(ctx context.Context, limit time.Duration) (net.Conn, error) {
	type result struct {
		c   net.Conn
		err error
	}
	ch := make(chan result, 1)
	go func() {
		c, err := l.opts.Dial(ctx)
		ch <- result{c, err}
	}()
	select {
	case r := <-ch:
		return r.c, r.err
	case <-ctx.Done():
	}
	late := func() {
		if r := <-ch; r.err == nil {
			_ = r.c.Close() // nobody wants it any more
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		go late()
		return nil, ctx.Err()
	}
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case r := <-ch:
		if r.err != nil {
			return nil, r.err
		}
		_ = r.c.Close() // too late
	case <-t.C:
		go late()
	}
	return nil, fmt.Errorf("no connection within %s", limit)
}

// dialErr tells a dial that an operator's reconnect cut short from one that
// failed.
func (l *Link) dialErr(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) && l.ctx.Err() == nil {
		return errForced
	}
	return err
}
