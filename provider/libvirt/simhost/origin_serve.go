package simhost

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// serve answers requests that come without a proxy.
func (o *Origin) serve(c net.Conn) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	ended := make(chan struct{})
	o.wg.Go(func() { // whoever is first ends the connection
		select {
		case <-o.done:
		case <-ended:
		}
		_ = c.Close() // the client may have gone first
	})
	o.wg.Go(func() {
		defer close(ended)
		r := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(r)
			if err != nil || !o.answers() {
				return
			}
			status, body := o.answer(req, ControlAddr())
			if writeResponse(c, status, nil, body) != nil || req.Close {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body) // a fault shows at the next read
		}
	})
	return true
}

// answers waits while packets vanish, and says whether the origin is there then.
func (o *Origin) answers() bool {
	for {
		o.mu.Lock()
		mode, changed, closed := o.mode, o.changed, o.closed
		o.mu.Unlock()
		if closed || mode == OriginDown {
			return false
		}
		if mode != OriginHang {
			return true
		}
		select {
		case <-changed:
		case <-o.done:
		}
	}
}

// answer is what the origin says to a request that came from an address.
func (o *Origin) answer(req *http.Request, from netip.Addr) (status int, body string) {
	o.mu.Lock()
	o.served++
	mode := o.mode
	o.mu.Unlock()
	if mode == OriginError {
		return http.StatusServiceUnavailable, "not now\n"
	}
	switch path := req.URL.Path; {
	case path == "/ip":
		return http.StatusOK, from.String() + "\n"
	case path == "/" || path == "":
		return http.StatusOK, "this is " + o.name + "\n"
	case strings.HasPrefix(path, "/status/"):
		n, err := strconv.Atoi(strings.TrimPrefix(path, "/status/"))
		if err != nil || n < 200 || n > 599 {
			return http.StatusBadRequest, "a status from 200 to 599\n"
		}
		return n, http.StatusText(n) + "\n"
	}
	return http.StatusNotFound, "not found\n"
}

// writeResponse writes a whole HTTP/1.1 response in one piece.
func writeResponse(w io.Writer, status int, head http.Header, body string) error {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status)) // a builder never fails
	if head.Get("Content-Type") == "" {
		b.WriteString("Content-Type: text/plain\r\n")
	}
	_ = head.Write(&b) // as above
	if status == http.StatusNoContent || status == http.StatusNotModified {
		b.WriteString("\r\n")
	} else {
		_, _ = fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
