package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider"
)

// session is one generation of a link: one connection, one go-libvirt object,
// and the calls under way on it.
type session struct {
	gen  uint64 // 0 until installed
	lv   *golibvirt.Libvirt
	conn *frameConn
	ctx  context.Context // ends with the session
	stop context.CancelFunc

	all, slow, agent chan struct{} // slots; see slotsFor

	once  sync.Once
	cause error // set before ctx ends

	mu      sync.Mutex
	calls   map[uint64]*callRecord
	nextID  uint64
	locks   map[lockKey]string
	left    [3]int    // calls whose caller has gone, by class
	clogged time.Time // since when such calls hold every slot of a class
}

// callRecord is a call under way.
type callRecord struct {
	what      string
	class     Class
	started   time.Time
	abandoned bool
	returned  chan struct{} // closed at its end, if it was abandoned
}

// lockKey is one kind of operation on one domain: agent calls and writes take
// different jobs in libvirt, so a hung agent must not keep a restart out.
type lockKey struct {
	domain string
	class  Class
}

// oneShot hands go-libvirt the connection that was dialled for it. A second
// dial must never happen: a session is replaced, not reconnected.
type oneShot struct{ c net.Conn }

func (o oneShot) Dial() (net.Conn, error) { return o.c, nil }

func newSession(c net.Conn, slots int) *session {
	s := &session{
		all: make(chan struct{}, slots), slow: make(chan struct{}, max(1, slots-1)),
		agent: make(chan struct{}, max(1, slots/2)),
		calls: map[uint64]*callRecord{}, locks: map[lockKey]string{},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.conn = newFrameConn(c, func(err error) { s.kill(err) })
	s.lv = golibvirt.NewWithDialer(oneShot{s.conn})
	return s
}

// kill ends the generation. It never asks go-libvirt to disconnect: that is a
// call of its own, and waits for a daemon that may be frozen. Closing our socket
// frees every caller.
func (s *session) kill(cause error) {
	s.once.Do(func() {
		s.cause = cause
		s.stop()
		_ = s.conn.Conn.Close() // below the wrapper, which may be calling us
	})
}

func (s *session) dead() <-chan struct{} { return s.ctx.Done() }

// downErr is the error for callers of a dead generation. A deadline in the cause,
// that of a second opinion say, is kept as text alone: it is not the caller's own.
func (s *session) downErr() error {
	if errors.Is(s.cause, context.DeadlineExceeded) || errors.Is(s.cause, context.Canceled) {
		return fmt.Errorf("%w (generation %d: %s)", provider.ErrLinkDown, s.gen, s.cause.Error())
	}
	return fmt.Errorf("%w (generation %d: %w)", provider.ErrLinkDown, s.gen, s.cause)
}

// open performs authentication and the open call, and one cheap call to prove
// that answers come. It returns when ctx ends, even if the daemon is frozen.
func (s *session) open(ctx context.Context, uri string, phase func(string)) error {
	done := make(chan error, 1)
	go func() {
		phase("handshake")
		err := s.lv.ConnectToURI(golibvirt.ConnectURI(uri))
		close(s.conn.opened)
		if err == nil {
			phase("verify")
			_, err = s.lv.ConnectGetLibVersion()
		}
		done <- err
	}()
	select {
	case err := <-done:
		return s.openErr(ctx, err)
	case <-ctx.Done():
		s.kill(ctx.Err())
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return errors.New("connected, but the daemon does not answer")
		}
		return ctx.Err()
	}
}

// openErr is the error of an open: what the daemon said, for go-libvirt closes the
// connection after it; else what ended the connection, which says more than that
// it ended.
func (s *session) openErr(ctx context.Context, err error) error {
	var said golibvirt.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &said):
		err = &provider.CodedError{Code: int(said.Code), Message: said.Message}
	case s.ctx.Err() != nil && ctx.Err() == nil:
		err = s.cause
	}
	if s.conn.wantsSASL() {
		return fmt.Errorf("the daemon asks for SASL authentication, which virdeck does not speak: %w", err)
	}
	return err
}

// begin records a call and takes the domain's lock if it needs one. The error,
// if any, is ErrNotAsked.
func (s *session) begin(c call) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Domain != "" && c.Class != ClassRead {
		k := lockKey{c.Domain, c.Class}
		if by, busy := s.locks[k]; busy {
			return 0, fmt.Errorf("%w: %s of this domain is still under way", provider.ErrNotAsked, by)
		}
		s.locks[k] = c.What
	}
	s.nextID++
	s.calls[s.nextID] = &callRecord{what: c.text(), class: c.Class, started: time.Now()}
	return s.nextID, nil
}

// end forgets a call that has truly returned.
func (s *session) end(id uint64, c call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.calls[id]; r != nil && r.abandoned {
		close(r.returned)
		s.left[c.Class]--
		s.recount()
	}
	delete(s.calls, id)
	if c.Domain != "" && c.Class != ClassRead {
		delete(s.locks, lockKey{c.Domain, c.Class})
	}
}

// abandon marks a call whose caller has left.
func (s *session) abandon(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.calls[id]
	if r == nil || r.abandoned {
		return
	}
	r.abandoned, r.returned = true, make(chan struct{})
	s.left[r.class]++
	s.recount()
}

// recount keeps the clock of a clogged connection: it runs from when abandoned
// calls hold every slot that some class may have, whichever calls come and go,
// until they no longer do. s.mu is held.
func (s *session) recount() {
	slow := s.left[ClassAgent] + s.left[ClassWrite]
	switch now := s.abandoned() >= cap(s.all) || slow >= cap(s.slow) || s.left[ClassAgent] >= cap(s.agent); {
	case !now:
		s.clogged = time.Time{}
	case s.clogged.IsZero():
		s.clogged = time.Now()
	}
}

// twinAgain is after how long a read of the host itself may be tried beside one
// that was abandoned, once: if a single call of it was lost, the host would be
// unreadable for ever. A domain's stays refused, since another such call would
// take another slot from its neighbours for one guest's trouble.
const twinAgain = 30 * time.Second

// twin returns a channel that is closed at the end of a read that is the same as
// c and whose caller has left, or nil. While it is in the daemon another one would
// wait for the same thing, and take a slot from a neighbour for it.
func (s *session) twin(c call) <-chan struct{} {
	if c.Class != ClassRead { // the others have their lock
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left[ClassRead] == 0 {
		return nil
	}
	what, n := c.text(), 0
	var last *callRecord
	for _, r := range s.calls {
		if !r.abandoned || r.class != ClassRead || r.what != what {
			continue
		}
		if n++; last == nil || r.started.After(last.started) {
			last = r
		}
	}
	if n == 0 || n == 1 && c.Domain == "" && time.Since(last.started) >= twinAgain {
		return nil
	}
	return last.returned
}

func (s *session) abandoned() int { return s.left[ClassRead] + s.left[ClassAgent] + s.left[ClassWrite] }

// cloggedSince returns since when abandoned calls hold every slot, or every slot
// of a slow class; zero if they do not.
func (s *session) cloggedSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clogged
}

func (s *session) inFlight() (all, abandoned int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls), s.abandoned()
}

// under describes the calls under way.
func (s *session) under() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, 0, len(s.calls))
	for _, r := range s.calls {
		out = append(out, fmt.Sprintf("%s, %s", r.what, time.Since(r.started).Round(100*time.Millisecond)))
	}
	return out
}
