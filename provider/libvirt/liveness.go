package libvirt

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// dialOnce makes a session within limit: dial, authenticate, open, one call. It
// publishes its phases if it is the link's own redial, and not a second opinion
// behind a link that is up.
func (l *Link) dialOnce(limit time.Duration, publish bool) (*session, error) {
	ctx, cancel := context.WithTimeout(l.ctx, limit)
	defer cancel()
	phase := func(string) {}
	if publish {
		phase = func(p string) {
			l.mu.Lock()
			l.phase = p
			l.mu.Unlock()
		}
		l.mu.Lock()
		select { // a kick from before this dial has had its wish
		case <-l.kick:
		default:
		}
		l.phase, l.nextRetry, l.cancelDial = "dial", time.Time{}, cancel
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			l.cancelDial = nil
			l.mu.Unlock()
		}()
	}
	c, err := l.opts.Dial(ctx)
	if err != nil {
		return nil, l.dialErr(ctx, err)
	}
	s := newSession(c, l.opts.Slots)
	if err := s.open(ctx, l.opts.URI, phase); err != nil {
		s.kill(err)
		return nil, l.dialErr(ctx, err)
	}
	return s, nil
}

// dialErr tells a dial that an operator's reconnect cut short from one that
// failed.
func (l *Link) dialErr(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) && l.ctx.Err() == nil {
		return errForced
	}
	return err
}

// watch returns when s is finished: with a replacement, or with the cause.
func (l *Link) watch(s *session) (*session, error) {
	t := time.NewTicker(l.opts.Ping)
	defer t.Stop()
	for {
		select {
		case <-s.dead():
			return nil, s.cause
		case <-l.ctx.Done():
			s.kill(errClosed)
			return nil, errClosed
		case <-t.C:
		}
		why := l.symptom(s)
		if why == "" {
			continue
		}
		repl, err := l.secondOpinion(s, why)
		if repl != nil || err != nil {
			return repl, err
		}
	}
}

// symptom pings and returns why s may be finished, or "". A clogged connection
// still answers pings, since the daemon reads one call more than we have slots.
func (l *Link) symptom(s *session) string {
	if c := s.cloggedSince(); !c.IsZero() && time.Since(c) >= l.opts.Clogged {
		return fmt.Sprintf("its slots are held by abandoned calls since %s", time.Since(c).Round(time.Second))
	}
	sent := time.Now()
	s.conn.ping()
	t := time.NewTimer(l.opts.Silence)
	defer t.Stop()
	for {
		select {
		case <-s.dead():
			return ""
		case <-t.C:
			if s.conn.silentSince(sent) {
				return fmt.Sprintf("no byte for %s after a keepalive", l.opts.Silence)
			}
			return ""
		case <-s.conn.heard():
			if !s.conn.silentSince(sent) {
				return ""
			}
		}
	}
}

// secondOpinion asks on a fresh connection whether the daemon lives. If it does
// not, s is finished. If it does, only s is stuck: the fresh connection takes
// its place, unless s has come back in the meantime.
func (l *Link) secondOpinion(s *session, why string) (*session, error) {
	l.setSuspect(true)
	asked := time.Now()
	fresh, err := l.dialOnce(l.opts.SecondOpinion, false)
	l.setSuspect(false)
	if s.ctx.Err() != nil {
		if fresh != nil {
			fresh.kill(errClosed)
		}
		return nil, s.cause
	}
	if err != nil {
		cause := fmt.Errorf("%s, and a new connection failed: %w", why, err)
		s.kill(cause)
		return nil, cause
	}
	if c := s.cloggedSince(); c.IsZero() && !s.conn.silentSince(asked) {
		fresh.kill(errClosed)
		return nil, nil
	}
	return fresh, nil
}

func (l *Link) setSuspect(v bool) {
	l.mu.Lock()
	l.suspect = v
	l.mu.Unlock()
}

// retire lets the calls of a replaced generation finish, within limits. l.mu is
// held.
func (l *Link) retire(s *session) {
	l.draining = append(l.draining, s)
	if len(l.draining) > maxDraining {
		l.draining[0].kill(errors.New("replaced: too many generations were draining"))
	}
	go func() {
		end := time.NewTimer(l.opts.DrainMax)
		defer end.Stop()
		look := time.NewTicker(100 * time.Millisecond)
		defer look.Stop()
		for done := false; !done; {
			select {
			case <-s.dead():
				done = true
			case <-end.C:
				done = true
			case <-look.C:
				n, _ := s.inFlight()
				done = n == 0
			}
		}
		s.kill(errors.New("replaced by a newer generation"))
		l.mu.Lock()
		for i, d := range l.draining {
			if d == s {
				l.draining = append(l.draining[:i:i], l.draining[i+1:]...)
				break
			}
		}
		l.mu.Unlock()
	}()
}
