package simhost

import (
	"context"
	"net"
)

// daemon is one run of the daemon's process, from Start to Kill. Its fields
// but workers are guarded by the host's mutex.
type daemon struct {
	h       *Host
	ctx     context.Context // ends with the process
	cancel  context.CancelFunc
	workers *workers
	conns   map[*conn]struct{}
	nextCB  int32 // the next event callback's ID
}

func (h *Host) newDaemon() *daemon {
	ctx, cancel := context.WithCancel(h.ctx)
	return &daemon{
		h: h, ctx: ctx, cancel: cancel,
		workers: newWorkers(h.opts.Workers, h.opts.PrioWorkers),
		conns:   map[*conn]struct{}{},
	}
}

// serve starts a connection. The caller holds h.mu.
func (d *daemon) serve(c net.Conn) {
	s := newConn(d, c)
	d.conns[s] = struct{}{}
	d.h.wg.Go(s.readLoop)
	d.h.wg.Go(s.writeLoop)
}

func (d *daemon) connCount() int { return len(d.conns) }

// stop ends the process: every connection breaks, every call in it is lost.
func (d *daemon) stop() {
	d.cancel()
	d.h.mu.Lock()
	conns := make([]*conn, 0, len(d.conns))
	for c := range d.conns {
		conns = append(conns, c)
	}
	d.h.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
}

// forget takes a connection that has ended off the list.
func (d *daemon) forget(c *conn) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	delete(d.conns, c)
	for serial := range c.streams {
		c.endStream(serial)
	}
}
