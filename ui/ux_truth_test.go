package ui

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"charm.land/bubbles/v2/key"

	"virdeck/logbuf"
	"virdeck/model"
)

func TestUX08_hostLineTellsTheWholeTruth(t *testing.T) {
	c := newConsole(t, fleet(), 160, 50)
	s := c.screen(t)
	if lineOf(s, "2 kvm2", "DOWN 12s", "~ 3 kept", "retry 3s", "dial tcp 10.0.0.5:16509: connect: connection refused") < 0 {
		t.Errorf("down host:\n%s", s)
	}
	if lineOf(s, "1 beelink", "up 26h", "● 2 ? 1 + 1 ▼ 1", "3/5 ok", "1/4", "+0.1s", "gen 3  2.1ms") < 0 {
		t.Errorf("host that is up:\n%s", s)
	}
	if lineOf(s, "3 local", "ARP unreadable here") < 0 || lineOf(s, "4 (external)", "no link", "● 1") < 0 {
		t.Errorf("other hosts:\n%s", s)
	}
	c.pass(13 * time.Second)
	c.press("2")
	if s := c.screen(t); lineOf(s, "kvm2 / proxies", "stale: last look 27s ago") < 0 {
		t.Errorf("old data is shown as current:\n%s", s)
	}
	c.eng.publish(func(s *model.Snapshot) {
		s.Hosts[0].Misconfig = "another libvirt answers: UUID 1234"
		s.Hosts[2].Link.Suspect = true
	})
	c.pass(time.Second)
	s = c.screen(t)
	if lineOf(s, "beelink", "MISCONFIGURED", "another libvirt answers: UUID 1234") < 0 || lineOf(s, "local", "silent", "asking a second connection") < 0 {
		t.Errorf("misconfigured and silent:\n%s", s)
	}
}

func TestUX08_frozenAndBrakeAreInLargeLetters(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.eng.publish(func(s *model.Snapshot) {
		s.Health.Frozen, s.Health.FrozenSince, s.Health.FrozenWhy = true, ago(5*time.Second), "the target does not answer, with or without a proxy"
		s.Health.BrakeOn, s.Health.BrakeSince, s.Health.BrakeNote = true, ago(2*time.Second), "3 of host kvm2 wait for witnesses"
		s.Notices = []model.Notice{{Level: model.NoticeWarn, Text: "store is read only"}}
	})
	c.pass(time.Second)
	s := c.screen(t)
	for _, w := range []string{"R O T A T I O N   F R O Z E N  since 6s: the target does not answer, with or without a proxy. Nobody enters or leaves.",
		"B R A K E  since 3s: 3 of host kvm2 wait for witnesses", "! store is read only"} {
		if lineOf(s, w) < 0 {
			t.Errorf("no %q in\n%s", w, s)
		}
	}
}

func TestUX10_sourceWords(t *testing.T) {
	up := &model.HostView{Name: "h", Link: model.LinkStatus{State: model.LinkUp}}
	down := &model.HostView{Name: "h", Link: model.LinkStatus{State: model.LinkDown}}
	fresh, old := ago(4*time.Second), ago(10*time.Minute)
	at := func(o model.Outcome, t time.Time) model.Outcome { o.At = t; return o }
	tests := []struct {
		name string
		h    *model.HostView
		o    model.Outcome
		w    int
		want string
	}{
		{"equal", up, at(addresses("10.0.0.21"), fresh), 13, ".21"},
		{"equal, old", up, at(addresses("10.0.0.21"), old), 13, ".21 10m"},
		{"equal and another", up, at(addresses("10.0.0.9", "10.0.0.21"), fresh), 13, ".21 +1"},
		{"differs", up, at(addresses("10.0.0.77"), fresh), 13, "10.0.0.77"},
		{"differs, narrow", up, at(addresses("10.0.0.77"), fresh), 5, ".77"},
		{"differs, another net, narrow", up, at(addresses("192.168.100.21"), fresh), 7, "other"},
		{"differs, IPv6, narrow", up, at(addresses("2001:db8::77"), fresh), 7, "other"},
		{"differs, another net", up, at(addresses("192.168.100.77"), fresh), 15, "192.168.100.77"},
		{"empty", up, model.Outcome{Kind: model.OutcomeEmpty, At: fresh}, 13, "empty"},
		{"empty, old", up, model.Outcome{Kind: model.OutcomeEmpty, At: old}, 13, "empty 10m"},
		{"agent not up", up, model.Outcome{Kind: model.OutcomeFailed, Code: 86, At: fresh}, 13, "86 not up 4s"},
		{"agent not up, narrow", up, model.Outcome{Kind: model.OutcomeFailed, Code: 86, At: fresh}, 9, "86 not up"},
		{"agent not up, narrower", up, model.Outcome{Kind: model.OutcomeFailed, Code: 86, At: fresh}, 6, "86 not"},
		{"other code", up, model.Outcome{Kind: model.OutcomeFailed, Code: 38, Message: "cannot do it", At: fresh}, 30, "38 cannot do it 4s"},
		{"no code", up, model.Outcome{Kind: model.OutcomeFailed, Message: "broken\x1b[2J pipe", At: fresh}, 30, "broken[2J pipe 4s"},
		{"dead link", down, model.Outcome{Kind: model.OutcomeFailed, Message: "connection is closed", At: fresh}, 13, "link down"},
		{"dead link, not asked", down, model.Outcome{Kind: model.OutcomeNotAsked, At: fresh}, 5, "down"},
		{"dead link, known from before", down, at(addresses("10.0.0.21"), fresh), 13, ".21 4s"},
		{"not asked", up, model.Outcome{Kind: model.OutcomeNotAsked, At: fresh}, 13, "not asked 4s"},
		{"not asked, narrow", up, model.Outcome{Kind: model.OutcomeNotAsked, At: fresh}, 7, "unasked"},
		{"not applicable", up, model.Outcome{Kind: model.OutcomeNotApplicable}, 5, "n/a"},
		{"never", up, model.Outcome{}, 5, "-"},
	}
	c := newConsole(t, fleet(), 80, 24)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := proxy("p", "h", model.StateReady, "10.0.0.21")
			tt.o.Source = model.SourceAgent
			p.Outcomes = []model.Outcome{tt.o}
			if got := c.sourceCell(row{p: p, h: tt.h}, model.SourceAgent, tt.w).plain(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestUX10_detailShowsTheEvidence(t *testing.T) {
	c := newConsole(t, fleet(), 160, 50)
	c.press("G", "enter")
	s := c.screen(t)
	for _, w := range [][]string{
		{"state", "● ready since 3d", "h held"},
		{"address", "10.0.0.22:3128", "from agent, confirmed 9s ago"},
		{"held", "since 14s: 2 polls without an address, cleared after 3 if"},
		{"agent", "failed", "4s", "12ms", "code 86  Guest agent is not"},
		{"arp", "empty"}, {"lease", "not applicable"},
		{"rotation", "in since 3d", "2 probes in a row passed"},
		{"last probe", "passed  in 31ms, 1s ago", "status 204", "exit 198.51.100.7"},
		{"Provisioned", "True", "AddressHeld", "poll 2 of 3"},
		{"18:41:53 14s", "address 10.0.0.22 held: no source names one"},
		{"unproven", "● ready", "2 probes in a row passed"},
		{"credentials probe:***"},
	} {
		if lineOf(s, w...) < 0 {
			t.Errorf("no line with %q in\n%s", w, s)
		}
	}
	if strings.Contains(s, "hunter2") {
		t.Error("a password is on the screen")
	}
	c.press("e")
	s = c.screen(t)
	for _, w := range []string{"Its probes pass; its sources have gone quiet, so its address is held. It is in the rotation: clients get it.", "held: the sources have gone quiet", "The next look is in 41s"} {
		if lineOf(s, w) < 0 {
			t.Errorf("no %q in\n%s", w, s)
		}
	}
}

func TestUX10_ignoredAddressesAreShownWithTheReason(t *testing.T) {
	c := newConsole(t, fleet(), 130, 50)
	c.eng.publish(func(s *model.Snapshot) {
		s.Hosts[0].Proxies[3].Outcomes[1].Ignored = []model.Ignored{
			{Address: ip("127.0.0.1"), Why: "loopback"}, {Address: ip("fe80::5054:ff:fe01:203"), Why: "link-local"}, {Address: ip("::1"), Why: "loopback"},
			{Address: ip("fe80::1"), Why: "link-local"}, {Address: ip("172.17.0.1"), Why: "not a NIC of this domain"}}
	})
	c.pass(time.Second)
	c.press("enter")
	s := c.screen(t)
	if lineOf(s, "does not count: 127.0.0.1, ::1 (loopback), fe80::… (link-local), 172.17.0.1 (not a NIC of") < 0 ||
		strings.Count(s, "does not count") != 1 {
		t.Errorf("not shown, or not on one line:\n%s", s)
	}
}

// The console starts and moves with every host down, and with nothing at all.
func TestUX11_worksWithNothing(t *testing.T) {
	dead := fleet()
	for _, h := range dead.Hosts {
		h.Link = model.LinkStatus{State: model.LinkConnecting}
		for _, p := range h.Proxies {
			*p = model.ProxyView{Spec: p.Spec, State: model.StatePending, Domain: model.DomainUnknown}
		}
	}
	for name, snap := range map[string]*model.Snapshot{"all down": dead, "no hosts": {Fleet: "x"}, "zero": {}, "empty host": {Hosts: []*model.HostView{{}}}} {
		t.Run(name, func(t *testing.T) {
			c := newConsole(t, snap, 80, 24)
			for _, a := range c.actions {
				for _, k := range a.b.Keys() {
					c.press(k)
					c.pass(pollEvery)
				}
				c.press("esc", "esc", "esc")
			}
			valid(t, c)
		})
	}
}

// The help is made from what Update matches: every key in it does something, on
// at least one page, and every page has a way to it.
func TestUX12_helpListsEveryKey(t *testing.T) {
	c := newConsole(t, fleet(), 160, 150)
	c.press("?")
	s := c.screen(t)
	seen := map[string]place{}
	for _, a := range c.actions {
		what, _, _ := strings.Cut(a.b.Help().Desc, ":")
		if lineOf(s, " "+a.b.Help().Key+" ", what) < 0 {
			t.Errorf("%s (%s) is not in the help:\n%s", a.b.Help().Key, what, s)
		}
		if a.group == "" || a.in == 0 || a.do == nil {
			t.Errorf("%s is incomplete", a.b.Help().Key)
		}
		for _, k := range a.b.Keys() {
			if seen[k]&a.in != 0 {
				t.Errorf("%s means two things in one place", k)
			}
			seen[k] |= a.in
			if !key.Matches(keyPress(k), a.b) {
				t.Errorf("a terminal never sends %q", k)
			}
		}
	}
	for _, page := range [][]string{nil, {"enter"}, {"e"}, {"o"}, {"l"}, {"tab"}} {
		c := newConsole(t, fleet(), 80, 24)
		c.press(page...)
		if !strings.Contains(c.foot(t), "? all keys") {
			t.Errorf("page %v does not name the help: %q", page, c.foot(t))
		}
		c.press("?", "?")
		c.press("?")
		depth := len(c.stack)
		c.press("esc")
		if len(c.stack) != depth-1 {
			t.Errorf("page %v: esc is not one step back", page)
		}
	}
}

func TestUX17_logFollowsStopsAndResumes(t *testing.T) {
	ring := logbuf.NewRing(100)
	logN := func(from, n int) {
		for i := range n {
			ring.Append(logbuf.Record{At: clock(), Message: fmt.Sprintf("record %d.", from+i)})
		}
	}
	logN(1, 500)
	c := newConsole(t, fleet(), 80, 24, func(o *Options) { o.Ring = ring })
	c.press("l")
	if s := c.screen(t); lineOf(s, "record 500.") < 0 || lineOf(s, "400 older dropped", "follows") < 0 {
		t.Errorf("does not open at the tail:\n%s", s)
	}
	logN(501, 1)
	c.pass(pollEvery)
	if s := c.screen(t); lineOf(s, "record 501.") < 0 {
		t.Errorf("does not follow:\n%s", s)
	}
	c.press("k")
	if s := c.screen(t); lineOf(s, "record 501.") >= 0 || lineOf(s, "record 500.") < 0 || lineOf(s, "stopped, G follows") < 0 {
		t.Errorf("does not stop:\n%s", s)
	}
	logN(502, 42)
	c.pass(pollEvery)
	if s := c.screen(t); lineOf(s, "record 500.") < 0 || lineOf(s, "42 new, G follows") < 0 {
		t.Errorf("does not stand still:\n%s", s)
	}
	c.press("G")
	if s := c.screen(t); lineOf(s, "record 543.") < 0 || lineOf(s, "follows") < 0 {
		t.Errorf("G does not resume:\n%s", s)
	}
	c.press("g")
	if s := c.screen(t); lineOf(s, "record 444.") < 0 {
		t.Errorf("g does not go to the oldest:\n%s", s)
	}
	logN(544, 300) // what was looked at is overwritten
	c.pass(pollEvery)
	valid(t, c)
	if s := c.screen(t); lineOf(s, "record 744.") < 0 {
		t.Errorf("after the ring ran over:\n%s", s)
	}
}

func TestUX18_logSearchLevelWrapAndObject(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("l", "v")
	if s := c.screen(t); lineOf(s, "proxy demoted") < 0 || lineOf(s, "address found") >= 0 || lineOf(s, "level warn") < 0 {
		t.Errorf("level warn:\n%s", s)
	}
	c.press("v", "v", "/")
	c.typed("HELD")
	if s := c.screen(t); lineOf(s, "redial scheduled") < 0 || lineOf(s, "2 hits") < 0 || lineOf(s, "level debug", "search: held") < 0 {
		t.Errorf("search:\n%s", s)
	}
	c.press("enter", "&")
	if s := c.screen(t); lineOf(s, "address held") < 0 || lineOf(s, "link down") >= 0 || lineOf(s, "only: held") < 0 {
		t.Errorf("only hits:\n%s", s)
	}
	c.press("&", "w")
	if s := c.screen(t); lineOf(s, "2 of 3  last_probe=passed 1s ago") < 0 {
		t.Errorf("wrap:\n%s", s)
	}
	c.press("w", "]")
	if s := c.screen(t); lineOf(s, "last_probe=passed 1s ago") < 0 {
		t.Errorf("scrolled to the right:\n%s", s)
	}
	c.press("esc", "L")
	if s := c.screen(t); lineOf(s, "proxy p-04") < 0 || lineOf(s, "407 credentials") < 0 || lineOf(s, "link down") >= 0 {
		t.Errorf("log of one proxy:\n%s", s)
	}
	c.press("esc", "2", "shift+tab", "L")
	if s := c.screen(t); lineOf(s, "host kvm2") < 0 || lineOf(s, "link down") < 0 || lineOf(s, "p-04") >= 0 {
		t.Errorf("log of one host:\n%s", s)
	}
	c.press("t")
	if s := c.screen(t); lineOf(s, "12s", "link down") < 0 {
		t.Errorf("ages:\n%s", s)
	}
}

func TestUX18_nextHit(t *testing.T) {
	ring := logbuf.NewRing(1000)
	for i := range 300 {
		msg := fmt.Sprintf("record %d.", i)
		if i%100 == 50 {
			msg += " needle"
		}
		ring.Append(logbuf.Record{At: clock(), Level: slog.LevelInfo, Message: msg})
	}
	c := newConsole(t, fleet(), 80, 24, func(o *Options) { o.Ring = ring })
	c.press("l", "/")
	c.typed("needle")
	c.press("enter")
	for _, step := range []struct{ key, want string }{{"n", "record 250."}, {"n", "record 150."}, {"n", "record 50."}, {"N", "record 150."}} {
		c.press(step.key)
		if s := c.screen(t); lineOf(s, step.want+" needle") < 0 {
			t.Errorf("%s does not go to %s:\n%s", step.key, step.want, s)
		}
	}
	c.press("n", "n")
	if !strings.Contains(c.foot(t), "no other hit") {
		t.Errorf("at the end: %q", c.foot(t))
	}
}

// A change of state reads as one: from what to what, and why.
func TestUX18_changesReadAsChanges(t *testing.T) {
	ring := logbuf.NewRing(9)
	slog.New(logbuf.NewHandler(ring, slog.LevelInfo)).Info("proxy changed", "host", "h", "proxy", "p-01",
		"what", "probes pass", "from", "unproven", "to", "ready", "evidence", "204 in 3ms")
	c := newConsole(t, fleet(), 100, 24, func(o *Options) { o.Ring = ring })
	if s := c.screen(t); lineOf(s, "p-01     unproven → ready  probes pass · 204 in 3ms") < 0 {
		t.Errorf("\n%s", s)
	}
}
