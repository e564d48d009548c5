package libvirt

import (
	"errors"
	"fmt"
	"time"
)

// symptom is why a generation may be finished.
type symptom struct {
	why   string
	quiet bool        // it says nothing; otherwise it answers and is of no use
	lasts func() bool // whether it is still so
}

// watch returns when s is finished: with a replacement, or with the cause.
func (l *Link) watch(s *session) (*session, error) {
	t := time.NewTicker(l.opts.Ping)
	defer t.Stop()
	var again time.Time // when the next opinion on a clogged s may be asked
	pause := l.opts.Clogged
	for {
		select {
		case <-s.dead():
			return nil, s.cause
		case <-l.ctx.Done():
			s.kill(errClosed)
			return nil, errClosed
		case <-t.C:
		}
		sy := l.clogged(s)
		if sy == nil || time.Now().Before(again) {
			sy = l.silent(s)
		}
		if sy == nil {
			continue
		}
		repl, err := l.secondOpinion(s, sy)
		if repl != nil {
			return repl, nil
		}
		if err != nil && !sy.quiet {
			again = time.Now().Add(pause)
			pause = min(2*pause, cloggedPauseMax)
		}
	}
}

// cloggedPauseMax is the longest pause between two tries to replace a generation
// that is clogged while the host takes no other.
const cloggedPauseMax = time.Minute

// clogged returns the symptom of a connection that answers pings, since the daemon
// reads one call more than we have slots, and takes no calls all the same.
func (l *Link) clogged(s *session) *symptom {
	c := s.cloggedSince()
	if c.IsZero() || time.Since(c) < l.opts.Clogged {
		return nil
	}
	return &symptom{
		why:   fmt.Sprintf("its slots are held by abandoned calls since %s", time.Since(c).Round(time.Second)),
		lasts: func() bool { return !s.cloggedSince().IsZero() },
	}
}

// silent pings and returns the symptom of a connection from which nothing comes,
// or nothing in a time that is to be borne.
func (l *Link) silent(s *session) *symptom {
	if d := s.conn.overdue(); d > 0 {
		return &symptom{
			why:   fmt.Sprintf("one frame of %d bytes is under way since %s", s.conn.frameLen.Load(), d.Round(time.Second)),
			quiet: true, lasts: func() bool { return s.conn.overdue() > 0 },
		}
	}
	sent := s.conn.mark()
	s.conn.ping()
	t := time.NewTimer(l.opts.Silence)
	defer t.Stop()
	for {
		select {
		case <-s.dead():
			return nil
		case <-t.C:
			if !s.conn.silentSince(sent) {
				return nil
			}
			return &symptom{
				why:   fmt.Sprintf("no answer for %s after a keepalive", l.opts.Silence),
				quiet: true, lasts: func() bool { return s.conn.silentSince(sent) },
			}
		case <-s.conn.heard():
			if s.conn.livedSince(sent) {
				return nil
			}
		}
	}
}

// secondOpinion asks on a fresh connection whether the daemon lives. If it does,
// only s is stuck: the fresh connection takes its place, unless s has come back in
// the meantime. If it does not, a silent s is finished; one that still answers is
// kept, since a host may refuse a new connection for reasons of its own. The end
// of s ends the question.
func (l *Link) secondOpinion(s *session, sy *symptom) (*session, error) {
	l.setSuspect(true)
	fresh, err := l.dialOnce(s.ctx, l.patience(sy), false)
	l.setSuspect(false)
	switch {
	case s.ctx.Err() != nil || err == nil && !sy.lasts():
		if fresh != nil {
			fresh.kill(errClosed)
		}
		return nil, nil
	case err == nil:
		return fresh, nil
	}
	err = fmt.Errorf("%s, and a new connection failed: %w", sy.why, err)
	if sy.quiet && sy.lasts() {
		s.kill(err)
		return nil, err
	}
	l.mu.Lock()
	l.lastErr, l.lastErrAt = err.Error(), time.Now()
	l.mu.Unlock()
	return nil, err
}

// patience is how long a second opinion may take: as long as any dial if nothing
// presses; else little, so that a frozen daemon is soon called so, but twice what
// the last dial took, where dialling takes long.
func (l *Link) patience(sy *symptom) time.Duration {
	if !sy.quiet {
		return l.opts.DialTimeout
	}
	return max(l.opts.SecondOpinion, min(l.opts.DialTimeout, 2*time.Duration(l.dialTook.Load())))
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
