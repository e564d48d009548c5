package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"virdeck/model"
)

// lineOf returns the line of the screen that has all words, -1 if none has.
func lineOf(screen string, words ...string) int {
	for i, l := range strings.Split(screen, "\n") {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(l, w) }) {
			return i
		}
	}
	return -1
}

func (c *console) cursor() string {
	r, ok := c.current()
	if !ok {
		return ""
	}
	return r.key()
}

// drop removes proxies from a snapshot.
func drop(s *model.Snapshot, names ...string) {
	for _, h := range s.Hosts {
		h.Proxies = slices.DeleteFunc(h.Proxies, func(p *model.ProxyView) bool { return slices.Contains(names, string(p.Spec.Name)) })
	}
}

func TestUX01_selectionSurvivesInsertAbove(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.pass(5 * time.Second)
	c.press("j", "j") // p-03
	before := lineOf(c.screen(t), "> p-03")
	if before < 0 {
		t.Fatalf("no cursor on p-03:\n%s", c.screen(t))
	}
	c.pass(4 * time.Second) // the order may change again
	c.eng.publish(func(s *model.Snapshot) {
		s.Hosts[0].Proxies = append(s.Hosts[0].Proxies, proxy("p-00", "beelink", model.StateFailed, "10.0.0.20"))
	})
	c.pass(time.Second)
	s := c.screen(t)
	if c.cursor() != "p-03" || lineOf(s, "> p-03") < 0 {
		t.Errorf("cursor on %q:\n%s", c.cursor(), s)
	}
	if lineOf(s, "p-00") < 0 {
		t.Errorf("the new row is not shown:\n%s", s)
	}
}

// In a table longer than the window the selected row stays on its line of the
// screen while rows come and go above it.
func TestUX01_selectedRowKeepsItsLine(t *testing.T) {
	c := newConsole(t, big(200), 80, 24)
	c.press("s", "n", "G", "k", "k", "k")
	c.pass(4 * time.Second)
	want, line := c.cursor(), lineOf(c.screen(t), "> "+c.cursor())
	for _, change := range []func(*model.Snapshot){
		func(s *model.Snapshot) {
			s.Hosts[0].Proxies = append(s.Hosts[0].Proxies, proxy("a-1", "beelink", model.StateReady, "10.0.0.1"))
		},
		func(s *model.Snapshot) { drop(s, "p-3", "p-4", "p-5") },
	} {
		c.eng.publish(change)
		c.pass(time.Second)
		if got := lineOf(c.screen(t), "> "+want); got != line {
			t.Errorf("line %d, was %d", got, line)
		}
	}
}

func TestUX01_selectionSurvivesSortFilterAndRefill(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("j", "j", "j") // p-01
	want := c.cursor()
	for _, k := range []string{"n", "a", "p", "r", "c", "s"} {
		c.press("s", k)
		if c.cursor() != want {
			t.Fatalf("after sort %s the cursor is on %q", k, c.cursor())
		}
	}
	c.press("/")
	c.typed("state:demoted")
	if c.cursor() != "p-04" {
		t.Errorf("under the filter the cursor is on %q", c.cursor())
	}
	c.press("esc")
	if c.cursor() != want {
		t.Errorf("after the filter the cursor is on %q, want %q", c.cursor(), want)
	}
	saved := c.eng.snap
	c.eng.publish(func(s *model.Snapshot) { s.Hosts[0].Proxies = nil })
	c.pass(time.Second)
	c.eng.publish(func(s *model.Snapshot) { s.Hosts[0].Proxies = saved.Hosts[0].Proxies })
	c.pass(time.Second)
	if c.cursor() != want {
		t.Errorf("after empty and full again the cursor is on %q", c.cursor())
	}
}

// Each host remembers where its cursor was.
func TestUX01_cursorIsPerHost(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("j", "j")
	want := c.cursor()
	c.press("2", "j", "1")
	if c.cursor() != want {
		t.Errorf("back on host 1 the cursor is on %q, want %q", c.cursor(), want)
	}
}

func order(c *console) string {
	var out []string
	for _, r := range c.rows {
		out = append(out, r.key())
	}
	return strings.Join(out, " ")
}

func TestUX02_orderIsFrozenAfterACursorKey(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.pass(4 * time.Second)
	was := order(c)
	c.press("j")
	c.eng.publish(func(s *model.Snapshot) { s.Hosts[0].Proxies[1].State = model.StateFailed })
	c.pass(2 * time.Second)
	if order(c) != was {
		t.Errorf("rows moved under the hand: %s, was %s", order(c), was)
	}
	c.pass(2 * time.Second)
	if !strings.HasPrefix(order(c), "p-02") {
		t.Errorf("after 3s the worst is not first: %s", order(c))
	}
}

func TestUX02_orderIsFrozenWhileADialogIsOpen(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.pass(4 * time.Second)
	was := order(c)
	c.press("c")
	c.eng.publish(func(s *model.Snapshot) { s.Hosts[0].Proxies[1].State = model.StateFailed })
	c.pass(10 * time.Second)
	if order(c) != was {
		t.Errorf("rows moved under a dialog: %s, was %s", order(c), was)
	}
	c.press("esc")
	c.pass(time.Second)
	if order(c) == was {
		t.Error("rows did not move after the dialog was closed")
	}
}

func TestUX02_pauseHoldsTheViewAndCounts(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.press("p")
	c.eng.publish(func(s *model.Snapshot) {
		s.Hosts[0].Proxies[0].State = model.StateFailed
		s.Hosts[2].Proxies[0].Health.InRotation = false
		s.Hosts[1].Link.State = model.LinkUp
	})
	c.pass(12 * time.Second)
	s := c.screen(t)
	if lineOf(s, "PAUSED 12s, +3 changes") != 0 {
		t.Errorf("no badge:\n%s", s)
	}
	if lineOf(s, "p-01", "failed") >= 0 || lineOf(s, "DOWN 12s", "retry 3s") < 0 {
		t.Errorf("the view moved while paused:\n%s", s)
	}
	c.press("p")
	s = c.screen(t)
	if lineOf(s, "PAUSED") >= 0 || lineOf(s, "p-01", "failed") < 0 {
		t.Errorf("the view did not go on:\n%s", s)
	}
}

func TestUX03_vanishedRowLeavesATombstone(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("j") // p-05
	c.pass(5 * time.Second)
	line := lineOf(c.screen(t), "> p-05")
	c.eng.publish(func(s *model.Snapshot) { drop(s, "p-05") })
	c.pass(4250 * time.Millisecond)
	s := c.screen(t)
	if got := lineOf(s, "> p-05", "gone 4s ago"); got != line {
		t.Errorf("tombstone on line %d, want %d:\n%s", got, line, s)
	}
	c.press("r")
	if s := c.screen(t); lineOf(s, "p-05 is gone since 4s") < 0 || len(c.eng.cmds) > 0 {
		t.Errorf("acted on a row that is gone: %v\n%s", c.eng.cmds, s)
	}
	c.press("j")
	if s := c.screen(t); lineOf(s, "p-05", "ago") >= 0 {
		t.Errorf("the tombstone stays after the cursor moved:\n%s", s)
	}
}

func TestUX03_vanishedHostLeavesATombstone(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("2")
	c.eng.publish(func(s *model.Snapshot) { s.Hosts = slices.Delete(s.Hosts, 1, 2) })
	c.pass(time.Second)
	if s := c.screen(t); lineOf(s, "kvm2", "no longer in the configuration") < 0 {
		t.Errorf("no tombstone:\n%s", s)
	}
	c.press("c")
	if s := c.screen(t); lineOf(s, "host kvm2 is gone from the configuration") < 0 || len(c.eng.cmds) > 0 {
		t.Errorf("acted on another host: %v\n%s", c.eng.cmds, s)
	}
}

// A row that stops matching the filter stays while the cursor is on it, and is
// not counted.
func TestUX03_rowThatStopsMatchingStays(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("/")
	c.typed("state:demoted")
	c.press("enter")
	c.eng.publish(func(s *model.Snapshot) { s.Hosts[0].Proxies[3].State = model.StateReady })
	c.pass(time.Second)
	s := c.screen(t)
	if lineOf(s, "> p-04", "ready") < 0 || lineOf(s, "0 of 5") < 0 {
		t.Errorf("the row under the cursor vanished:\n%s", s)
	}
}

func TestUX13_filter(t *testing.T) {
	tests := []struct {
		filter string
		want   string
	}{
		{"", "ext-1 p-01 p-02 p-03 p-04 p-05 q-01 q-02 q-03 q-04 r-01 r-02 r-03"},
		{"q-0", "q-01 q-02 q-03 q-04"},
		{"!q-0 !r-0 !ext", "p-01 p-02 p-03 p-04 p-05"},
		{"state:demoted", "p-04"},
		{"state:tr host:kvm", "q-01 q-02 q-03"},
		{"pool:fallback", "ext-1"},
		{"mark:held", "p-02"},
		{"in:no !state:dr", "p-03 p-04 p-05"},
		{"source:agent=failed host:beelink", "p-02 p-03"},
		{"source:agent=86", "p-02 p-03"},
		{"source:arp=empty state:ready", "p-01 p-02"},
		{"source:lease=ok !host:kvm2", "r-01 r-02 r-03"},
		{"source:lease=n/a host:ext", "ext-1"},
		{"source:nonsense", ""},
		{"192.168.122.5", "r-01 r-02 r-03"},
		{"CREDENTIALS", "p-04"},
		{"!", "ext-1 p-01 p-02 p-03 p-04 p-05 q-01 q-02 q-03 q-04 r-01 r-02 r-03"},
		{"fe80::1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.filter, func(t *testing.T) {
			c := newConsole(t, fleet(), 160, 50)
			c.press("0", "s", "n", "/")
			c.typed(tt.filter)
			c.press("enter")
			if got := order(c); got != tt.want {
				t.Errorf("rows %s, want %s", got, tt.want)
			}
		})
	}
}

func TestUX13_filterShowsCountWhileTypedAndEscClears(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("/")
	c.typed("sta")
	c.Update(tea.PasteMsg{Content: "te:\nprov\x1b[2J"})
	if c.filter.src != "state: prov[2J" {
		t.Errorf("filter %q", c.filter.src)
	}
	c.press("esc", "/")
	c.Update(tea.PasteMsg{Content: "state:prov"})
	s := c.screen(t)
	if lineOf(s, "filter: state:prov", "1 of 5") < 0 || lineOf(s, "/ state:prov", "1 match ") < 0 {
		t.Errorf("no count:\n%s", s)
	}
	if cur := c.View().Cursor; cur == nil || cur.Y != 23 || cur.X != 3+len("state:prov") {
		t.Errorf("cursor %+v", cur)
	}
	c.press("enter", "esc")
	if s := c.screen(t); lineOf(s, "filter:") >= 0 {
		t.Errorf("esc does not clear the filter:\n%s", s)
	}
}

func TestUX14_hostsByNumberPanesAndAllHosts(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("3")
	if s := c.screen(t); lineOf(s, "local / proxies") < 0 || c.cursor() != "r-01" {
		t.Errorf("host 3 is not shown:\n%s", s)
	}
	c.press("9")
	if s := c.screen(t); lineOf(s, "there is no host 9") < 0 {
		t.Errorf("silent:\n%s", s)
	}
	c.press("0")
	if s := c.screen(t); lineOf(s, "all hosts / proxies", "13 proxies") < 0 || c.cursor() != "r-01" {
		t.Errorf("all hosts: cursor on %q\n%s", c.cursor(), s)
	}
	c.press("g")
	c.press("0")
	if c.hosts.sel != "beelink" || c.cursor() != "p-04" {
		t.Errorf("back from all: host %s, cursor %s", c.hosts.sel, c.cursor())
	}
	c.press("shift+tab", "k")
	if c.hosts.sel != "kvm2" {
		t.Errorf("the host pane has no keys: %s", c.hosts.sel)
	}
	c.press("enter")
	if s := c.screen(t); lineOf(s, "host kvm2") < 0 || lineOf(s, "dial tcp 10.0.0.5:16509: connect: connection refused") < 0 {
		t.Errorf("no host detail:\n%s", s)
	}
	c.press("esc", "tab", "enter")
	if s := c.screen(t); lineOf(s, "proxy q-01 on kvm2") < 0 {
		t.Errorf("no proxy detail:\n%s", s)
	}
}

func TestUX15_marksSurviveFilterAndRefreshAndAreUsed(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("space", "space", "/")
	c.typed("state:ready")
	c.press("enter")
	c.eng.publish(func(*model.Snapshot) {})
	c.pass(time.Second)
	if s := c.screen(t); lineOf(s, "2 marked") < 0 {
		t.Errorf("marks are lost:\n%s", s)
	}
	c.press("r")
	var got []string
	for _, cmd := range c.eng.cmds {
		got = append(got, cmd.Verb.String()+" "+string(cmd.Proxy)+" by "+cmd.By)
	}
	want := []string{"reconcile p-04 by alice", "reconcile p-05 by alice"}
	if !slices.Equal(got, want) {
		t.Errorf("commands %v, want %v", got, want)
	}
	c.press("esc", "esc")
	if len(c.marks) != 0 {
		t.Error("esc does not clear the marks")
	}
}

func TestUX15_sortMenuAndReverse(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("s")
	if s := c.screen(t); lineOf(s, "Sort by") < 0 || lineOf(s, "> s", "state", "worst first") < 0 {
		t.Errorf("no menu:\n%s", s)
	}
	c.press("n")
	if order(c) != "p-01 p-02 p-03 p-04 p-05" {
		t.Errorf("by name: %s", order(c))
	}
	c.press("s", "n")
	if order(c) != "p-05 p-04 p-03 p-02 p-01" || lineOf(c.screen(t), "sort name ▲") < 0 {
		t.Errorf("turned round: %s", order(c))
	}
}

func TestUX16_nextTroubleCrossesHosts(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	var got []string
	for range 8 {
		c.press("n")
		got = append(got, c.cursor())
	}
	want := []string{"p-05", "p-03", "q-01", "q-02", "q-03", "p-04", "p-05", "p-03"}
	if !slices.Equal(got, want) {
		t.Errorf("n went %v, want %v", got, want)
	}
	c.press("N", "N", "N")
	if c.cursor() != "q-03" {
		t.Errorf("N went to %s", c.cursor())
	}
}

func TestUX16_headerCountsEveryState(t *testing.T) {
	c := newConsole(t, fleet(), 160, 50)
	head, _, _ := strings.Cut(c.screen(t), "\n")
	for _, w := range []string{"virdeck", "home", "3 hosts", "13 proxies", "● 6 ready", "? 1 unproven", "+ 1 provisioning", "◌ 1 drained", "~ 3 transient", "▼ 1 demoted", "18:42:07"} {
		if !strings.Contains(head, w) {
			t.Errorf("no %q in %q", w, head)
		}
	}
}
