package simhost

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
)

// unixListener serves the daemon on a unix socket. While the daemon is killed
// the socket's file stays and refuses connections, as a dead daemon's does.
type unixListener struct {
	h    *Host
	path string

	mu     sync.Mutex
	l      *net.UnixListener // nil while the daemon is killed
	closed bool
}

// ListenUnix serves the daemon on a unix socket at path, which must not exist,
// until the closer or the host is closed; then the file is removed.
func (h *Host) ListenUnix(path string) (io.Closer, error) {
	u := &unixListener{h: h, path: path}
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("simulated host %s: listen on %s: %w", h.opts.Name, path, os.ErrExist)
	}
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.listeners[u] = struct{}{}
	}
	h.mu.Unlock()
	if closed {
		return nil, fmt.Errorf("simulated host %s: listen on %s: %w", h.opts.Name, path, net.ErrClosed)
	}
	if err := u.up(); err != nil {
		return nil, errors.Join(fmt.Errorf("simulated host %s: %w", h.opts.Name, err), u.Close())
	}
	return u, nil
}

// listenerList returns the listeners. The caller holds h.mu.
func (h *Host) listenerList() []*unixListener {
	out := make([]*unixListener, 0, len(h.listeners))
	for l := range h.listeners {
		out = append(out, l)
	}
	return out
}

func (u *unixListener) up() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.l != nil {
		return nil
	}
	if err := os.Remove(u.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("take the old socket away: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: u.path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	l.SetUnlinkOnClose(false)
	u.l = l
	u.h.wg.Go(func() { u.accept(l) })
	return nil
}

func (u *unixListener) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // closed; nothing else ends a unix listener
		}
		if !u.h.accept(c) {
			_ = c.Close() // refused
		}
	}
}

// down stops listening and leaves the file.
func (u *unixListener) down() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.l != nil {
		_ = u.l.Close() // a listener that is open closes
		u.l = nil
	}
}

// Close stops listening and removes the file.
func (u *unixListener) Close() error {
	u.down()
	u.mu.Lock()
	was := u.closed
	u.closed = true
	u.mu.Unlock()
	u.h.mu.Lock()
	delete(u.h.listeners, u)
	u.h.mu.Unlock()
	if was {
		return nil
	}
	if err := os.Remove(u.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove socket: %w", err)
	}
	return nil
}

// A LoopbackProxy is a proxy's listener on a real socket.
type LoopbackProxy struct {
	Domain  *Domain
	Address string // 127.0.0.1:port
}

// ListenProxies opens a TCP listener on 127.0.0.1 for the proxy of every domain
// there is now, until the closer or the host is closed. What comes in is served
// like a connection of DialProxy while the guest's proxy listens, and closed at
// once while it would be refused or not reached: the kernel accepts it all.
func (h *Host) ListenProxies() ([]LoopbackProxy, io.Closer, error) {
	set := &loopback{h: h}
	var out []LoopbackProxy
	for _, d := range h.Domains() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("simulated host %s: proxy listener: %w", h.opts.Name, err), set.Close())
		}
		set.ls = append(set.ls, l)
		out = append(out, LoopbackProxy{Domain: d, Address: l.Addr().String()})
		h.wg.Go(func() { set.accept(l, d) })
	}
	// The host's end closes the listeners too.
	h.wg.Go(func() {
		<-h.ctx.Done()
		_ = set.Close() // closing twice is harmless
	})
	return slices.Clip(out), set, nil
}

type loopback struct {
	h    *Host
	once sync.Once
	ls   []net.Listener
}

func (s *loopback) accept(l net.Listener, d *Domain) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.h.mu.Lock()
		up := d.netRunning() && d.listens(d.spec.Port) != reachRefused
		s.h.mu.Unlock()
		if !up || !d.servePipe(c) {
			_ = c.Close() // refused
		}
	}
}

// Close stops listening; open connections go on.
func (s *loopback) Close() error {
	var err error
	s.once.Do(func() {
		for _, l := range s.ls {
			if e := l.Close(); e != nil && err == nil {
				err = fmt.Errorf("close proxy listener: %w", e)
			}
		}
	})
	return err
}
