//go:build lab

package e2e

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// TestProxyStops has one proxy refuse and another hang, on different hosts. The
// time runs from the moment when the fault is felt here.
func TestProxyStops(t *testing.T) {
	e := serve(t, configure(t, settings{}))
	e.ready(all()...)
	addrs := trueAddresses(t, []string{"nat-1", "lan-1"})
	refusing, hanging := addrs["nat-1"].String()+":3128", addrs["lan-1"].String()+":3128"
	mend(t, "h1", "proxy", "nat-1", "ok")
	mend(t, "h2", "proxy", "lan-1", "ok")

	start := time.Now()
	var refused, hung time.Time
	together(
		func() { ctl(t, "h1", "proxy", "nat-1", "off") },
		func() { refused = felt(t, func() bool { return !dialable(refusing) }) },
		func() { ctl(t, "h2", "proxy", "lan-1", "hang") },
		func() { hung = felt(t, func() bool { return !serves(hanging) }) },
	)
	e.await(refused, 8*time.Second, "refused: demoted", All(State("nat-1", "demoted"), OutOfRotation("nat-1"), Reason("nat-1", "refused")))
	e.await(hung, 14*time.Second, "hanging: demoted", All(State("lan-1", "demoted"), OutOfRotation("lan-1"), Reason("lan-1", "time")))
	e.ever(start, "an event with evidence", HasEvent("nat-1", "demoted", start))
	e.ever(start, "an event with evidence", HasEvent("lan-1", "demoted", start))
	others := []string{"nat-2", "nat-3", "lan-2", "lan-3"}
	e.always(start, "the others", All(Ready(others...), InRotation(others...)))

	together(
		func() { ctl(t, "h1", "proxy", "nat-1", "ok") },
		func() { ctl(t, "h2", "proxy", "lan-1", "ok") },
	)
	// rise is 2, and one that is down is checked every 5 s
	e.await(time.Now(), 15*time.Second, "back after rise", All(Ready(all()...), InRotation(all()...)))
}

// felt waits for a fault to show and returns when it did.
func felt(t *testing.T, gone func() bool) time.Time {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); {
		at := time.Now()
		if gone() {
			return at
		}
		pause(t, 50*time.Millisecond)
	}
	t.Error("the fault did not show within 15 s")
	return time.Now()
}

// dialable tells whether something listens.
func dialable(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	_ = c.Close() // it was only tried
	return true
}

// serves tells whether a request through the proxy is answered at once.
func serves(proxyAddr string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxyAddr}), DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return false
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // nothing of it is wanted
	return resp.StatusCode == http.StatusOK
}
