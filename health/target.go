package health

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"virdeck/model"
)

// Target is what a probe asks for.
type Target struct {
	URL    *url.URL // http or https, with a host
	Status []int    // expected statuses; empty means 200
	Body   string   // expected substring of the body; empty: any
	EchoIP bool     // the body is the address from which the target was asked
}

// ParseTarget reads a target's URL.
func ParseTarget(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, fmt.Errorf("target %q: allowed: http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH", raw)
	}
	return u, nil
}

// hostPort returns what to dial.
func (t Target) hostPort() string {
	if t.URL.Port() != "" {
		return t.URL.Host
	}
	port := "80"
	if t.URL.Scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(t.URL.Hostname(), port)
}

// judgeAnswer compares an answer with what is expected. The reason is empty if
// it is good.
func (t Target) judgeAnswer(status int, body []byte) (exit netip.Addr, reason string) {
	want := t.Status
	if len(want) == 0 {
		want = []int{200}
	}
	if !slices.Contains(want, status) {
		return exit, fmt.Sprintf("status %d, expected %s", status, joinInts(want))
	}
	if t.Body != "" && !strings.Contains(string(body), t.Body) {
		return exit, "the body lacks the expected text"
	}
	if t.EchoIP {
		a, err := netip.ParseAddr(strings.TrimSpace(string(body)))
		if err != nil {
			return exit, "the body is not an address"
		}
		return a.Unmap(), ""
	}
	return exit, ""
}

func joinInts(v []int) string {
	s := make([]string, len(v))
	for i, n := range v {
		s[i] = fmt.Sprint(n)
	}
	return strings.Join(s, " or ")
}

// DialFunc makes a TCP connection. It obeys ctx.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Subject is one proxy at one address: what the Engine probes.
type Subject struct {
	Proxy   model.ProxyName
	Host    model.HostName
	Address netip.Addr
	Port    uint16
	Kind    model.ProbeKind
	Creds   model.Credentials
	// Restored: the proxy was in rotation before a restart; it keeps its place
	// until its own probes say otherwise.
	Restored bool
}

// Key identifies a subject: counters belong to a proxy and its address.
type Key struct {
	Proxy   model.ProxyName
	Address netip.Addr
}

// Key returns the subject's key.
func (s Subject) Key() Key { return Key{s.Proxy, s.Address} }

func (s Subject) hostPort() string {
	return netip.AddrPortFrom(s.Address, s.Port).String()
}
