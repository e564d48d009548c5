package health

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"virdeck/model"
)

// ProbeFunc sends one real request for a target through a subject and says what
// became of it. Its deadline is ctx's and covers everything: dial, request,
// headers and body. It fills Passed, Culprit, SelfSeen, Reason, Detail, Status
// and ExitIP; the caller adds times and names.
type ProbeFunc func(ctx context.Context, dial DialFunc, s Subject, t Target) model.ProbeResult

// probeFor returns the probe of a kind. A target behind TLS can be asked
// through a tunnel alone, whatever the kind.
func probeFor(k model.ProbeKind, t Target) ProbeFunc {
	if t.URL.Scheme == "https" {
		return probeConnect
	}
	switch k {
	case model.ProbeHTTP:
		return probeHTTP
	case model.ProbeConnect:
		return probeConnect
	}
	return probeHTTP
}

// bodyMax is how much of a body is read: enough for an address or a marker.
const bodyMax = 64 << 10

// exchange is one connection with everything that happens on it under one
// context: when that ends, the connection is closed, which ends every step.
type exchange struct {
	net.Conn
	r    *bufio.Reader
	stop func() bool
}

// openHop dials the proxy.
func openHop(ctx context.Context, dial DialFunc, s Subject) (*exchange, model.ProbeResult) {
	c, err := dial(ctx, "tcp", s.hostPort())
	if err != nil {
		return nil, dialFault(ctx, err)
	}
	return newExchange(ctx, c), model.ProbeResult{}
}

func newExchange(ctx context.Context, c net.Conn) *exchange {
	return &exchange{Conn: c, r: bufio.NewReader(c), stop: context.AfterFunc(ctx, func() { _ = c.Close() })}
}

// close ends the exchange; nothing is left to learn from an error.
func (e *exchange) close() {
	e.stop()
	_ = e.Close()
}

func fault(c model.Culprit, reason string, err error) model.ProbeResult {
	r := model.ProbeResult{Culprit: c, Reason: reason}
	if err != nil {
		r.Detail = err.Error()
	}
	return r
}

// dialFault says whose fault a failed dial of the hop is. What this machine
// lacks is ours; everything else is the hop's.
func dialFault(ctx context.Context, err error) model.ProbeResult {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fault(model.CulpritUs, "probe cancelled", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		r := fault(model.CulpritHop, "refused", err)
		r.SelfSeen = true
		return r
	case errors.Is(err, syscall.EHOSTUNREACH):
		return fault(model.CulpritHop, "no route to host", err)
	case errors.Is(err, syscall.ENETUNREACH):
		return fault(model.CulpritUs, "no route from here", err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS), errors.Is(err, syscall.ENOMEM):
		return fault(model.CulpritUs, "this machine is out of descriptors or memory", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fault(model.CulpritUs, "no free local port", err)
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return fault(model.CulpritUs, "this machine's firewall forbids it", err)
	case ctx.Err() != nil, errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return fault(model.CulpritHop, "no answer to connect", err)
	}
	return fault(model.CulpritHop, "connect failed", err)
}

// replyFault says whose fault it is that no whole reply came.
func replyFault(ctx context.Context, stage string, err error) model.ProbeResult {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return fault(model.CulpritUs, "probe cancelled", err)
	case ctx.Err() != nil:
		return fault(model.CulpritWayOut, "timeout after "+stage, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fault(model.CulpritWayOut, "closed after "+stage, err)
	}
	r := fault(model.CulpritAnswer, "not an HTTP proxy", err)
	r.SelfSeen = true
	return r
}

// request builds the request for a target.
func request(ctx context.Context, t Target) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "virdeck-probe")
	req.Header.Set("Accept", "*/*")
	req.Header.Set("Cache-Control", "no-cache")
	req.Close = true
	return req, nil
}

func authorization(c model.Credentials) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.User+":"+c.Password))
}

// statusFault recognises the answers that a proxy gives in its own name.
func statusFault(resp *http.Response) (model.ProbeResult, bool) {
	r := model.ProbeResult{Status: resp.StatusCode}
	switch resp.StatusCode {
	case http.StatusProxyAuthRequired:
		r.Culprit, r.SelfSeen, r.Reason = model.CulpritCredentials, true, "407 credentials"
		r.Detail = resp.Header.Get("Proxy-Authenticate")
		return r, true
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		r.Culprit, r.Reason = model.CulpritWayOut, fmt.Sprintf("%d from the proxy", resp.StatusCode)
		return r, true
	}
	return r, false
}

// finish reads the target's answer and judges it.
func finish(ctx context.Context, resp *http.Response, t Target) model.ProbeResult {
	body, err := io.ReadAll(io.LimitReader(resp.Body, bodyMax))
	_ = resp.Body.Close() // the connection is closed with the exchange
	if err != nil {
		if ctx.Err() != nil && !errors.Is(ctx.Err(), context.Canceled) {
			return fault(model.CulpritSlow, "the body did not end in time", err)
		}
		return replyFault(ctx, "the headers", err)
	}
	exit, reason := t.judgeAnswer(resp.StatusCode, body)
	r := model.ProbeResult{Status: resp.StatusCode, ExitIP: exit}
	if reason != "" {
		r.Culprit, r.Reason = model.CulpritAnswer, reason
		r.Detail = strings.TrimSpace(string(body[:min(len(body), 120)]))
		return r
	}
	r.Passed = true
	return r
}

// probeDirect asks a target without a proxy: the control.
func probeDirect(ctx context.Context, dial DialFunc, t Target) model.ProbeResult {
	c, err := dial(ctx, "tcp", t.hostPort())
	if err != nil {
		return fault(model.CulpritTarget, "connect failed", err)
	}
	e := newExchange(ctx, c)
	defer e.close()
	r := askThrough(ctx, e, t)
	if !r.Passed {
		r.Culprit = model.CulpritTarget
	}
	return r
}

// askThrough sends the request over a connection that leads to the target, with
// TLS if the target wants it.
func askThrough(ctx context.Context, e *exchange, t Target) model.ProbeResult {
	if t.URL.Scheme == "https" {
		tc := tls.Client(e.Conn, &tls.Config{ServerName: t.URL.Hostname(), MinVersion: tls.VersionTLS12})
		if err := tc.HandshakeContext(ctx); err != nil {
			r := replyFault(ctx, "CONNECT", err)
			r.SelfSeen = false // the target's certificate is not the proxy's word
			if r.Culprit == model.CulpritAnswer {
				r.Reason = "TLS with the target failed"
			}
			return r
		}
		e = &exchange{Conn: tc, r: bufio.NewReader(tc), stop: e.stop}
	}
	req, err := request(ctx, t)
	if err != nil {
		return fault(model.CulpritUs, "request", err)
	}
	if err := req.Write(e); err != nil {
		return replyFault(ctx, "the request", err)
	}
	resp, err := http.ReadResponse(e.r, req)
	if err != nil {
		r := replyFault(ctx, "the request", err)
		r.SelfSeen = false
		return r
	}
	return finish(ctx, resp, t)
}

// elapsed stamps a result.
func elapsed(r model.ProbeResult, s Subject, t Target, start time.Time) model.ProbeResult {
	r.Address, r.Target, r.Started, r.Took = s.Address, t.URL.String(), start, time.Since(start)
	if r.Passed {
		r.Reason = "passed"
	}
	return r
}
