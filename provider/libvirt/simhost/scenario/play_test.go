package scenario

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider/libvirt/simhost"
)

// logged is a log that is read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// stage builds a scenario and plays it until the test ends.
func stage(t *testing.T, s *Scenario, log io.Writer) *Stage {
	t.Helper()
	st := s.Build()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		st.Play(ctx, slog.New(slog.NewTextHandler(log, nil)))
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// read asks a source about a guest, on a connection of its own, for at most two
// seconds: its first address, "" for none, or how it failed.
func read(st *Stage, id string, src libvirt.DomainInterfaceAddressesSource) string {
	answer := make(chan string, 1)
	host, _, _ := strings.Cut(id, "/")
	conn, err := st.Dial(context.Background(), host)
	if err != nil {
		return "dial"
	}
	go func() {
		l := libvirt.NewWithDialer(given{conn})
		if err := l.Connect(); err != nil {
			answer <- "connect"
			return
		}
		d := st.Domain(id)
		ifs, err := l.DomainInterfaceAddresses(libvirt.Domain{Name: d.Name(), UUID: d.UUID()}, uint32(src), 0)
		if e, ok := err.(libvirt.Error); ok { //nolint:errorlint // it comes as it is
			answer <- fmt.Sprintf("code %d", e.Code)
			return
		}
		if err != nil {
			answer <- "broken"
			return
		}
		for _, i := range ifs {
			for _, a := range i.Addrs {
				if i.Name != "lo" {
					answer <- a.Addr
					return
				}
			}
		}
		answer <- ""
	}()
	defer func() { _ = conn.Close() }() // it may be broken
	select {
	case a := <-answer:
		return a
	case <-time.After(900 * time.Millisecond):
		_ = conn.Close() // frees the reader
		<-answer
		return "silent"
	}
}

type given struct{ c net.Conn }

func (g given) Dial() (net.Conn, error) { return g.c, nil }

// storage gives the state and the capacity of a host's pool.
func storage(t *testing.T, st *Stage) string {
	t.Helper()
	conn, err := st.Dial(t.Context(), "kvm1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // read only
	l := libvirt.NewWithDialer(given{conn})
	if err := l.Connect(); err != nil {
		t.Fatal(err)
	}
	p, err := l.StoragePoolLookupByName("default")
	if err != nil {
		t.Fatal(err)
	}
	state, capacity, _, _, err := l.StoragePoolGetInfo(p)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(state, " ", capacity)
}

// page asks the origin through a guest's proxy: the status, or how it failed.
func page(st *Stage, id, user, password string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	c, err := st.DialProxy(ctx, "tcp", st.Domain(id).ProxyAddress())
	if err != nil {
		return "dial"
	}
	defer func() { _ = c.Close() }() // read only
	if err := c.SetDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		return err.Error()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, st.Origin().URL(), http.NoBody)
	if err != nil {
		return err.Error()
	}
	if user != "" {
		req.SetBasicAuth(user, password)
		req.Header.Set("Proxy-Authorization", req.Header.Get("Authorization"))
	}
	if err := req.WriteProxy(c); err != nil {
		return err.Error()
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		return "no answer"
	}
	_ = resp.Body.Close() // read only
	return fmt.Sprint(resp.StatusCode)
}

const (
	lease = libvirt.DomainInterfaceAddressesSrcLease
	agent = libvirt.DomainInterfaceAddressesSrcAgent
	arp   = libvirt.DomainInterfaceAddressesSrcArp
)

// The example, step by step: each fault shows where it should, and is over when
// it should be.
func TestAllFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Load("examples/all-faults.toml", nil)
		if err != nil {
			t.Fatal(err)
		}
		var log logged
		begin := time.Now()
		st := stage(t, s, &log)
		const nat, lan, many = "kvm1/nat", "kvm1/lan", "kvm2/many-1"
		src := func(id string, from libvirt.DomainInterfaceAddressesSource) func() string {
			return func() string { return read(st, id, from) }
		}
		state := func(id string) func() string {
			return func() string {
				d := st.Domain(id)
				if d == nil || st.Host("kvm1").Domain(d.Name()) != d {
					return "gone"
				}
				state, reason := d.State()
				return fmt.Sprintf("%d/%d", state, reason)
			}
		}
		proxy := func() string { return page(st, lan, "virdeck", "demo") }
		for _, c := range []struct {
			at   float64
			what string
			got  func() string
			want string
		}{
			{0.5, "at first", src(many, lease), "code 55"},
			{0.6, "slow", state("kvm1/slow"), "1/1"},
			{0.7, "absent", func() string { return fmt.Sprint(st.Domain("kvm1/later")) }, "<nil>"},
			{1.1, "frozen", src(many, lease), "silent"},
			{3.5, "over", src(many, lease), "code 55"},
			{4.05, "frozen", src(many, lease), "silent"},
			{5.5, "thawed", src(many, lease), "code 55"},
			{6.5, "killed", src(many, lease), "dial"},
			{7.5, "started", src(many, lease), "code 55"},
			{8.3, "restarting", src(many, lease), "dial"},
			{9.0, "restarted", src(many, lease), "code 55"},
			{10.5, "refusing", src(nat, lease), "dial"},
			{11.5, "accepting", src(nat, lease), "192.168.140.2"},
			{14.5, "arp unreadable", src(nat, arp), "code 1"},
			{15.5, "arp failing", src(nat, arp), "code 1"},
			{16.5, "arp", src(nat, arp), "192.168.140.2"},
			{17.5, "clock ahead", src(nat, lease), ""},
			{18.5, "clock back", src(nat, lease), "192.168.140.2"},
			{22.5, "lease lost", src(nat, lease), ""},
			{23.5, "lease again", src(nat, lease), "192.168.140.77"},
			{24.5, "another address", src(nat, lease), "192.168.140.88"},
			{25.5, "the old one", src(nat, lease), "192.168.140.2"},
			{26.5, "ended", src(nat, lease), ""},
			{27.5, "a doubled address", src("kvm1/seen", agent), "10.0.0.21"},
			{28.5, "its own", src("kvm1/seen", agent), "10.0.1.21"},
			{29.5, "hidden", src(nat, arp), ""},
			{30.5, "shown", src(nat, arp), "192.168.140.2"},
			{32.0, "agent restarting", src(lan, agent), "code 86"},
			{33.5, "agent", src(lan, agent), "10.0.0.21"},
			{34.5, "agent stopped", src(lan, agent), "code 86"},
			{35.5, "agent started", src(lan, agent), "10.0.0.21"},
			{36.5, "agent hung", src(lan, agent), "silent"},
			{38.5, "agent thawed", src(lan, agent), "10.0.0.21"},
			{40.5, "agent lists", src("kvm1/seen", agent), "10.8.0.2"},
			{41.5, "agent lists the truth", src("kvm1/seen", agent), "10.0.1.21"},
			{42.5, "paused", state(nat), "3/5"},
			{43.5, "resumed", state(nat), "1/5"},
			{44.5, "paused", state(nat), "3/1"},
			{45.5, "resumed", state(nat), "1/5"},
			{46.5, "crashed", state(nat), "5/3"},
			{47.5, "started", state(nat), "1/1"},
			{48.5, "destroyed", state(nat), "5/2"},
			{49.5, "started", state(nat), "1/1"},
			{52.5, "shut down", state(nat), "5/1"},
			{54.5, "started", state(nat), "1/1"},
			{57.5, "renamed", func() string { return st.Domain("kvm1/fixed").Name() }, "other"},
			{58.2, "never an agent", src(nat, agent), "code 86"},
			{58.5, "renamed again", func() string { return st.Domain("kvm1/fixed").Name() }, "fixed"},
			{59.5, "defined", state("kvm1/later"), "5/0"},
			{60.5, "gone", state("kvm1/later"), "gone"},
			{60.7, "proxy", proxy, "200"},
			{61.2, "proxy hung", proxy, "no answer"},
			{62.5, "proxy", proxy, "200"},
			{63.2, "banner", proxy, "no answer"},
			{64.5, "proxy", proxy, "200"},
			{65.2, "another password", proxy, "407"},
			{66.2, "origin down", func() string { return page(st, lan, "virdeck", "another") }, "502"},
			{67.3, "origin up", func() string { return page(st, lan, "virdeck", "another") }, "200"},
			{68.2, "error", src(nat, lease), "code 86"},
			{68.4, "once", src(nat, lease), "192.168.140.2"},
			{71.0, "delay", src(nat, lease), "192.168.140.2"},
			{73.2, "cut before", src(nat, lease), "connect"},
			{75.2, "cut reply", src(nat, lease), "connect"},
			{77.2, "cut inside", src(nat, lease), "connect"},
			{87.0, "calls are well", src(nat, lease), "192.168.140.2"},
			{88.5, "pool stopped", func() string { return storage(t, st) }, "0 0"},
			{89.5, "pool started", func() string { return storage(t, st) }, "2 107374182400"},
			{91.5, "pool small", func() string { return storage(t, st) }, "2 1048576"},
			{93.5, "network stopped", src(nat, lease), "code 55"},
			{94.5, "network started", src(nat, lease), "192.168.140.2"},
			{96.5, "not let in", src(nat, lease), "connect"},
			{97.5, "let in", src(nat, lease), "192.168.140.2"},
			{98.5, "off", src(nat, lease), "dial"},
			{99.5, "booted", func() string { return fmt.Sprint(st.Domain(nat).ID(), " ", st.Domain(lan).ID()) }, "1 -1"},
		} {
			time.Sleep(time.Until(begin.Add(time.Duration(c.at * float64(time.Second)))))
			if got := c.got(); got != c.want {
				t.Errorf("at %v s: %s: %q, want %q", c.at, c.what, got, c.want)
			}
		}
		if strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("a step could not be done:\n%s", log.String())
		}
	})
}

// Rounds begin anew, and what lasts into the next one ends there.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		begin := time.Now()
		stage(t, parse(t, "repeat = \"10s\"\n"+small+`
[[step]]
at = "8s"
what = "freeze"
whom = "kvm1"
for = "4s"
[[step]]
at = "2s"
what = "crash"
whom = "kvm2/p-07"
title = "p-07 crashes"
`, nil), &log)
		time.Sleep(time.Until(begin.Add(25 * time.Second)))
		var got []string
		for line := range strings.Lines(log.String()) {
			at, err := time.Parse("2006-01-02T15:04:05.000Z", strings.TrimPrefix(strings.Fields(line)[0], "time="))
			if err != nil {
				t.Fatal(err)
			}
			_, msg, _ := strings.Cut(line, "msg=scenario ")
			got = append(got, fmt.Sprintf("%v %s", at.Sub(begin), strings.TrimSpace(msg)))
		}
		want := `2s step="p-07 crashes"
8s step="kvm1: freeze"
12s over="kvm1: freeze"
12s step="p-07 crashes"
18s step="kvm1: freeze"
22s over="kvm1: freeze"
22s step="p-07 crashes"`
		if text := strings.Join(got, "\n"); text != want {
			t.Errorf("told\n%s\nwant\n%s", text, want)
		}
	})
}

// A file may declare thousands; names and addresses run on.
func TestMany(t *testing.T) {
	s := parse(t, `
[[host]]
name = "big"
[[network]]
host = "big"
name = "default"
gateway = "10.64.0.1/10"
[[guest]]
host = "big"
name = "vm"
count = 5000
[[guest]]
host = "big"
name = "lan"
count = 300
bridge = "br0"
address = "10.0.0.250/16"
`, nil)
	st := stage(t, s, io.Discard)
	if n := len(st.Proxies()); n != 5300 {
		t.Errorf("%d proxies", n)
	}
	if got := st.Domain("big/vm-5000").ProxyAddress() + " " + st.Domain("big/lan-300").ProxyAddress(); got != "10.64.19.137:3128 10.0.2.37:3128" {
		t.Errorf("the last ones are at %s", got)
	}
}

// The package's own words for simhost's modes have all of them.
func TestWords(t *testing.T) {
	for mode := simhost.ProxyOK; mode <= simhost.ProxyPlainHTTP; mode++ {
		found := false
		for _, m := range proxyModes {
			found = found || m == mode
		}
		if !found {
			t.Errorf("no word for proxy mode %d", mode)
		}
	}
	for _, name := range []string{"examples/all-faults.toml", "examples/frozen.toml"} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}

// What a name stands in the way of is said, and nothing falls over.
func TestDefine_nameTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		stage(t, parse(t, `
[[host]]
name = "k"
[[guest]]
host = "k"
name = "g"
state = "off"
[[guest]]
host = "k"
name = "h"
state = "absent"
[[step]]
at = "1s"
what = "rename"
whom = "k/g"
name = "h"
[[step]]
at = "2s"
what = "define"
whom = "k/*"
[[step]]
at = "3s"
what = "start"
whom = "k/g"
[[step]]
at = "4s"
what = "rename"
whom = "k/g"
name = "g"
`, nil), &log)
		time.Sleep(5 * time.Second)
		for _, want := range []string{`define: k/g is there, by the name \"h\"`, `define: host k has another \"h\"`,
			"rename: libvirt error 55: Requested operation is not valid: cannot rename active domain"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q:\n%s", want, log.String())
			}
		}
	})
}
