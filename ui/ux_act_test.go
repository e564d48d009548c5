package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"virdeck/model"
)

// foot returns the last line of the screen. A toast is returned as it reads, over
// all of its lines; the way to all keys must stand beside it.
func (c *console) foot(t *testing.T) string {
	t.Helper()
	lines := strings.Split(c.screen(t), "\n")
	last := lines[len(lines)-1]
	if c.toast == nil || c.asking {
		return last
	}
	last, ok := strings.CutSuffix(last, "? all keys")
	if !ok {
		t.Errorf("a toast hides the way to the keys: %q", last)
	}
	n := len(c.toastLines(c.w))
	out := strings.Join(lines[len(lines)-n:len(lines)-1], " ") + last
	if n > 1 {
		return " " + strings.Join(strings.Fields(out), " ")
	}
	return strings.TrimRight(out, " ")
}

func (c *console) sent() []string {
	var out []string
	for _, cmd := range c.eng.cmds {
		out = append(out, cmd.Verb.String()+" "+string(cmd.Host)+"/"+string(cmd.Proxy))
	}
	return out
}

func TestUX04_dialogCapturesTheGeneration(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.press("c")
	s := c.screen(t)
	for _, w := range []string{"Reconnect the libvirt link of beelink?", "up since 26h (generation 3)", "1 call in flight is interrupted", "2 proxies in rotation go on serving"} {
		if lineOf(s, w) < 0 {
			t.Errorf("no %q in\n%s", w, s)
		}
	}
	c.press("y")
	want := model.Command{Verb: model.VerbReconnect, Host: "beelink", By: "alice", SeenGen: 3}
	if len(c.eng.cmds) != 1 || c.eng.cmds[0] != want {
		t.Errorf("sent %+v", c.eng.cmds)
	}
}

func TestUX04_dialogIsCheckedAgain(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.press("c")
	c.eng.publish(func(s *model.Snapshot) { s.Hosts[0].Link.Generation = 4 })
	c.pass(time.Second)
	c.press("y")
	if len(c.eng.cmds) != 0 || lineOf(c.screen(t), "not done: the link of beelink was replaced since you asked (generation 3, now 4)") < 0 {
		t.Errorf("sent %v\n%s", c.eng.cmds, c.screen(t))
	}
	c.pass(2 * time.Second)
	c.press("x")
	c.eng.publish(func(s *model.Snapshot) { s.Hosts[0].Proxies[3].Incarnation = "i2" })
	c.pass(time.Second)
	c.press("y")
	if len(c.eng.cmds) != 0 || lineOf(c.screen(t), "not done: p-04 was started or stopped since you asked") < 0 {
		t.Errorf("sent %v\n%s", c.eng.cmds, c.screen(t))
	}
}

// A dialog opens on cancel; enter, esc and n leave everything as it is; the key
// that opened it does not confirm it.
func TestUX05_confirmIsAnotherKeyAndFocusIsOnCancel(t *testing.T) {
	for _, keys := range [][]string{{"x", "enter"}, {"x", "esc"}, {"x", "n"}, {"x", "x", "esc"}, {"c", "c", "enter"}, {"T", "T", "esc"}, {"x", "tab", "tab", "enter"}} {
		c := newConsole(t, fleet(), 120, 30)
		c.press(keys...)
		if len(c.eng.cmds) != 0 || c.dialog != nil {
			t.Errorf("%v: sent %v, dialog %v", keys, c.eng.cmds, c.dialog != nil)
		}
	}
	for _, keys := range [][]string{{"x", "y"}, {"x", "tab", "enter"}, {"x", "right", "enter"}} {
		c := newConsole(t, fleet(), 120, 30)
		c.press(keys...)
		if got := c.sent(); !slices.Equal(got, []string{"restart beelink/p-04"}) {
			t.Errorf("%v: sent %v", keys, got)
		}
	}
}

// What can be undone, or does no harm, is done without a question.
func TestUX05_harmlessActsDoNotAsk(t *testing.T) {
	for keys, want := range map[string]string{"r": "reconcile beelink/p-04", "R": "reconcile host beelink/", "d": "drain beelink/p-04", "2c": "reconnect kvm2/"} {
		c := newConsole(t, fleet(), 120, 30)
		c.typed(keys)
		if got := c.sent(); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: sent %v, want %s", keys, got, want)
		}
	}
}

// Draining several, or the last one of a pool, asks: marks may be out of sight.
func TestUX05_drainOfManyOrOfTheLastAsks(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.press("space", "space", "d")
	if s := c.screen(t); lineOf(s, "Drain 2 proxies?") < 0 || lineOf(s, "p-04 p-05") < 0 || len(c.eng.cmds) != 0 {
		t.Errorf("several are drained without a question: %v\n%s", c.sent(), s)
	}
	c.press("y")
	if got := c.sent(); !slices.Equal(got, []string{"drain beelink/p-04", "drain beelink/p-05"}) {
		t.Errorf("sent %v", got)
	}
	c = newConsole(t, fleet(), 120, 30)
	c.press("4", "d")
	if s := c.screen(t); lineOf(s, "Drain ext-1?") < 0 || lineOf(s, "Pool fallback is left with 0 in rotation.") < 0 || len(c.eng.cmds) != 0 {
		t.Errorf("the last of a pool is drained without a question: %v\n%s", c.sent(), s)
	}
}

func TestUX05_stopSaysWhatIsLeft(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.eng.publish(func(s *model.Snapshot) {
		for _, h := range s.Hosts {
			for _, p := range h.Proxies {
				p.Health.InRotation = p.Spec.Name == "p-01"
			}
		}
	})
	c.pass(time.Second)
	c.press("s", "n", "g", "T")
	if s := c.screen(t); lineOf(s, "Stop p-01 on beelink?") < 0 || lineOf(s, "Pool default is left with 0 in rotation.") < 0 {
		t.Errorf("the consequence is not named:\n%s", s)
	}
}

func TestUX06_aKeyThatCannotActSaysWhy(t *testing.T) {
	tests := []struct {
		name string
		keys []string
		want string
	}{
		{"restart on a dead link", []string{"2", "x"}, "the link of kvm2 is down: c reconnects it"},
		{"restart of an external", []string{"4", "x"}, "ext-1 is external: there is no VM to act on"},
		{"reconnect of externals", []string{"4", "c"}, "external proxies have no link: nothing to reconnect"},
		{"start of a running one", []string{"S"}, "p-04 runs already; x restarts it"},
		{"drain twice", []string{"2", "G", "d"}, "q-04 is drained already; D puts it back"},
		{"undrain of one that is not", []string{"D"}, "p-04 is not drained"},
		{"drain from the hosts", []string{"shift+tab", "d"}, "the keys are on the hosts: tab goes to the proxies"},
		{"mark from the log", []string{"tab", "space"}, "the keys are on the log: tab goes to the proxies"},
		{"drain from the log", []string{"tab", "d"}, "the keys are on the log: tab goes to the proxies"},
		{"restart from the log", []string{"tab", "x"}, "the keys are on the log: tab goes to the proxies"},
		{"reconcile from the log", []string{"tab", "r"}, "the keys are on the log: tab goes to the proxies"},
		{"reconnect from the log", []string{"tab", "c"}, "the keys are on the log: tab goes to the proxies"},
		{"explain from the log", []string{"tab", "e"}, "the keys are on the log: tab goes to the proxies"},
		{"marked ones from the log", []string{"space", "tab", "d"}, "the keys are on the log: tab goes to the proxies"},
		{"reconcile of an external", []string{"4", "r"}, "ext-1 is external: no VM to look at, and probed by itself; e explains it"},
		{"reconcile of the externals", []string{"4", "R"}, "external proxies have no host to look at; enter shows their probes"},
		{"reconcile on a dead link", []string{"2", "r"}, "the link of kvm2 is down: c reconnects it"},
		{"reconcile of a dead host", []string{"2", "R"}, "the link of kvm2 is down: c reconnects it"},
		{"a key of the log", []string{"w"}, "w is for the log: tab goes there, l opens it"},
		{"a key of another page", []string{"l", "r"}, "r does nothing on this page; ? lists the keys"},
		{"no key at all", []string{"f5"}, "f5 is not a key of the console; ? lists them"},
		{"esc at the top", []string{"esc"}, "this is the first screen; q quits"},
		{"q below the top", []string{"enter", "q"}, "esc goes back; q quits from the first screen"},
		{"act on the help", []string{"?", "r"}, "this page is not about one proxy"},
		{"a key in a dialog", []string{"x", "k"}, "answer first: y does it, esc cancels"},
		{"only without a search", []string{"l", "&"}, "first / and a text"},
		{"next without trouble", []string{"3", "/", "r", "-", "enter", "n"}, "every proxy is ready or drained"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newConsole(t, fleet(), 120, 30)
			c.press(tt.keys...)
			if s := c.foot(t); !strings.Contains(s, tt.want) {
				t.Errorf("last line %q, want %q", s, tt.want)
			}
			if len(c.eng.cmds) != 0 {
				t.Errorf("sent %v", c.sent())
			}
		})
	}
}

func TestUX06_refusalIsShownAndStays(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.eng.refuse = model.Refuse("host %s is busy with the same", "beelink")
	c.press("r")
	c.pass(30 * time.Second)
	if s := c.foot(t); s != " ! reconcile refused: p-04: host beelink is busy with the same" {
		t.Errorf("the reason is gone:\n%s", s)
	}
	c.press("j")
	if s := c.foot(t); strings.Contains(s, "refused") {
		t.Error("a key does not dismiss it")
	}
	c.eng.refuse = errors.New("boom\x1b[2J")
	c.press("r")
	if s := c.foot(t); s != " ! reconcile refused: p-05: boom[2J" {
		t.Errorf("hostile reason:\n%s", s)
	}
}

func TestUX07_readOnlySession(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30, func(o *Options) { o.ReadOnly = true })
	if lineOf(c.screen(t), "READ ONLY") != 0 {
		t.Errorf("no badge:\n%s", c.screen(t))
	}
	for _, k := range []string{"r", "R", "d", "x", "S", "T", "c"} {
		c.press(k)
		if c.foot(t) != " ! this session may only look" || c.dialog != nil {
			t.Errorf("%s is not refused:\n%s", k, c.screen(t))
		}
		c.pass(2 * time.Second)
	}
	if len(c.eng.cmds) != 0 {
		t.Errorf("sent %v", c.sent())
	}
}

func TestUX09_operationsShowPhaseAgeAndWho(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.eng.publish(func(s *model.Snapshot) {
		s.Ops = []model.Op{
			{ID: 70, Command: model.Command{Verb: model.VerbReconnect, Host: "kvm2", By: "bob"}, State: model.OpRunning, Phase: "handshake", Created: ago(4 * time.Second)},
			{ID: 71, Command: model.Command{Verb: model.VerbRestart, Host: "beelink", Proxy: "p-01", By: "bob"}, State: model.OpQueued, Created: ago(2 * time.Second)}}
		s.Hosts[1].Link.State, s.Hosts[1].Link.Phase = model.LinkConnecting, "handshake"
	})
	c.pass(time.Second)
	s := c.screen(t)
	if lineOf(s, "kvm2", "connecting 13s", "reconnect 5s bob", "handshake") < 0 || lineOf(s, "p-01", "restart 3s queued") < 0 {
		t.Errorf("another session's operations are not shown:\n%s", s)
	}
	c.press("o")
	if s := c.screen(t); lineOf(s, "running", "reconnect kvm2 by bob", "handshake") < 0 {
		t.Errorf("ops page:\n%s", s)
	}
}

func TestUX09_resultOfAnOwnOperationIsAToast(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.press("r")
	if c.foot(t) != " reconcile p-04: asked" {
		t.Errorf("nothing said:\n%s", c.screen(t))
	}
	c.eng.finish(model.OpRunning, "")
	c.pass(time.Second)
	c.eng.finish(model.OpDone, "agent names 10.0.0.24")
	c.pass(time.Second)
	if c.foot(t) != " reconcile p-04: agent names 10.0.0.24" {
		t.Errorf("no result:\n%s", c.screen(t))
	}
	c.eng.cmds = nil
	c.press("space", "space", "space", "r")
	c.eng.finish(model.OpFailed, "link down")
	c.pass(time.Second)
	if c.foot(t) != " ! reconcile: 0 done, 3 failed: p-03: link down; p-04: link down; p-05: link down" {
		t.Errorf("no result of several:\n%s", c.screen(t))
	}
}

func TestUX23_mouseAndCopy(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	if c.View().MouseMode != tea.MouseModeNone {
		t.Error("mouse is on from the start")
	}
	c.press("m")
	if c.View().MouseMode != tea.MouseModeCellMotion {
		t.Error("m does not switch the mouse on")
	}
	y := lineOf(c.screen(t), "p-01", "ready")
	c.Update(tea.MouseClickMsg{X: 5, Y: y, Button: tea.MouseLeft})
	if c.cursor() != "p-01" {
		t.Errorf("a click went to %q", c.cursor())
	}
	c.Update(tea.MouseClickMsg{X: 5, Y: lineOf(c.screen(t), "3 local"), Button: tea.MouseLeft})
	if c.hosts.sel != "local" {
		t.Errorf("a click went to host %q", c.hosts.sel)
	}
	c.Update(tea.MouseWheelMsg{X: 5, Y: y, Button: tea.MouseWheelUp})
	if c.hosts.sel != "kvm2" {
		t.Errorf("the wheel went to host %q", c.hosts.sel)
	}
	for keys, want := range map[string]string{"": "10.0.0.24:3128", "2": "10.0.7.31:3128", "4": "203.0.113.9:3128"} {
		c := newConsole(t, fleet(), 120, 30)
		c.typed(keys)
		cmd := c.press("y")
		if cmd == nil || c.foot(t) != " copied "+want {
			t.Errorf("after %q: no %q in\n%s", keys, want, c.screen(t))
		}
	}
}

func TestUX25_toastsStayLongEnoughAndAreLogged(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.press("r")
	c.eng.finish(model.OpDone, "fine")
	c.pass(500 * time.Millisecond)
	lines := strings.Count(c.View().Content, "\n")
	c.pass(4 * time.Second)
	if c.foot(t) != " reconcile p-04: fine" {
		t.Error("gone before 4s")
	}
	c.pass(2 * time.Second)
	if strings.Contains(c.foot(t), "fine") || strings.Count(c.View().Content, "\n") != lines {
		t.Error("still there after 5s, or the layout moved")
	}
	if i := lineOf(c.screen(t), "reconcile p-04: fine", "console=alice"); i < 0 || i == 29 {
		t.Errorf("not in the log:\n%s", c.screen(t))
	}
}

// A dialog says all of its consequence at 80 columns, and shows its buttons in the
// smallest window.
func TestUX04_dialogFitsTheWindow(t *testing.T) {
	c := newConsole(t, fleet(), 40, 10)
	c.press("T")
	if s := c.screen(t); lineOf(s, "Stop p-04 on beelink?") < 0 || lineOf(s, "[ cancel esc ]", "stop y") < 0 || lineOf(s, "Its connections break") < 0 {
		t.Errorf("\n%s", s)
	}
	c = newConsole(t, fleet(), 80, 24)
	c.press("space", "space", "space", "space", "space", "T")
	s := c.screen(t)
	for _, w := range []string{"Stop 5 proxies?", "p-01 p-02 p-03 p-04 p-05", "Pool default is left with 6 in rotation.", "[ cancel esc ]"} {
		if lineOf(s, w) < 0 {
			t.Errorf("no %q in\n%s", w, s)
		}
	}
}

// Whether a proxy serves is never hidden, by an operation neither.
func TestUX09_operationLeavesTheMembershipInSight(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.eng.publish(func(s *model.Snapshot) {
		op := func(p model.ProxyName, v model.Verb) model.Op {
			return model.Op{ID: 7, Command: model.Command{Verb: v, Host: "beelink", Proxy: p, By: "root"}, State: model.OpRunning, Created: ago(2 * time.Second)}
		}
		s.Ops = []model.Op{op("p-01", model.VerbStop), op("p-04", model.VerbStart)}
	})
	c.pass(pollEvery)
	if s := c.screen(t); lineOf(s, "p-01", "in  stop 2s root") < 0 || lineOf(s, "p-04", "out start 2s root") < 0 {
		t.Errorf("\n%s", s)
	}
}
