package ui

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"virdeck/logbuf"
	"virdeck/model"
)

// clock is the instant of the crafted fleet.
func clock() time.Time { return time.Date(2026, 11, 3, 18, 42, 7, 0, time.UTC) }

func ago(d time.Duration) time.Time { return clock().Add(-d) }

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// fakeEngine is an Engine in the hand of a test.
type fakeEngine struct {
	mu     sync.Mutex
	snap   *model.Snapshot
	cmds   []model.Command
	refuse error            // of Submit, whatever was foreseen
	unfit  map[string]error // commands that are refused before they are asked for: "verb proxy"
}

var _ Engine = (*fakeEngine)(nil)

func (e *fakeEngine) Snapshot() *model.Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.snap
}

func (e *fakeEngine) Submit(c model.Command) (model.OpID, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refuse != nil {
		return 0, e.refuse
	}
	e.cmds = append(e.cmds, c)
	return model.OpID(len(e.cmds)), nil
}

func (e *fakeEngine) Refuse(c model.Command) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unfit[c.Verb.String()+" "+c.Target()]
}

// publish replaces the snapshot by a changed copy.
func (e *fakeEngine) publish(change func(*model.Snapshot)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := *e.snap
	s.Gen++
	s.Hosts = nil
	for _, h := range e.snap.Hosts {
		c := *h
		c.Proxies = nil
		for _, p := range h.Proxies {
			q := *p
			if p.Managed != nil {
				v := *p.Managed
				q.Managed = &v
			}
			c.Proxies = append(c.Proxies, &q)
		}
		s.Hosts = append(s.Hosts, &c)
	}
	change(&s)
	e.snap = &s
}

// finish publishes the ops of all commands so far in a state.
func (e *fakeEngine) finish(st model.OpState, result string) {
	cmds := e.cmds
	e.publish(func(s *model.Snapshot) {
		s.Ops = nil
		for i, c := range cmds {
			s.Ops = append(s.Ops, model.Op{ID: model.OpID(i + 1), Command: c, State: st, Result: result, Created: ago(time.Second), Ended: clock()})
		}
	})
}

// console is a Model with its engine and its clock.
type console struct {
	*Model
	eng *fakeEngine
	now time.Time
}

func newConsole(t *testing.T, snap *model.Snapshot, w, h int, change ...func(*Options)) *console {
	t.Helper()
	c := &console{eng: &fakeEngine{snap: snap}, now: clock()}
	opts := Options{Engine: c.eng, Ring: crafted(), User: "alice", Now: func() time.Time { return c.now }}
	for _, f := range change {
		f(&opts)
	}
	c.Model = New(opts)
	c.Update(tea.WindowSizeMsg{Width: w, Height: h})
	c.draw()
	return c
}

// press sends keys, each by its name.
func (c *console) press(keys ...string) tea.Cmd {
	var cmd tea.Cmd
	for _, k := range keys {
		_, cmd = c.Update(keyPress(k))
		c.View()
	}
	return cmd
}

// typed sends a text key by key.
func (c *console) typed(s string) {
	for _, r := range s {
		c.press(string(r))
	}
}

// pass lets time go by, with the ticks that come with it.
func (c *console) pass(d time.Duration) {
	for range d / pollEvery {
		c.now = c.now.Add(pollEvery)
		c.Update(tickMsg{})
		c.View()
	}
}

func keyPress(name string) tea.KeyPressMsg {
	named := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown,
		"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd, "tab": tea.KeyTab,
		"left": tea.KeyLeft, "right": tea.KeyRight, "backspace": tea.KeyBackspace, "f5": tea.KeyF5, "delete": tea.KeyDelete}
	switch {
	case name == "space":
		return tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
	case name == "shift+tab":
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	case len(name) > 5 && name[:5] == "ctrl+":
		return tea.KeyPressMsg{Code: rune(name[5]), Mod: tea.ModCtrl}
	}
	if r, ok := named[name]; ok {
		return tea.KeyPressMsg{Code: r}
	}
	r := []rune(name)[0]
	return tea.KeyPressMsg{Code: r, Text: name}
}

func proxy(name string, host model.HostName, st model.State, addr string) *model.ProxyView {
	p := &model.ProxyView{
		Spec:  model.ProxySpec{Name: model.ProxyName(name), Host: host, Domain: name, Port: 3128, Pool: "default", Creds: model.Credentials{User: "probe", Password: "hunter2"}},
		State: st, Since: ago(75 * time.Hour), Domain: model.DomainRunning, Incarnation: "i1",
		LastRead: ago(2 * time.Second), NextLook: clock().Add(41 * time.Second),
		Outcomes: []model.Outcome{{Source: model.SourceLease, Kind: model.OutcomeNotApplicable},
			{Source: model.SourceAgent}, {Source: model.SourceARP}},
		Health: model.Health{Rise: 2, Fall: 3, PassPercent: -1},
	}
	if addr != "" {
		p.IP, p.IPSource, p.IPAt = ip(addr), model.SourceAgent, ago(9*time.Second)
	}
	return p
}

func say(p *model.ProxyView, src model.Source, o model.Outcome) {
	o.Source = src
	if o.At.IsZero() && o.Kind != model.OutcomeNotApplicable {
		o.At, o.Took = ago(9*time.Second), 3*time.Millisecond
	}
	p.Outcomes[src] = o
}

func addresses(a ...string) model.Outcome {
	o := model.Outcome{Kind: model.OutcomeAddresses}
	for _, s := range a {
		o.Addresses = append(o.Addresses, ip(s))
	}
	return o
}

func samples(ms ...int) []model.Sample {
	var out []model.Sample
	for i, v := range ms {
		s := model.Sample{At: ago(time.Duration(len(ms)-i) * 5 * time.Second), Took: time.Duration(v) * time.Millisecond, Passed: v > 0}
		if v <= 0 {
			s.Culprit = model.CulpritCredentials
		}
		out = append(out, s)
	}
	return out
}

func passes(p *model.ProxyView, ms ...int) {
	h := &p.Health
	h.Samples = samples(ms...)
	h.InRotation, h.Proven, h.Passes, h.PassPercent = true, true, 900, 100
	h.Since, h.Reason = ago(75*time.Hour), "2 probes in a row passed"
	h.Last = model.ProbeResult{Address: p.IP, Target: "http://probe.example/ok", Passed: true, Started: ago(time.Second),
		Took: h.Samples[len(h.Samples)-1].Took, Status: 204, ExitIP: ip("198.51.100.7")}
}

// fleet is the crafted fleet: every state, every outcome, a host that is down.
func fleet() *model.Snapshot {
	empty := model.Outcome{Kind: model.OutcomeEmpty}
	notUp := model.Outcome{Kind: model.OutcomeFailed, Code: 86, Message: "Guest agent is not responding: QEMU guest agent is not connected", At: ago(4 * time.Second), Took: 12 * time.Millisecond}
	beelink := &model.HostView{Name: "beelink", URI: "qemu+ssh://ops@beelink/system", Sources: model.Sources(), UUID: "5f0e8b46-93b1-4c2e-9d1c-9f7c8a2f6b10",
		LastGood: ago(3 * time.Second), Domains: 7, Undeclared: []string{"build-vm", "win\x1b]52;c;AAAA\x07xp"},
		Link: model.LinkStatus{State: model.LinkUp, Generation: 3, Since: ago(26 * time.Hour), InFlight: 1, Slots: 4, RoundTrip: 2100 * time.Microsecond,
			ClockDiff: 100 * time.Millisecond, ClockKnown: true, Endpoint: "beelink:22", Calls: [3]model.CallCount{{Done: 81234, Failed: 12}, {Done: 411, NotAsked: 2}},
			LastError: "read tcp 10.0.0.9:51022->10.0.0.5:22: connection reset by peer", LastErrAt: ago(26 * time.Hour)}}
	p1 := proxy("p-01", "beelink", model.StateReady, "10.0.0.21")
	say(p1, model.SourceAgent, addresses("10.0.0.21"))
	say(p1, model.SourceARP, empty)
	passes(p1, 31, 28, 55, 30, 29, 33, 60, 34)
	p1.Reason = "address known, probes pass"
	p2 := proxy("p-02", "beelink", model.StateReady, "10.0.0.22")
	p2.Marks = []model.Mark{model.MarkHeld}
	p2.Hold = model.Hold{Active: true, Polls: 2, Of: 3, Since: ago(14 * time.Second), Probe: "probes through it pass"}
	say(p2, model.SourceAgent, notUp)
	say(p2, model.SourceARP, empty)
	passes(p2, 30, 27, 31, 29, 33, 28, 62, 31)
	p2.Reason = "address held: the agent does not answer, probes pass"
	p2.Conditions = []model.Condition{
		{Type: model.CondProvisioned, Status: model.CondTrue, Reason: "AddressHeld", Message: "poll 2 of 3 without an address", Since: ago(14 * time.Second)},
		{Type: model.CondHealthy, Status: model.CondTrue, Reason: "ProbesPass", Since: ago(75 * time.Hour)}}
	p2.Events = []model.Event{
		{Seq: 1, At: ago(75 * time.Hour), Proxy: "p-02", Host: "beelink", From: "unproven", To: "ready", What: "2 probes in a row passed", Evidence: []string{"204 in 31ms", "204 in 29ms"}},
		{Seq: 9, At: ago(14 * time.Second), Proxy: "p-02", Host: "beelink", From: "ready", To: "ready", What: "address 10.0.0.22 held: no source names one, poll 1 of 3",
			Evidence: []string{"agent: code 86, Guest agent is not responding: QEMU guest agent is not connected", "arp: answered, empty", "last probe passed 1s before"}}}
	p3 := proxy("p-03", "beelink", model.StateProvisioning, "")
	p3.Since = ago(8 * time.Second)
	say(p3, model.SourceAgent, notUp)
	say(p3, model.SourceARP, empty)
	p3.Reason = "the VM runs, no source names an address yet"
	p4 := proxy("p-04", "beelink", model.StateDemoted, "10.0.0.24")
	p4.Since = ago(2 * time.Minute)
	say(p4, model.SourceAgent, addresses("10.0.0.24"))
	say(p4, model.SourceARP, empty)
	passes(p4, 31, 30, 35, 33, 0, 0, 0, 0)
	p4.Health.InRotation, p4.Health.Demoted, p4.Health.PassPercent, p4.Health.Fails, p4.Health.Passes = false, true, 50, 4, 0
	p4.Health.Last.Passed, p4.Health.Last.Culprit, p4.Health.Last.Reason, p4.Health.Last.Status = false, model.CulpritCredentials, "407 credentials", 407
	p4.Reason = "407: the proxy wants other credentials"
	p5 := proxy("p-05", "beelink", model.StateUnproven, "10.0.0.25")
	p5.Since = ago(3 * time.Second)
	say(p5, model.SourceAgent, addresses("10.0.0.25", "10.0.0.125"))
	say(p5, model.SourceARP, addresses("10.0.0.77"))
	passes(p5, 44)
	p5.Health.InRotation, p5.Health.Passes = false, 1
	p5.Reason = "1 of 2 probes passed"
	p4.Events = []model.Event{
		{Seq: 2, At: ago(75 * time.Hour), Proxy: "p-04", Host: "beelink", From: "unproven", To: "ready", What: "2 probes in a row passed"},
		{Seq: 7, At: ago(2 * time.Minute), Proxy: "p-04", Host: "beelink", From: "ready", To: "demoted", What: "3 probes in a row failed: 407 credentials",
			Evidence: []string{"407 Proxy Authentication Required, 3 times in 8s", "witness: p-01 passed to the same target at 18:40:06", "control: http://probe.example/ok answers without a proxy"}}}
	beelink.Proxies = []*model.ProxyView{p1, p2, p3, p4, p5}

	kvm2 := &model.HostView{Name: "kvm2", URI: "qemu+tcp://10.0.0.5/system", Sources: model.Sources(), LastGood: ago(14 * time.Second), Domains: 4,
		Link: model.LinkStatus{State: model.LinkDown, Generation: 5, Since: ago(12 * time.Second), Slots: 4, NextRetry: clock().Add(3 * time.Second),
			LastError: "dial tcp 10.0.0.5:16509: connect: connection refused", LastErrAt: ago(2 * time.Second), Endpoint: "10.0.0.5:16509"}}
	for i := range 4 {
		p := proxy(fmt.Sprintf("q-%02d", i+1), "kvm2", model.StateTransient, fmt.Sprintf("10.0.7.%d", 31+i))
		p.Since = ago(12 * time.Second)
		p.ReadError, p.ReadFailed = "link down: connection refused", ago(12*time.Second)
		say(p, model.SourceLease, addresses(p.IP.String()))
		say(p, model.SourceAgent, model.Outcome{Kind: model.OutcomeFailed, Message: "connection is closed", At: ago(12 * time.Second)})
		say(p, model.SourceARP, model.Outcome{Kind: model.OutcomeNotAsked, Message: "link down", At: ago(12 * time.Second)})
		passes(p, 25, 24, 28, 26)
		p.Reason = "the last look failed: connection refused"
		kvm2.Proxies = append(kvm2.Proxies, p)
	}
	kvm2.Proxies[3].State, kvm2.Proxies[3].Drained, kvm2.Proxies[3].Health.InRotation = model.StateDrained, true, false
	kvm2.Proxies[3].Marks = []model.Mark{model.MarkStale}

	local := &model.HostView{Name: "local", URI: "qemu:///system", Sources: model.Sources(), LastGood: ago(time.Second), Domains: 3, ARPBroken: true,
		Link: model.LinkStatus{State: model.LinkUp, Generation: 1, Since: ago(4 * 24 * time.Hour), Slots: 4, RoundTrip: 100 * time.Microsecond, ClockKnown: true}}
	for i := range 3 {
		p := proxy(fmt.Sprintf("r-%02d", i+1), "local", model.StateReady, fmt.Sprintf("192.168.122.%d", 50+i))
		p.IPSource = model.SourceLease
		say(p, model.SourceLease, addresses(p.IP.String()))
		say(p, model.SourceAgent, addresses(p.IP.String()))
		say(p, model.SourceARP, model.Outcome{Kind: model.OutcomeFailed, Code: 1, Message: "internal error: wrong nlmsg len"})
		passes(p, 3, 3, 4, 3)
		local.Proxies = append(local.Proxies, p)
	}
	ext := &model.HostView{Name: model.ExternalHost, External: true}
	e := proxy("ext-1", model.ExternalHost, model.StateReady, "")
	e.Spec.Backing, e.Spec.Address, e.Spec.Pool = model.BackingExternal, ip("203.0.113.9"), "fallback"
	for i := range e.Outcomes {
		e.Outcomes[i].Kind = model.OutcomeNotApplicable
	}
	e.IP = ip("203.0.113.9")
	passes(e, 120, 118, 140, 122)
	ext.Proxies = []*model.ProxyView{e}

	return &model.Snapshot{Fleet: "home", Version: "test", Gen: 1, At: clock(), Started: ago(100 * time.Hour),
		Hosts:  []*model.HostView{beelink, kvm2, local, ext},
		Timing: model.Timing{Poll: 10 * time.Second, AddressRefresh: 60 * time.Second, AddressHold: 3, ProbeInterval: 5 * time.Second, ProbeTimeout: 2 * time.Second}}
}

// crafted is a log that goes with the fleet.
func crafted() *logbuf.Ring {
	r := logbuf.NewRing(1000)
	add := func(d time.Duration, l slog.Level, host, proxy, msg string, kv ...string) {
		rec := logbuf.Record{At: ago(d), Level: l, Host: host, Proxy: proxy, Message: msg}
		for i := 0; i+1 < len(kv); i += 2 {
			rec.Attrs = append(rec.Attrs, logbuf.Attr{Key: kv[i], Value: kv[i+1]})
		}
		r.Append(rec)
	}
	add(4*time.Minute, slog.LevelInfo, "", "", "engine started", "hosts", "3", "proxies", "13")
	add(2*time.Minute, slog.LevelWarn, "beelink", "p-04", "proxy demoted", "reason", "407 credentials", "witness", "p-01 passed")
	add(14*time.Second, slog.LevelInfo, "beelink", "p-02", "agent not answering, address held", "address", "10.0.0.22", "poll", "1 of 3")
	add(12*time.Second, slog.LevelError, "kvm2", "", "link down", "generation", "5", "error", "connection refused")
	add(12*time.Second, slog.LevelDebug, "kvm2", "", "redial scheduled", "in", "3s")
	add(3*time.Second, slog.LevelInfo, "beelink", "p-05", "address found", "address", "10.0.0.25", "source", "agent")
	add(2*time.Second, slog.LevelInfo, "beelink", "p-02", "agent not answering, address held", "address", "10.0.0.22", "poll", "2 of 3", "last_probe", "passed 1s ago")
	return r
}

// big is a fleet of one host with n proxies.
func big(n int) *model.Snapshot {
	s := fleet()
	h := *s.Hosts[0]
	h.Proxies = nil
	states := []model.State{model.StateReady, model.StateReady, model.StateTransient, model.StateDemoted}
	for i := range n {
		p := proxy(fmt.Sprintf("p-%d", i), "beelink", states[i%len(states)], fmt.Sprintf("10.%d.%d.%d", i/62500%250, i/250%250, i%250))
		say(p, model.SourceAgent, addresses(p.IP.String()))
		say(p, model.SourceARP, model.Outcome{Kind: model.OutcomeEmpty})
		passes(p, 30, 31, 32, 33)
		h.Proxies = append(h.Proxies, p)
	}
	s.Hosts = []*model.HostView{&h}
	return s
}
