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

// minRate is the least that a frame must move at, in bytes a second, to show
// life while no PONG can come because of it; frameRate and frameGrace bound the
// time of a whole frame.
const (
	minRate    = 4 << 10
	frameRate  = 16 << 10
	frameGrace = 10 * time.Second
)

// frameConn stands between go-libvirt and the socket. It knows where a frame
// begins and ends, and so can do what go-libvirt does not:
//
//   - refuse a frame whose length no libvirt would send, whose content announces
//     more than it holds, or which answers no call, before anything is allocated
//     for it (go-libvirt panics below 28 bytes, and allocates whatever is
//     announced);
//   - answer the daemon's keepalive and send its own between two outgoing
//     frames;
//   - tell whether the daemon lives: it answers, or its frame moves fast;
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
	epoch     time.Time     // instants below are nanoseconds from it, so that no clock's jump touches them
	lastLife  atomic.Int64  // of the last answer or PONG
	bytesIn   atomic.Int64  // since the beginning
	frameFrom atomic.Int64  // when the frame under way began to come in; 0: none is
	frameLen  atomic.Int64  // its length
	roundTrip atomic.Int64  // of the last PONG
	in        chan struct{} // capacity 1: there was an answer or a PONG

	wmu  sync.Mutex
	whdr [frameHeader]byte // of the frame being written
	wgot int               // bytes of it seen so far
	wrem int               // bytes of the frame still to come after its header

	due   atomic.Uint32 // keepalives to send, as bits 1<<procedure
	pmu   sync.Mutex
	pings []int64 // when those were sent that have no PONG yet, oldest first

	asked outstanding
	auth  atomic.Pointer[[]byte] // the ways of authentication that the daemon named, in XDR

	rbuf   []byte        // of a whole frame, still to be handed on
	hold   bool          // the open call was answered: see Read
	opened chan struct{} // closed when go-libvirt has returned from it
}

func newFrameConn(c net.Conn, onDead func(error)) *frameConn {
	f := &frameConn{Conn: c, onDead: onDead, epoch: time.Now(), in: make(chan struct{}, 1), opened: make(chan struct{})}
	f.lived()
	return f
}

// lived notes that the daemon has answered.
func (f *frameConn) lived() {
	f.lastLife.Store(f.now())
	select {
	case f.in <- struct{}{}:
	default:
	}
}

func (f *frameConn) now() int64 { return int64(time.Since(f.epoch)) }

// heard yields a value after an answer or a PONG; for one listener.
func (f *frameConn) heard() <-chan struct{} { return f.in }

// mark is a moment in what comes in.
type mark struct{ at, bytes int64 }

func (f *frameConn) mark() mark { return mark{f.now(), f.bytesIn.Load()} }

// livedSince reports whether the daemon has answered a call or a ping since m.
func (f *frameConn) livedSince(m mark) bool { return f.lastLife.Load() >= m.at }

// silentSince reports whether nothing since m shows life: no answer, no PONG,
// and no frame that moves so fast that they may be waiting behind it. A daemon
// that drips bytes, or tells of events and takes no calls, is silent.
func (f *frameConn) silentSince(m mark) bool {
	return !f.livedSince(m) && float64(f.bytesIn.Load()-m.bytes) < minRate*time.Duration(f.now()-m.at).Seconds()
}

// overdue returns since when a frame is under way that should be here by now, or
// zero.
func (f *frameConn) overdue() time.Duration {
	from, n := f.frameFrom.Load(), f.frameLen.Load()
	if from == 0 {
		return 0
	}
	took := time.Duration(f.now() - from)
	if took <= frameGrace+time.Duration(n)*time.Second/frameRate {
		return 0
	}
	return took
}

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
	n, err := f.write(p)
	if err != nil {
		return n, f.fail(err)
	}
	f.sendDue()
	return n, nil
}

func (f *frameConn) write(p []byte) (int, error) {
	f.wmu.Lock()
	defer f.wmu.Unlock()
	f.track(p)
	return f.patientWrite(p, writePatience)
}

// patientWrite closes the connection when the write outlasts d. A timer and not
// a deadline, because an SSH channel has no deadlines.
func (f *frameConn) patientWrite(p []byte, d time.Duration) (int, error) {
	t := time.AfterFunc(d, func() { _ = f.Conn.Close() })
	defer t.Stop()
	return f.Conn.Write(p)
}

// track follows the frames that go out. A call is noted before it leaves, so that
// no answer can come before that.
func (f *frameConn) track(p []byte) {
	for len(p) > 0 {
		if f.wrem > 0 {
			n := min(f.wrem, len(p))
			f.wrem -= n
			p = p[n:]
			continue
		}
		n := copy(f.whdr[f.wgot:], p)
		p = p[n:]
		if f.wgot += n; f.wgot == frameHeader {
			f.wrem = int(binary.BigEndian.Uint32(f.whdr[:])) - frameHeader
			f.wgot = 0
			f.asked.sent(f.whdr[:])
		}
	}
}

// ping sends a keepalive, without waiting: when a writer is active or a frame is
// half out, it goes out after it.
func (f *frameConn) ping() { f.keepalive(keepalivePing) }

func (f *frameConn) keepalive(proc uint32) {
	f.due.Or(1 << proc)
	f.sendDue()
}

// sendDue sends the keepalives that are due, unless a writer is active, who does
// so when it is done.
func (f *frameConn) sendDue() {
	for f.due.Load() != 0 && f.wmu.TryLock() {
		between := f.wrem == 0 && f.wgot == 0
		var err error
		if between {
			err = f.writeDue(f.due.Swap(0))
		}
		f.wmu.Unlock()
		if err != nil {
			_ = f.fail(fmt.Errorf("keepalive: %w", err)) // told through onDead
			return
		}
		if !between {
			return
		}
	}
}

// writeDue writes keepalives; f.wmu is held.
func (f *frameConn) writeDue(due uint32) error {
	for _, proc := range [...]uint32{keepalivePong, keepalivePing} {
		if due&(1<<proc) == 0 {
			continue
		}
		b := make([]byte, 0, frameHeader)
		for _, w := range [...]uint32{frameHeader, keepaliveProgram, 1, proc, messageType, 0, 0} {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		if proc == keepalivePing {
			f.pmu.Lock()
			f.pings = append(f.pings, f.now())
			f.pmu.Unlock()
		}
		if _, err := f.patientWrite(b, keepalivePatience); err != nil {
			return err
		}
	}
	return nil
}

// ponged notes a PONG, which answers the oldest ping. One that answers nothing
// says nothing.
func (f *frameConn) ponged() {
	f.pmu.Lock()
	defer f.pmu.Unlock()
	if len(f.pings) == 0 {
		return
	}
	f.roundTrip.Store(f.now() - f.pings[0])
	f.pings = f.pings[1:]
	f.lived()
}

// Read hands on whole frames in pieces, keepalive taken out. go-libvirt writes, at
// the end of its Connect, what its watcher reads at the end of reading, without a
// lock: so the one waits here for the other. It comes: the answer to the open call
// is all that Connect still waited for.
func (f *frameConn) Read(p []byte) (int, error) {
	for len(f.rbuf) == 0 {
		if err := f.nextFrame(); err != nil {
			err = f.fail(err)
			if f.hold {
				<-f.opened
			}
			return 0, err
		}
	}
	n := copy(p, f.rbuf)
	f.rbuf = f.rbuf[n:]
	return n, nil
}

// arriving reads and counts.
type arriving struct{ f *frameConn }

func (a arriving) Read(p []byte) (int, error) {
	n, err := a.f.Conn.Read(p)
	a.f.bytesIn.Add(int64(n))
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
	f.frameFrom.Store(max(1, f.now()))
	defer f.frameFrom.Store(0)
	// The length first: whoever speaks another protocol may never send more.
	n := binary.BigEndian.Uint32(h)
	if n < frameHeader || n > frameMax {
		return badLength(n, h[:got])
	}
	f.frameLen.Store(int64(n))
	f.bytesIn.Add(int64(got))
	if _, err := io.ReadFull(arriving{f}, h[got:]); err != nil {
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
		f.ponged()
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
	frame := b.Bytes()
	v, err := f.asked.inspect(frame)
	if v == drop {
		return err
	}
	if f.rbuf = frame; v == passAnswered {
		f.rbuf = append(answerBefore(frame), frame...)
	}
	if binary.BigEndian.Uint32(frame[16:]) != typeMessage {
		f.lived()
	}
	if binary.BigEndian.Uint32(frame[24:]) == statusOK {
		switch binary.BigEndian.Uint32(frame[12:]) {
		case procAuthList:
			ways := bytes.Clone(frame[frameHeader:])
			f.auth.Store(&ways)
		case procOpen:
			f.hold = true
		}
	}
	return nil
}

// wantsSASL reports whether the daemon named SASL as a way of authentication, and
// none that go-libvirt knows.
func (f *frameConn) wantsSASL() bool {
	ways := f.auth.Load()
	if ways == nil || len(*ways) <= 4 {
		return false
	}
	for w := (*ways)[4:]; len(w) >= 4; w = w[4:] {
		if binary.BigEndian.Uint32(w) != authSASL {
			return false
		}
	}
	return true
}
