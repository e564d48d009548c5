package simhost

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeBuffer is how much one direction holds before a writer waits: about what
// a unix socket holds.
const pipeBuffer = 208 * 1024

// newPipe makes the two ends of an in-memory connection. It behaves as a
// stream socket: writes are buffered and wait when the buffer is full; after the
// other end has closed, what it wrote can still be read, then comes io.EOF, and
// writes give EPIPE; deadlines work; Close frees whoever waits at this end.
// Waiting is on condition variables only, so it is durable in a synctest bubble.
func newPipe(network string, left, right net.Addr) (*pipeConn, *pipeConn) {
	there, back := newStream(), newStream()
	return &pipeConn{network: network, in: back, out: there, local: left, remote: right},
		&pipeConn{network: network, in: there, out: back, local: right, remote: left}
}

// stream is one direction.
type stream struct {
	mu     sync.Mutex
	cond   *sync.Cond
	buf    []byte
	off    int  // buf[:off] has been read
	wdone  bool // the writer has ended the stream
	rdone  bool // the reader has gone
	broken bool // cut: the reader gets ECONNRESET, and what is unread is lost
	rlimit deadline
	wlimit deadline
}

func newStream() *stream {
	s := &stream{}
	s.cond = sync.NewCond(&s.mu)
	return s
}

// deadline is one side's limit on a stream; guarded by the stream's mutex.
type deadline struct {
	past  bool
	gen   int
	timer *time.Timer
}

// set moves the deadline; waiters are woken when it comes.
func (s *stream) set(d *deadline, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.gen++
	d.past = false
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.past = true
		s.cond.Broadcast()
		return
	}
	gen := d.gen
	d.timer = time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if d.gen == gen {
			d.past = true
			s.cond.Broadcast()
		}
	})
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.rdone:
			return 0, net.ErrClosed
		case s.rlimit.past:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case s.broken:
			return 0, syscall.ECONNRESET
		case s.off < len(s.buf):
			n := copy(p, s.buf[s.off:])
			if s.off += n; s.off == len(s.buf) {
				s.buf, s.off = s.buf[:0], 0
			}
			s.cond.Broadcast()
			return n, nil
		case s.wdone:
			return 0, io.EOF
		}
		s.cond.Wait()
	}
}

func (s *stream) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for {
		switch {
		case s.wdone:
			return total, net.ErrClosed
		case s.wlimit.past:
			return total, os.ErrDeadlineExceeded
		case s.rdone:
			return total, syscall.EPIPE
		case len(p) == 0:
			return total, nil
		}
		if room := pipeBuffer - (len(s.buf) - s.off); room > 0 {
			n := min(room, len(p))
			if s.off > 0 && len(s.buf)+n > cap(s.buf) {
				s.buf = append(s.buf[:0], s.buf[s.off:]...)
				s.off = 0
			}
			s.buf = append(s.buf, p[:n]...)
			p, total = p[n:], total+n
			s.cond.Broadcast()
			continue
		}
		s.cond.Wait()
	}
}

func (s *stream) endWrite() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wdone = true
	s.cond.Broadcast()
}

func (s *stream) endRead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rdone = true
	s.buf, s.off = nil, 0
	s.cond.Broadcast()
}

func (s *stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range []*deadline{&s.rlimit, &s.wlimit} {
		d.gen++
		if d.timer != nil {
			d.timer.Stop()
		}
	}
}

func (s *stream) breakOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
	s.cond.Broadcast()
}

// pipeConn is one end of a pipe.
type pipeConn struct {
	network       string
	in, out       *stream
	local, remote net.Addr

	mu     sync.Mutex
	closed bool
}

var _ net.Conn = (*pipeConn)(nil)

func (c *pipeConn) wrap(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) { // readers compare io.EOF by identity
		return err
	}
	return &net.OpError{Op: op, Net: c.network, Source: c.local, Addr: c.remote, Err: err}
}

func (c *pipeConn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.wrap("read", err)
}

func (c *pipeConn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	return n, c.wrap("write", err)
}

// Close ends both directions. Closing twice is an error, as for a socket.
func (c *pipeConn) Close() error {
	c.mu.Lock()
	was := c.closed
	c.closed = true
	c.mu.Unlock()
	if was {
		return c.wrap("close", net.ErrClosed)
	}
	c.out.endWrite()
	c.in.endRead()
	c.out.stop()
	c.in.stop()
	return nil
}

// CloseWrite ends the direction out of here alone.
func (c *pipeConn) CloseWrite() error {
	c.out.endWrite()
	return nil
}

// reset closes so that the other end reads ECONNRESET instead of what is left.
func (c *pipeConn) reset() {
	c.out.breakOff()
	_ = c.Close() // it may be closed already
}

func (c *pipeConn) LocalAddr() net.Addr  { return c.local }
func (c *pipeConn) RemoteAddr() net.Addr { return c.remote }

func (c *pipeConn) SetDeadline(t time.Time) error {
	c.in.set(&c.in.rlimit, t)
	c.out.set(&c.out.wlimit, t)
	return nil
}

func (c *pipeConn) SetReadDeadline(t time.Time) error {
	c.in.set(&c.in.rlimit, t)
	return nil
}

func (c *pipeConn) SetWriteDeadline(t time.Time) error {
	c.out.set(&c.out.wlimit, t)
	return nil
}
