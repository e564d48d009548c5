package simhost

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// errEnd ends a proxy's connection; it is not shown to anybody.
var errEnd = errors.New("connection is to be closed")

// servePipe starts serving a connection to the guest's proxy.
func (d *Domain) servePipe(c net.Conn) bool {
	h := d.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	if d.conns == nil {
		d.conns = map[net.Conn]struct{}{}
	}
	d.conns[c] = struct{}{}
	s := &session{d: d, run: d.started, conn: c, r: bufio.NewReader(c)}
	h.wg.Go(func() {
		s.serve()
		_ = c.Close() // the client may be gone already
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(d.conns, c)
	})
	return true
}

// takeConns returns the open connections and forgets them.
func (d *Domain) takeConns() []net.Conn {
	out := make([]net.Conn, 0, len(d.conns))
	for c := range d.conns {
		out = append(out, c)
	}
	d.conns = nil
	return out
}

// breakConns resets all open connections, as the end of the proxy's process does.
func (d *Domain) breakConns() {
	for _, c := range d.takeConns() {
		if p, ok := c.(*pipeConn); ok {
			p.reset()
			continue
		}
		_ = c.Close() // going away
	}
}

// session is one client's connection to a guest's proxy.
type session struct {
	d    *Domain
	run  time.Time // the start of the run of the domain that it belongs to
	conn net.Conn
	r    *bufio.Reader
}

// serve answers requests until the connection or the proxy ends.
func (s *session) serve() {
	for {
		p, err := s.ready(false)
		if err != nil {
			return
		}
		if p.Mode == ProxyWrongBanner {
			s.banner(p)
			return
		}
		req, err := http.ReadRequest(s.r)
		if err != nil {
			if !isEnd(err) {
				_ = s.say(http.StatusBadRequest, nil, "not a request\n") // it ends in any case
			}
			return
		}
		if p, err = s.ready(false); err != nil {
			return
		}
		if err := s.wait(p); err != nil {
			return
		}
		if err := s.answer(p, req); err != nil || req.Close {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body) // what the request still had; a fault shows at the next read
	}
}

// ready waits while the guest does not answer (hung proxy, lost packets, paused
// or ended guest) and returns how the proxy behaves then. With silent it waits in
// ProxySilentTunnel too.
func (s *session) ready(silent bool) (Proxy, error) {
	h := s.d.h
	for {
		h.mu.Lock()
		p, changed := s.d.proxy, s.d.change()
		running, same := s.d.state == libvirt.DomainRunning, s.d.started.Equal(s.run)
		up := s.d.guest.proxyUp
		h.mu.Unlock()
		switch {
		case running && !same, running && !up, p.Mode == ProxyOff:
			return p, errEnd // another system runs there, which knows nothing of the connection
		case running && p.Mode != ProxyHang && p.Mode != ProxyDrop && (!silent || p.Mode != ProxySilentTunnel):
			return p, nil
		}
		if err := s.idle(changed); err != nil {
			return p, err
		}
	}
}

// idle waits for a change, and ends early when the client goes or the host does.
// The client's going is seen by a read ahead, which a deadline takes back.
func (s *session) idle(changed <-chan struct{}) error {
	end := s.d.h.ctx.Done()
	peeked := make(chan struct{})
	var gone error
	s.d.h.wg.Go(func() {
		_, gone = s.r.Peek(1)
		close(peeked)
	})
	var err error
	select {
	case <-changed:
	case <-end:
		err = errEnd
	case <-peeked:
		if gone != nil {
			return gone
		}
		// There is data: the client's going will show when it is read.
		select {
		case <-changed:
			return nil
		case <-end:
			return errEnd
		}
	}
	_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // wakes the read; a closed conn is awake
	<-peeked
	_ = s.conn.SetReadDeadline(time.Time{})
	return err
}

// longestDelay is as good as never, and far from where sums overflow.
const longestDelay = 24 * 365 * time.Hour

// wait lets the proxy's delay pass.
func (s *session) wait(p Proxy) error {
	delay := min(p.Delay, longestDelay)
	if p.Jitter = min(p.Jitter, longestDelay); p.Jitter > 0 {
		s.d.h.mu.Lock()
		delay += time.Duration(s.d.h.rng.Uint64N(uint64(p.Jitter) + 1))
		s.d.h.mu.Unlock()
	}
	if delay <= 0 {
		return nil
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-s.d.h.ctx.Done():
		return errEnd
	}
}

func (s *session) banner(p Proxy) {
	text := p.Banner
	if text == "" {
		text = "SSH-2.0-OpenSSH_9.2\r\n"
	}
	if _, err := io.WriteString(s.conn, text); err == nil {
		_, _ = io.Copy(io.Discard, s.r) // until the client or the host ends it
	}
}

// answer serves one request as the proxy's mode wants.
func (s *session) answer(p Proxy, req *http.Request) error {
	switch p.Mode {
	case ProxyPlainHTTP:
		head := http.Header{"Content-Type": {"text/html"}}
		return s.say(http.StatusOK, head, "<!doctype html>\n<title>It works!</title>\n<h1>It works!</h1>\n")
	case ProxyOK, ProxyBadGateway, ProxySilentTunnel:
	case ProxyOff, ProxyHang, ProxyDrop, ProxyWrongBanner:
		return errEnd // changed between two looks
	}
	if p.User != "" && req.Header.Get("Proxy-Authorization") != basic(p.User, p.Password) {
		return s.say(http.StatusProxyAuthRequired, http.Header{"Proxy-Authenticate": {`Basic realm="proxy"`}}, "credentials wanted\n")
	}
	if p.Mode == ProxyBadGateway {
		return s.say(http.StatusBadGateway, nil, "no way out\n")
	}
	if req.Method == http.MethodConnect {
		return s.connect(p, req)
	}
	if !req.URL.IsAbs() {
		return s.say(http.StatusBadRequest, nil, "this is a proxy\n")
	}
	if p.Mode == ProxySilentTunnel {
		_, err := s.ready(true)
		return err
	}
	if status, why := s.upstream(req.URL.Hostname()); status != http.StatusOK {
		return s.say(status, nil, why)
	}
	status, body := s.d.h.origin.answer(req, s.d.exit)
	return s.say(status, nil, body)
}

// connect opens the tunnel and serves the origin in it.
func (s *session) connect(p Proxy, req *http.Request) error {
	host, _, err := net.SplitHostPort(req.Host)
	if err != nil {
		return s.say(http.StatusBadRequest, nil, "not a host and port\n")
	}
	if p.Mode != ProxySilentTunnel {
		if status, why := s.upstream(host); status != http.StatusOK {
			return s.say(status, nil, why)
		}
	}
	if _, err := io.WriteString(s.conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return err
	}
	for {
		inner, err := http.ReadRequest(s.r)
		if err != nil {
			return err
		}
		if p, err = s.ready(true); err != nil {
			return err
		}
		if err := s.wait(p); err != nil {
			return err
		}
		status, body := s.d.h.origin.answer(inner, s.d.exit)
		if err := s.say(status, nil, body); err != nil {
			return err
		}
		if inner.Close {
			return errEnd
		}
		_, _ = io.Copy(io.Discard, inner.Body) // as in serve
	}
}

// upstream opens the proxy's way to a host; what is not 200 is the answer.
func (s *session) upstream(host string) (status int, why string) {
	o := s.d.h.origin
	if host != o.name {
		return http.StatusBadGateway, "no such host: nothing but " + o.name + " can be reached from here\n"
	}
	ctx, cancel := context.WithTimeout(s.d.h.ctx, 30*time.Second)
	defer cancel()
	switch err := o.reach(ctx); {
	case err == nil:
		return http.StatusOK, ""
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "no answer from the origin\n"
	default:
		return http.StatusBadGateway, "the origin refuses connections\n"
	}
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func (s *session) say(status int, head http.Header, body string) error {
	return writeResponse(s.conn, status, head, body)
}

// isEnd says whether a read failed because the connection ended.
func isEnd(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op)
}
