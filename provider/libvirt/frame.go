package libvirt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes and numbers of libvirt's RPC framing (virnetprotocol.x, and
// virkeepaliveprotocol.x for the keepalive program).
const (
	frameHeader       = 28               // length word, then six words of header
	frameMax          = 32<<20 + 4       // VIR_NET_MESSAGE_MAX and the length word
	keepaliveProgram  = 0x6b656570       // "keep"
	keepalivePing     = 1                // procedure
	keepalivePong     = 2                // procedure
	messageType       = 2                // VIR_NET_MESSAGE: no reply is expected
	writePatience     = 30 * time.Second // a write that takes longer has lost its peer
	keepalivePatience = 2 * time.Second
)

// frameConn stands between go-libvirt and the socket. It knows where a frame
// begins and ends, and so can do what go-libvirt does not:
//
//   - refuse a frame whose length no libvirt would send, or whose content
//     announces more than it holds, before anything is allocated for it
//     (go-libvirt panics below 28 bytes, and allocates whatever is announced);
//   - answer the daemon's keepalive and send its own between two outgoing
//     frames;
//   - tell when bytes last came in;
//   - close the connection when a write fails or takes too long, because a half
//     frame can never be continued;
//   - say at once, by onDead, that reading has ended. go-libvirt's own signal
//     is raced by its Connect.
//
// Read is for one goroutine; all else is safe for several.
type frameConn struct {
	net.Conn
	onDead func(error) // called once, at the first failure; must not block

	dead      sync.Once
	epoch     time.Time     // instants below are counted from it, so that no clock's jump touches them
	lastIn    atomic.Int64  // nanoseconds, of the last byte received
	pingSent  atomic.Int64  // nanoseconds
	roundTrip atomic.Int64  // nanoseconds, of the last PONG
	in        chan struct{} // capacity 1: bytes have come in

	wmu  sync.Mutex
	wgot int    // bytes of the length word seen of the frame being written
	whdr uint32 // the length word so far
	wrem int    // bytes of the frame still to come

	rbuf []byte // of a whole frame, still to be handed on
}

func newFrameConn(c net.Conn, onDead func(error)) *frameConn {
	f := &frameConn{Conn: c, onDead: onDead, epoch: time.Now(), in: make(chan struct{}, 1)}
	f.arrived()
	return f
}

// arrived notes that bytes have come in.
func (f *frameConn) arrived() {
	f.lastIn.Store(f.since(time.Now()))
	select {
	case f.in <- struct{}{}:
	default:
	}
}

func (f *frameConn) since(t time.Time) int64 { return int64(t.Sub(f.epoch)) }

// heard yields a value after bytes have come in; for one listener.
func (f *frameConn) heard() <-chan struct{} { return f.in }

func (f *frameConn) fail(err error) error {
	f.dead.Do(func() {
		_ = f.Conn.Close() // the error that counts is the one that led here
		f.onDead(err)
	})
	return err
}

// Close ends the connection; readers and writers return.
func (f *frameConn) Close() error {
	err := f.Conn.Close()
	f.dead.Do(func() { f.onDead(net.ErrClosed) })
	return err
}

// Write passes bytes on, keeping track of frame boundaries.
func (f *frameConn) Write(p []byte) (int, error) {
	f.wmu.Lock()
	defer f.wmu.Unlock()
	f.track(p)
	n, err := f.patientWrite(p, writePatience)
	if err != nil {
		return n, f.fail(err)
	}
	return n, nil
}

// patientWrite closes the connection when the write outlasts d. A timer and not
// a deadline, because an SSH channel has no deadlines.
func (f *frameConn) patientWrite(p []byte, d time.Duration) (int, error) {
	t := time.AfterFunc(d, func() { _ = f.Conn.Close() })
	defer t.Stop()
	return f.Conn.Write(p)
}

func (f *frameConn) track(p []byte) {
	for len(p) > 0 {
		if f.wrem > 0 {
			n := min(f.wrem, len(p))
			f.wrem -= n
			p = p[n:]
			continue
		}
		f.whdr = f.whdr<<8 | uint32(p[0])
		p = p[1:]
		if f.wgot++; f.wgot == 4 {
			f.wrem = int(f.whdr) - 4
			f.wgot, f.whdr = 0, 0
		}
	}
}

// ping sends a keepalive. It gives up without harm when a writer is active or a
// frame is half out: that writer's progress, or the lack of it, shows the same.
func (f *frameConn) ping() {
	f.pingSent.Store(f.since(time.Now()))
	f.keepalive(keepalivePing)
}

func (f *frameConn) keepalive(proc uint32) {
	if !f.wmu.TryLock() {
		return
	}
	defer f.wmu.Unlock()
	if f.wrem > 0 || f.wgot > 0 {
		return
	}
	b := make([]byte, 0, frameHeader)
	for _, w := range [...]uint32{frameHeader, keepaliveProgram, 1, proc, messageType, 0, 0} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	if _, err := f.patientWrite(b, keepalivePatience); err != nil {
		_ = f.fail(fmt.Errorf("keepalive: %w", err)) // told through onDead
	}
}

// silentSince reports whether nothing has come in since t.
func (f *frameConn) silentSince(t time.Time) bool { return f.lastIn.Load() < f.since(t) }

// Read hands on whole frames in pieces, keepalive taken out.
func (f *frameConn) Read(p []byte) (int, error) {
	for len(f.rbuf) == 0 {
		if err := f.nextFrame(); err != nil {
			return 0, f.fail(err)
		}
	}
	n := copy(p, f.rbuf)
	f.rbuf = f.rbuf[n:]
	return n, nil
}

// arriving reads and notes that bytes come in, however slowly a frame does.
type arriving struct{ f *frameConn }

func (a arriving) Read(p []byte) (int, error) {
	n, err := a.f.Conn.Read(p)
	if n > 0 {
		a.f.arrived()
	}
	return n, err
}

// badLength tells another protocol on the port, which greets in plain text, from
// a stream that has gone out of step.
func badLength(n uint32, h []byte) error {
	odd := func(r rune) bool { return r != '\r' && r != '\n' && (r < ' ' || r > '~') }
	if line, _, _ := strings.Cut(string(h), "\r\n"); line != "" && strings.IndexFunc(string(h), odd) < 0 {
		return fmt.Errorf("what answers there does not speak libvirt's protocol: it says %q", line)
	}
	return fmt.Errorf("frame of %d bytes, allowed are %d to %d: the stream is out of step", n, frameHeader, frameMax)
}

func (f *frameConn) nextFrame() error {
	h := make([]byte, frameHeader)
	got, err := io.ReadAtLeast(f.Conn, h, 4)
	if err != nil {
		return err
	}
	f.arrived()
	// The length first: whoever speaks another protocol may never send more.
	n := binary.BigEndian.Uint32(h)
	if n < frameHeader || n > frameMax {
		return badLength(n, h[:got])
	}
	if _, err := io.ReadFull(f.Conn, h[got:]); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(h[4:]) != keepaliveProgram {
		return f.body(h, int64(n))
	}
	if n != frameHeader {
		return fmt.Errorf("keepalive frame of %d bytes, allowed is %d", n, frameHeader)
	}
	switch binary.BigEndian.Uint32(h[12:]) {
	case keepalivePing:
		// Not from here: this goroutine must go on reading.
		go f.keepalive(keepalivePong)
	case keepalivePong:
		f.roundTrip.Store(f.since(time.Now()) - f.pingSent.Load())
	}
	return nil
}

// body reads the rest of a frame of n bytes and lets it through if it is sound.
// The buffer grows with what comes in, not with what is announced.
func (f *frameConn) body(h []byte, n int64) error {
	b := bytes.NewBuffer(h)
	if _, err := io.CopyN(b, arriving{f}, n-frameHeader); err != nil {
		return err
	}
	pass, err := inspect(b.Bytes())
	if pass {
		f.rbuf = b.Bytes()
	}
	return err
}
