package simhost

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

// client is a connection to a proxy with a limit of 10 s on everything.
type client struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dialProxy(t *testing.T, d *Domain) *client {
	t.Helper()
	c, err := d.h.DialProxy(t.Context(), "tcp", d.ProxyAddress())
	if err != nil {
		t.Fatalf("dial %s: %v", d.ProxyAddress(), err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the proxy may have ended it
	return &client{t: t, conn: c, r: bufio.NewReader(c)}
}

// ask sends text and reads one response: status and body, or how it failed.
func (c *client) ask(text string) string {
	c.t.Helper()
	if err := c.conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err.Error()
	}
	if _, err := io.WriteString(c.conn, text); err != nil {
		return end(err)
	}
	req := &http.Request{Method: http.MethodGet}
	if strings.HasPrefix(text, "CONNECT") {
		req.Method = http.MethodConnect
	}
	resp, err := http.ReadResponse(c.r, req)
	if err != nil {
		return end(err)
	}
	if req.Method == http.MethodConnect && resp.StatusCode == http.StatusOK {
		return "200"
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return end(err)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, body))
}

// end names how a connection failed.
func end(err error) string {
	var n net.Error
	switch {
	case errors.As(err, &n) && n.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	case errors.Is(err, syscall.EPIPE):
		return "broken pipe"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "end"
	}
	return err.Error()
}

const (
	forward = "GET http://origin.sim/ip HTTP/1.1\r\nHost: origin.sim\r\n\r\n"
	tunnel  = "CONNECT origin.sim:80 HTTP/1.1\r\nHost: origin.sim:80\r\n\r\n"
	inside  = "GET /ip HTTP/1.1\r\nHost: origin.sim\r\n\r\n"
)

func with(head, text string) string {
	return strings.Replace(text, "\r\n\r\n", "\r\n"+head+"\r\n\r\n", 1)
}

func auth(user, password string) string {
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func TestProxyModes(t *testing.T) {
	exit := netip.MustParseAddr("198.18.7.7")
	page := "200 <!doctype html>\n<title>It works!</title>\n<h1>It works!</h1>"
	for _, c := range []struct {
		name    string
		proxy   Proxy
		send    []string
		want    []string
		elapsed time.Duration
	}{
		{"forward", Proxy{}, []string{forward, forward}, []string{"200 198.18.7.7", "200 198.18.7.7"}, 0},
		{"connect", Proxy{}, []string{tunnel, inside, inside}, []string{"200", "200 198.18.7.7", "200 198.18.7.7"}, 0},
		{"status", Proxy{}, []string{strings.Replace(forward, "/ip", "/status/418", 1)}, []string{"418 I'm a teapot"}, 0},
		{"no content", Proxy{}, []string{strings.Replace(forward, "/ip", "/status/204", 1), forward}, []string{"204", "200 198.18.7.7"}, 0},
		{"no such page", Proxy{}, []string{strings.Replace(forward, "/ip", "/x", 1)}, []string{"404 not found"}, 0},
		{"another host", Proxy{}, []string{strings.ReplaceAll(forward, "origin.sim", "example.com")}, []string{"502 no such host: nothing but origin.sim can be reached from here"}, 0},
		{"connect elsewhere", Proxy{}, []string{strings.ReplaceAll(tunnel, "origin.sim", "example.com"), forward}, []string{"502 no such host: nothing but origin.sim can be reached from here", "200 198.18.7.7"}, 0},
		{"not for a proxy", Proxy{}, []string{inside}, []string{"400 this is a proxy"}, 0},
		{"nonsense", Proxy{}, []string{"\x05\x01\x00\r\n\r\n", forward}, []string{"400 not a request", "broken pipe"}, 0},
		{"close", Proxy{}, []string{with("Connection: close", forward), forward}, []string{"200 198.18.7.7", "broken pipe"}, 0},
		{"no credentials", Proxy{User: "u", Password: "p"}, []string{forward, tunnel}, []string{"407 credentials wanted", "407 credentials wanted"}, 0},
		{"wrong credentials", Proxy{User: "u", Password: "p"}, []string{with(auth("u", "x"), forward)}, []string{"407 credentials wanted"}, 0},
		{"credentials", Proxy{User: "u", Password: "p"}, []string{with(auth("u", "p"), forward), with(auth("u", "p"), tunnel), inside}, []string{"200 198.18.7.7", "200", "200 198.18.7.7"}, 0},
		{"bad gateway", Proxy{Mode: ProxyBadGateway}, []string{forward, tunnel}, []string{"502 no way out", "502 no way out"}, 0},
		{"hang", Proxy{Mode: ProxyHang}, []string{forward}, []string{"timeout"}, 10 * time.Second},
		{"silent tunnel", Proxy{Mode: ProxySilentTunnel}, []string{tunnel, inside}, []string{"200", "timeout"}, 10 * time.Second},
		{"silent forward", Proxy{Mode: ProxySilentTunnel}, []string{forward}, []string{"timeout"}, 10 * time.Second},
		{"slow", Proxy{Delay: 3 * time.Second}, []string{tunnel, inside}, []string{"200", "200 198.18.7.7"}, 6 * time.Second},
		{"too slow", Proxy{Delay: 11 * time.Second}, []string{forward}, []string{"timeout"}, 10 * time.Second},
		{"web server", Proxy{Mode: ProxyPlainHTTP}, []string{forward, inside}, []string{page, page}, 0},
		{"banner", Proxy{Mode: ProxyWrongBanner}, []string{forward}, []string{`malformed HTTP response "SSH-2.0-OpenSSH_9.2"`}, 0},
		{"own banner", Proxy{Mode: ProxyWrongBanner, Banner: "220 mail\r\n"}, []string{forward}, []string{`malformed HTTP status code "mail"`}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := newHost(t, Options{})
				d := h.AddDomain(DomainSpec{Name: "d", Running: true, Exit: exit, Proxy: c.proxy})
				p := dialProxy(t, d)
				begin := time.Now()
				for i, text := range c.send {
					if got := p.ask(text); got != c.want[i] {
						t.Errorf("answer %d: %q, want %q", i, got, c.want[i])
					}
				}
				if took := time.Since(begin); took != c.elapsed {
					t.Errorf("took %v, want %v", took, c.elapsed)
				}
			})
		})
	}
}

// What a dial meets, and how long it takes.
func TestDialProxy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		nic := func(a string) []NIC { return []NIC{{Addresses: []netip.Prefix{prefix(a + "/24")}}} }
		h.AddDomain(DomainSpec{Name: "up", Running: true, NICs: nic("192.168.122.11")})
		h.AddDomain(DomainSpec{Name: "off", NICs: nic("192.168.122.12")})
		h.AddDomain(DomainSpec{Name: "paused", Running: true, NICs: nic("192.168.122.13")}).Pause(libvirt.DomainPausedUser)
		h.AddDomain(DomainSpec{Name: "stopped", Running: true, NICs: nic("192.168.122.14"), Proxy: Proxy{Mode: ProxyOff}})
		h.AddDomain(DomainSpec{Name: "drops", Running: true, NICs: nic("192.168.122.15"), Proxy: Proxy{Mode: ProxyDrop}})
		h.AddDomain(DomainSpec{Name: "other", Running: true, NICs: nic("192.168.122.16"), Port: 8080})
		for _, c := range []struct {
			what, address string
			limit         time.Duration // of the caller; zero means none
			want          string
			took          time.Duration
		}{
			{"up", "192.168.122.11:3128", 0, "", 0},
			{"another port", "192.168.122.11:80", 0, "dial tcp 192.168.122.11:80: connection refused", 0},
			{"its own port", "192.168.122.16:8080", 0, "", 0},
			{"off", "192.168.122.12:3128", 0, "dial tcp 192.168.122.12:3128: no route to host", 3 * time.Second},
			{"off, with a limit", "192.168.122.12:3128", 2 * time.Second, "dial tcp 192.168.122.12:3128: context deadline exceeded", 2 * time.Second},
			{"paused", "192.168.122.13:3128", 0, "dial tcp 192.168.122.13:3128: connection timed out", 127 * time.Second},
			{"proxy stopped", "192.168.122.14:3128", 0, "dial tcp 192.168.122.14:3128: connection refused", 0},
			{"packets dropped", "192.168.122.15:3128", 5 * time.Second, "dial tcp 192.168.122.15:3128: context deadline exceeded", 5 * time.Second},
			{"nobody", "10.1.1.1:3128", 0, "dial tcp 10.1.1.1:3128: no route to host", 3 * time.Second},
			{"no address", "nonsense", 0, "dial tcp nonsense: address nonsense: not an address and port", 0},
		} {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if c.limit > 0 {
				ctx, cancel = context.WithTimeout(ctx, c.limit)
			}
			begin := time.Now()
			conn, err := h.DialProxy(ctx, "tcp", c.address)
			cancel()
			got := ""
			if err != nil {
				got = err.Error()
			} else if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); got != c.want || took != c.took {
				t.Errorf("%s: %q after %v, want %q after %v", c.what, got, took, c.want, c.took)
			}
		}
	})
}

// A dial that begins while the guest boots ends when it is up.
func TestDialProxyDuringBoot(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Boot: Boot{Lease: 1500 * time.Millisecond, Proxy: 1600 * time.Millisecond}})
		if err := d.Start(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		p := dialProxy(t, d)
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("took %v, want 2s", took)
		}
		if got := p.ask(forward); got != "200 "+d.Exit().String() {
			t.Errorf("%q", got)
		}
	})
}

// What becomes of open connections when proxy and guest change under them.
func TestOpenProxyConnections(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(d *Domain)
		want   string
	}{
		{"the proxy stops", func(d *Domain) { d.SetProxy(Proxy{Mode: ProxyOff}) }, "broken pipe"},
		{"another service takes over", func(d *Domain) { d.SetProxy(Proxy{Mode: ProxyWrongBanner}) }, "broken pipe"},
		{"the proxy hangs", func(d *Domain) { d.SetProxy(Proxy{Mode: ProxyHang}) }, "timeout"},
		{"the guest pauses", func(d *Domain) { d.Pause(libvirt.DomainPausedUser) }, "timeout"},
		{"the guest crashes", func(d *Domain) { d.Crash() }, "timeout"},
		{"the guest reboots", func(d *Domain) { d.Reboot() }, "broken pipe"},
		{"the password changes", func(d *Domain) { d.SetProxy(Proxy{User: "u", Password: "new"}) }, "407 credentials wanted"},
		{"the daemon dies", func(d *Domain) { d.Host().Kill() }, "200 198.18.0.9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := newHost(t, Options{})
				d := h.AddDomain(DomainSpec{Name: "d", Running: true, Exit: netip.MustParseAddr("198.18.0.9")})
				p := dialProxy(t, d)
				if got := p.ask(forward); got != "200 198.18.0.9" {
					t.Fatalf("before: %q", got)
				}
				synctest.Wait()
				c.change(d)
				synctest.Wait()
				if got := p.ask(forward); got != c.want {
					t.Errorf("after: %q, want %q", got, c.want)
				}
			})
		})
	}
}

// A hung proxy answers what it was asked when it goes on.
func TestHungProxyGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true, Proxy: Proxy{Mode: ProxyHang}})
		time.AfterFunc(7*time.Second, func() { d.SetProxy(Proxy{}) })
		p := dialProxy(t, d)
		begin := time.Now()
		if got := p.ask(forward); got != "200 "+d.Exit().String() || time.Since(begin) != 7*time.Second {
			t.Errorf("%q after %v", got, time.Since(begin))
		}
	})
}

// A client that goes while the proxy hangs leaves nothing behind.
func TestClientLeavesHungProxy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		d := h.AddDomain(DomainSpec{Name: "d", Running: true, Proxy: Proxy{Mode: ProxyHang}})
		p := dialProxy(t, d)
		synctest.Wait()
		if err := p.conn.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		if n := len(d.conns); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// Two guests with one address: the one that took it last answers.
func TestDuplicateAddress(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		same := []NIC{{Addresses: []netip.Prefix{prefix("192.168.122.77/24")}}}
		a := h.AddDomain(DomainSpec{Name: "a", Running: true, NICs: same})
		b := h.AddDomain(DomainSpec{Name: "b", NICs: same})
		if got := dialProxy(t, a).ask(forward); got != "200 "+a.Exit().String() {
			t.Errorf("at first: %q", got)
		}
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := dialProxy(t, a).ask(forward); got != "200 "+b.Exit().String() {
			t.Errorf("with both: %q", got)
		}
		b.Crash()
		if got := dialProxy(t, a).ask(forward); got != "200 "+a.Exit().String() {
			t.Errorf("afterwards: %q", got)
		}
	})
}

func TestOriginModes(t *testing.T) {
	for _, c := range []struct {
		name            string
		mode            OriginMode
		forward, direct string
		took            time.Duration
	}{
		{"ok", OriginOK, "200 198.18.0.9", "200 198.51.100.1", 0},
		{"down", OriginDown, "502 the origin refuses connections", "dial tcp origin.sim:80: connection refused", 0},
		{"error", OriginError, "503 not now", "503 not now", 0},
		{"hang", OriginHang, "timeout", "dial tcp origin.sim:80: context deadline exceeded", 20 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				h := newHost(t, Options{})
				d := h.AddDomain(DomainSpec{Name: "d", Running: true, Exit: netip.MustParseAddr("198.18.0.9")})
				h.Origin().SetMode(c.mode)
				begin := time.Now()
				if got := dialProxy(t, d).ask(forward); got != c.forward {
					t.Errorf("through the proxy: %q, want %q", got, c.forward)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				got := ""
				if conn, err := h.Origin().Dial(ctx, "tcp", "origin.sim:80"); err != nil {
					got = err.Error()
				} else {
					direct := &client{t: t, conn: conn, r: bufio.NewReader(conn)}
					got = direct.ask(inside)
					_ = conn.Close() // read what was wanted
				}
				if got != c.direct {
					t.Errorf("direct: %q, want %q", got, c.direct)
				}
				if took := time.Since(begin); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}

func TestOriginName(t *testing.T) {
	o := NewOrigin("example.test")
	defer func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}()
	if o.URL() != "http://example.test/ip" {
		t.Errorf("url %s", o.URL())
	}
	_, err := o.Dial(t.Context(), "tcp", "origin.sim:80")
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsNotFound || err.Error() != "dial tcp: lookup origin.sim: no such host" {
		t.Errorf("another name: %v", err)
	}
}

// Jitter comes on top of the delay, differs from answer to answer, and is the
// same for the same seed.
func TestProxyJitter(t *testing.T) {
	times := func(seed uint64) []time.Duration {
		var out []time.Duration
		inBubble(t, func(t *testing.T) {
			h := newHost(t, Options{Seed: seed})
			d := h.AddDomain(DomainSpec{Name: "p", Running: true, Proxy: Proxy{Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond}})
			c := dialProxy(t, d)
			for range 20 {
				start := time.Now()
				if got := c.ask(forward); !strings.HasPrefix(got, "200") {
					t.Fatal(got)
				}
				out = append(out, time.Since(start))
			}
		})
		return out
	}
	one, again, other := times(1), times(1), times(2)
	if low, high := slices.Min(one), slices.Max(one); low < 20*time.Millisecond || high > 30*time.Millisecond || high-low < 3*time.Millisecond {
		t.Errorf("answers after %v to %v, want them spread over 20 to 30 ms", low, high)
	}
	if !slices.Equal(one, again) || slices.Equal(one, other) {
		t.Errorf("seed 1 gave %v, then %v; seed 2 %v", one, again, other)
	}
}
