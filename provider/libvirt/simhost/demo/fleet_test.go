package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
	"go.uber.org/goleak"

	"virdeck/provider/libvirt/simhost/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostDialer lets the client library dial one host of the fleet.
type hostDialer struct {
	f    *Fleet
	host string
}

func (d hostDialer) Dial() (net.Conn, error) { return d.f.Dial(context.Background(), d.host) }

func newFleet(t *testing.T, opts Options) *Fleet {
	t.Helper()
	f := New(t.Context(), opts)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

// source asks one source of a proxy's domain, on a connection of its own; "" is
// an answer without the domain's own card.
func source(f *Fleet, p scenario.Proxy, src golibvirt.DomainInterfaceAddressesSource) string {
	l := golibvirt.NewWithDialer(hostDialer{f, p.Host})
	if err := l.Connect(); err != nil {
		return "link: " + err.Error()
	}
	defer func() { _ = l.Disconnect() }() // a failed read says more
	d, err := l.DomainLookupByName(p.Domain)
	if err != nil {
		return "lookup: " + err.Error()
	}
	if _, err := l.DomainAgentSetResponseTimeout(d, 2, 0); err != nil {
		return "timeout: " + err.Error()
	}
	ifs, err := l.DomainInterfaceAddresses(d, uint32(src), 0)
	if err != nil {
		return "error: " + err.Error()
	}
	for _, i := range ifs {
		if i.Name != "lo" && len(i.Addrs) > 0 {
			return i.Addrs[0].Addr
		}
	}
	return ""
}

// get asks the origin through a proxy at an address, and gives status and body.
func get(f *Fleet, p scenario.Proxy, address string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := f.DialProxy(ctx, "tcp", fmt.Sprintf("%s:%d", address, p.Port))
	if err != nil {
		return "dial: " + err.Error()
	}
	defer func() { _ = c.Close() }() // read only
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err.Error()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.OriginURL(), http.NoBody)
	if err != nil {
		return err.Error()
	}
	if p.User != "" {
		req.SetBasicAuth(p.User, p.Password)
		req.Header.Set("Proxy-Authorization", req.Header.Get("Authorization"))
	}
	if err := req.WriteProxy(c); err != nil {
		return err.Error()
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		var n net.Error
		if errors.As(err, &n) && n.Timeout() {
			return "timeout"
		}
		return err.Error()
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, strings.TrimSpace(string(body)))
}

const (
	lease = golibvirt.DomainInterfaceAddressesSrcLease
	agent = golibvirt.DomainInterfaceAddressesSrcAgent
	arp   = golibvirt.DomainInterfaceAddressesSrcArp
)

func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{Still: true})
		if got := strings.Join(f.Hosts(), " "); got != "beelink kvm2 local" {
			t.Errorf("hosts %s", got)
		}
		if n := len(f.Proxies()); n != 14 {
			t.Fatalf("%d proxies, want 14", n)
		}
		time.Sleep(30 * time.Second)
		exits := map[string]string{}
		for _, p := range f.Proxies() {
			a := source(f, p, agent)
			fromLease, fromARP := source(f, p, lease), source(f, p, arp)
			if p.Host == Beelink && (fromLease != "" || fromARP != "") || p.Host != Beelink && (fromLease != a || fromARP != a) {
				t.Errorf("%s: agent %q, lease %q, arp %q", p.Name, a, fromLease, fromARP)
			}
			answer := get(f, p, a)
			if !strings.HasPrefix(answer, "200 198.") || exits[answer] != "" {
				t.Errorf("%s at %s: %q (as %s)", p.Name, a, answer, exits[answer])
			}
			exits[answer] = p.Name
		}
		if _, err := f.Dial(t.Context(), "none"); err == nil || err.Error() != `no simulated host "none"` {
			t.Errorf("dial none: %v", err)
		}
		if _, err := f.DialProxy(t.Context(), "tcp", "10.99.0.1:3128"); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("dial nowhere: %v", err)
		}
		c, err := f.DialOrigin(t.Context(), "tcp", "origin.sim:80")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Two rounds of the story, looked at where something is to be seen.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		f := newFleet(t, Options{})
		p := func(i int) scenario.Proxy { return f.Proxies()[i-1] }
		for round := range 2 {
			at := func(seconds int, what, got, want string) {
				t.Helper()
				if !strings.HasPrefix(got, want) {
					t.Errorf("round %d, %d s: %s is %q, want %q", round, seconds, what, got, want)
				}
			}
			until := func(seconds int) {
				time.Sleep(time.Until(begin.Add(time.Duration(round)*3*time.Minute + time.Duration(seconds)*time.Second)))
			}
			const notUp = "error: Guest agent is not responding: QEMU guest agent is not connected"
			if round == 0 {
				until(1)
				at(1, "agent of p-05", source(f, p(5), agent), notUp)
				at(1, "arp of p-05", source(f, p(5), arp), "")
				at(1, "p-14's lease", source(f, p(14), lease), "")
			}
			until(12)
			at(12, "agent of p-02", source(f, p(2), agent), notUp)
			at(12, "proxy of p-02", get(f, p(2), "10.0.0.22"), "200 ")
			until(28)
			at(28, "agent of p-02", source(f, p(2), agent), "10.0.0.22")
			at(28, "agent of p-05", source(f, p(5), agent), "10.0.0.25")
			at(28, "p-14's lease", source(f, p(14), lease), "192.168.123.5")
			at(28, "proxy of p-14", get(f, p(14), "192.168.123.5"), "200 ")
			until(35)
			at(35, "p-06", source(f, p(6), lease), "link: dial unix kvm2: connection refused")
			at(35, "proxy of p-06", get(f, p(6), "192.168.122.2"), "200 ")
			at(35, "p-10", source(f, p(10), lease), "192.168.123.2")
			until(48)
			at(48, "p-06", source(f, p(6), lease), "192.168.122.2")
			until(60)
			at(60, "proxy of p-04", get(f, p(4), "10.0.0.24"), "407 ")
			until(76)
			at(76, "lease of p-13", source(f, p(13), lease), "192.168.123.213")
			at(76, "proxy of p-13", get(f, p(13), "192.168.123.213"), "200 ")
			until(80)
			at(80, "proxy of p-04", get(f, p(4), "10.0.0.24"), "200 ")
			until(90)
			at(90, "p-08", source(f, p(8), lease), "error: Requested operation is not valid: domain is not running")
			until(105)
			at(105, "p-08", source(f, p(8), lease), "192.168.122.4")
			until(110)
			at(110, "proxy of p-11", get(f, p(11), "192.168.123.3"), "timeout")
			until(125)
			at(125, "agent of p-12", source(f, p(12), agent), "error: Guest agent is not responding: Guest agent not available for now")
			at(125, "lease of p-12", source(f, p(12), lease), "192.168.123.4")
			until(140)
			at(140, "proxy of p-11", get(f, p(11), "192.168.123.3"), "200 ")
			at(140, "agent of p-12", source(f, p(12), agent), "192.168.123.4")
			until(150)
			at(150, "agent of p-05", source(f, p(5), agent), notUp)
			until(158)
			at(158, "lease of p-13", source(f, p(13), lease), "192.168.123.113")
			at(158, "proxy of p-13", get(f, p(13), "192.168.123.113"), "200 ")
			until(174)
			at(174, "p-14's lease", source(f, p(14), lease)+".", ".")
		}
	})
}

// The story keeps its pace: something new at least every 20 s, the first within
// 15 s, over two rounds and the change from one to the next.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var told steps
		newFleet(t, Options{Log: slog.New(&told)})
		time.Sleep(6 * time.Minute)
		last := time.Duration(0)
		for _, at := range told.at(begin) {
			if gap := at - last; gap > 20*time.Second || last == 0 && gap > 15*time.Second {
				t.Errorf("nothing happens from %v to %v", last, at)
			}
			last = at
		}
		if told.failed {
			t.Error("a step could not be done")
		}
		if last < 350*time.Second {
			t.Errorf("the last step is at %v", last)
		}
	})
}

// steps are when a story's steps were told.
type steps struct {
	mu     sync.Mutex
	times  []time.Time
	failed bool
}

func (s *steps) Enabled(context.Context, slog.Level) bool { return true }
func (s *steps) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s *steps) WithGroup(string) slog.Handler            { return s }
func (s *steps) Handle(_ context.Context, r slog.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times = append(s.times, r.Time)
	if r.Level >= slog.LevelError {
		s.failed = true
	}
	return nil
}

func (s *steps) at(begin time.Time) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []time.Duration
	for _, t := range s.times {
		out = append(out, t.Sub(begin))
	}
	return out
}

// The proxies are near and far, as in life.
func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, Options{Still: true})
		time.Sleep(30 * time.Second)
		seen := map[time.Duration]string{}
		for _, p := range f.Proxies() {
			start := time.Now()
			if got := get(f, p, f.Host(p.Host).Domain(p.Domain).Addresses()[0].String()); !strings.HasPrefix(got, "200 ") {
				t.Errorf("%s: %s", p.Name, got)
			}
			took := time.Since(start)
			if took < 15*time.Millisecond || took > 60*time.Millisecond || seen[took] != "" {
				t.Errorf("%s answers after %v, want 15 to 60 ms and another than %s", p.Name, took, seen[took])
			}
			seen[took] = p.Name
		}
	})
}
