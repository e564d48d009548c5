package ui

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"virdeck/logbuf"
	"virdeck/model"
)

// Where a reason does not fit, its meaning does: no word is cut in half.
func TestUX10_probeReasonsShortenByMeaning(t *testing.T) {
	for _, tt := range []struct {
		c      model.Culprit
		reason string
		status int
		w      int
		want   string
	}{
		{model.CulpritWayOut, "timeout after the request", 0, 30, "timeout after the request"},
		{model.CulpritWayOut, "timeout after the request", 0, 16, "timeout"},
		{model.CulpritWayOut, "timeout after the request", 0, 7, "timeout"},
		{model.CulpritWayOut, "502 from the proxy", 502, 16, "502"},
		{model.CulpritWayOut, "closed after the request", 0, 9, "closed"},
		{model.CulpritWayOut, "in other words", 0, 7, "no exit"},
		{model.CulpritCredentials, "407 credentials", 407, 9, "407"},
		{model.CulpritHop, "connection refused by it", 0, 9, "refused"},
		{model.CulpritHop, "no answer to connect", 0, 9, "timeout"},
		{model.CulpritHop, "no route to host", 0, 9, "no route"},
		{model.CulpritHop, "in other words", 0, 11, "unreachable"},
		{model.CulpritSlow, "the body did not end in time", 0, 9, "too slow"},
		{model.CulpritAnswer, "not an HTTP proxy", 0, 16, "not a proxy"},
		{model.CulpritAnswer, "not an HTTP proxy", 0, 7, "answer"},
		{model.CulpritTarget, "connect failed", 0, 12, "target"},
		{model.CulpritUs, "no free local port", 0, 30, "us: no free local port"},
	} {
		c := newConsole(t, fleet(), 80, 24)
		p := proxy("p", "beelink", model.StateDemoted, "10.0.0.1")
		p.Health.Last = model.ProbeResult{Culprit: tt.c, Reason: tt.reason, Status: tt.status, Started: ago(time.Second)}
		if got := c.probeCell(p, tt.w).plain(); got != tt.want {
			t.Errorf("%s in %d: %q, want %q", tt.reason, tt.w, got, tt.want)
		}
	}
}

// Evidence reads as its items, none twice in a row; long lines break at spaces.
func TestUX09_evidenceReadsAsItems(t *testing.T) {
	evidence := []string{"read: link down", "probes pass", "probes pass", "agent: 86 not up", "arp: empty, 3 neighbours"}
	ring := logbuf.NewRing(9)
	slog.New(logbuf.NewHandler(ring, slog.LevelInfo)).Info("proxy changed", "host", "beelink", "proxy", "p-01",
		"what", "it changed", "from", "ready", "to", "transient", "evidence", evidence)
	slog.New(logbuf.NewHandler(ring, slog.LevelInfo)).Info("proxy changed", "host", "beelink", "proxy", "p-02",
		"what", "older than its events", "from", "ready", "to", "transient", "evidence", evidence)
	snap := fleet()
	snap.Hosts[0].Proxies[0].Events = []model.Event{{What: "it changed", From: "ready", To: "transient", Evidence: evidence}}
	c := newConsole(t, snap, 160, 50, func(o *Options) { o.Ring = ring })
	if s := c.screen(t); lineOf(s, "ready → transient  it changed · read: link down · probes pass · agent: 86 not up · arp: empty, 3 neighbours") < 0 ||
		lineOf(s, "older than its events · read: link down · probes pass · agent: 86") < 0 {
		t.Errorf("\n%s", s)
	}
	c = newConsole(t, snap, 60, 30, func(o *Options) { o.Ring = ring })
	c.press("l", "w")
	words := map[string]bool{}
	for _, e := range evidence {
		for w := range strings.FieldsSeq(e) {
			words[w] = true
		}
	}
	s := c.screen(t)
	for w := range words {
		if lineOf(s, w) < 0 {
			t.Errorf("%q is broken in two:\n%s", w, s)
		}
	}
	c.press("esc", "s", "n", "g", "enter")
	if s := c.screen(t); strings.Contains(s, "EVENTS") && strings.Count(s, "· probes pass") > 1 {
		t.Errorf("the same twice in a row:\n%s", s)
	}
}

// What a source last said of a VM that is stopped is an address, not a rest of one.
func TestUX10_leaseOfAStoppedVM(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	p := proxy("p", "local", model.StateDemoted, "")
	p.Domain = model.DomainShutoff
	for w, want := range map[int]string{7: ".4", 5: ".4", 15: "192.168.122.4"} {
		p.Outcomes = []model.Outcome{{Source: model.SourceLease, Kind: model.OutcomeAddresses, Addresses: addresses("192.168.122.4").Addresses, At: ago(time.Second)}}
		if got := c.sourceCell(row{p: p, h: c.snap.Hosts[2]}, model.SourceLease, w).plain(); got != want {
			t.Errorf("in %d cells: %q, want %q", w, got, want)
		}
	}
}

// What the screen shows is explained: every state, mark, and the words of the
// columns; / finds one.
func TestUX12_helpExplainsWhatIsOnTheScreen(t *testing.T) {
	c := newConsole(t, fleet(), 80, 150)
	c.press("?")
	s := c.screen(t)
	for _, st := range model.States() {
		if lineOf(s, st.Sign()+" "+st.String(), strings.Fields(stateMeaning(st))[0]) < 0 {
			t.Errorf("no %s in\n%s", st, s)
		}
	}
	for _, mk := range []model.Mark{model.MarkStale, model.MarkHeld, model.MarkUnverified, model.MarkWriteFailed, model.MarkConflict} {
		if lineOf(s, string(rune(mk))+" "+mk.Word()) < 0 {
			t.Errorf("no %s in\n%s", mk.Word(), s)
		}
	}
	for _, w := range []string{".21", "empty", "86 not up", "n/a", "not asked", "kept", "passes 1/2", "held 0/3", "waits", "CALLS", "CLOCK", "4/5 ok", "gen 3", "retry 3s", "▁▂▃▄", "a warning", "marked:", "»"} {
		if lineOf(s, w) < 0 {
			t.Errorf("no %q in\n%s", w, s)
		}
	}
	c.press("/")
	c.typed("held")
	s = c.screen(t)
	if lineOf(s, "held 0/3") < 0 || lineOf(s, "h held") < 0 || lineOf(s, "reconcile ") >= 0 || lineOf(s, "is out on evidence") >= 0 {
		t.Errorf("/ does not filter:\n%s", s)
	}
	c.press("enter")
	if s := c.screen(t); lineOf(s, "keys and signs", "filter: held") < 0 || lineOf(s, "esc back") < 0 {
		t.Errorf("the filter is not shown:\n%s", s)
	}
	c.press("esc")
	if s := c.screen(t); lineOf(s, "reconcile") < 0 || len(c.stack) != 1 {
		t.Errorf("esc does not clear the filter first:\n%s", s)
	}
	c.press("/")
	c.typed("nosuchword")
	if s := c.screen(t); lineOf(s, "nothing in the help has these words") < 0 {
		t.Errorf("\n%s", s)
	}
}
