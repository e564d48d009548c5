package simhost

import (
	"bufio"
	"net"
	"sync"
	"sync/atomic"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// conn is one client's connection to a daemon. One goroutine reads frames, one
// writes, and each call runs on its own.
//
// The daemon takes MaxRequests calls of a client at a time. While so many run,
// nothing further is read from the connection, keepalive pings included; this is
// what freezes a real link with five stuck calls.
type conn struct {
	d    *daemon
	net  net.Conn
	gone chan struct{} // closed when the connection has ended
	slot chan struct{} // one token per call that is taken and not answered

	heard atomic.Int64 // when the last frame came, in nanoseconds

	mu     sync.Mutex
	cond   *sync.Cond
	queue  []outgoing
	closed bool

	// Guarded by the host's mutex.
	authed  bool // has proved who it is
	opened  bool
	streams map[uint32]*upload // by the serial of the call that opened it
	events  map[int32]registration
	pinged  bool // the daemon sends keepalive pings
}

// outgoing is something to be written, and what to do when that has happened.
type outgoing struct {
	data []byte
	done func()
	cut  bool // close the connection after it
}

// registration is one event callback that the client asked for.
type registration struct {
	event libvirt.DomainEventID
	dom   *[16]byte // nil means every domain
}

func newConn(d *daemon, c net.Conn) *conn {
	s := &conn{
		d: d, net: c, gone: make(chan struct{}),
		slot: make(chan struct{}, d.h.opts.MaxRequests), events: map[int32]registration{}, streams: map[uint32]*upload{},
	}
	s.cond = sync.NewCond(&s.mu)
	return s
}

// close ends the connection from this side; it may be called more than once.
func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	close(c.gone)
	c.queue = nil
	c.cond.Broadcast()
	_ = c.net.Close() // the client may have closed it already
}

// readLoop takes frames until the connection ends.
func (c *conn) readLoop() {
	defer c.d.forget(c)
	defer c.close()
	r := bufio.NewReader(c.net)
	for {
		select {
		case c.slot <- struct{}{}:
		case <-c.gone:
			return
		}
		h, body, ok := c.nextCall(r)
		if !ok {
			return
		}
		c.d.h.wg.Go(func() { c.run(h, body) })
	}
}

// nextCall reads up to the next call. Pings are answered here, by the event
// loop of a real daemon, and take no slot.
func (c *conn) nextCall(r *bufio.Reader) (header, []byte, bool) {
	for {
		if c.d.h.frozen.pass(c.d.ctx) != nil {
			return header{}, nil, false
		}
		h, body, err := readFrame(r)
		if err != nil {
			return header{}, nil, false
		}
		if c.d.h.frozen.pass(c.d.ctx) != nil {
			return header{}, nil, false
		}
		c.heard.Store(time.Now().UnixNano())
		switch {
		case h.prog == progKeepalive && h.proc == keepalivePing:
			c.d.h.countPing()
			c.send(outgoing{data: frame(header{
				prog: progKeepalive, vers: 1, proc: keepalivePong, typ: typeMessage,
			}, nil)})
		case h.prog == progKeepalive:
			// A PONG that nobody waits for, or an unknown one: ignored.
		case h.typ == typeCall:
			return h, body, true
		case h.typ == typeStream:
			c.stream(h, body)
		default:
			return header{}, nil, false // a client sends nothing else
		}
	}
}

// send queues something to be written. It does not wait.
func (c *conn) send(o outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		if o.done != nil {
			o.done()
		}
		return
	}
	c.queue = append(c.queue, o)
	c.cond.Signal()
}

// writeLoop writes what is queued, in order, until the connection ends. A
// frozen daemon writes nothing.
func (c *conn) writeLoop() {
	defer c.close()
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.closed {
			c.cond.Wait()
		}
		if c.closed {
			c.mu.Unlock()
			return
		}
		o := c.queue[0]
		c.queue = c.queue[1:]
		c.mu.Unlock()
		if c.d.h.frozen.pass(c.d.ctx) != nil {
			return
		}
		_, err := c.net.Write(o.data)
		if o.done != nil {
			o.done()
		}
		if err != nil || o.cut {
			return
		}
	}
}

func (h *Host) countPing() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pings++
}
