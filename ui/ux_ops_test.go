package ui

import (
	"testing"
	"time"

	"virdeck/model"
)

// One of several queued operations is withdrawn by name; the engine's word about
// it is a result and no error.
func TestUX09_cancelOneOfSeveral(t *testing.T) {
	c := newConsole(t, managedFleet(), 120, 40)
	c.eng.publish(func(s *model.Snapshot) {
		s.Ops = append(s.Ops, model.Op{ID: 9, Command: model.Command{Verb: model.VerbDelete, Host: "kvm3", Proxy: "web-3", By: "alice"}, State: model.OpQueued, Created: ago(2 * time.Second), Joined: 2})
	})
	c.pass(pollEvery)
	c.press("o", "C")
	if s := c.screen(t); lineOf(s, "cancel recreate web-2", "queued by bob") < 0 || lineOf(s, "cancel delete web-3", "queued by alice") < 0 {
		t.Fatalf("\n%s", s)
	}
	c.typed("delete")
	c.press("enter")
	if s := c.screen(t); lineOf(s, "Withdraw delete of web-3?") < 0 || lineOf(s, "alice (you) asked for it 2s ago") < 0 || lineOf(s, "2 equal requests were folded into it.") < 0 {
		t.Fatalf("\n%s", s)
	}
	c.press("y")
	want := model.Command{Verb: model.VerbCancel, Op: 9, Host: "kvm3", Proxy: "web-3", By: "alice"}
	if len(c.eng.cmds) != 1 || c.eng.cmds[0] != want {
		t.Fatalf("sent %+v", c.eng.cmds)
	}
	c.eng.finish(model.OpCanceled, "withdrawn by alice")
	c.pass(pollEvery)
	if s := c.foot(t); s != " cancel web-3: withdrawn by alice" {
		t.Errorf("%q", s)
	}
}

// A bad file can be read again, and is not offered as if it could be applied; a
// long plan says what the question leaves out.
func TestReload_badFileAndLongPlan(t *testing.T) {
	c := newConsole(t, managedFleet(), 80, 24)
	c.eng.publish(func(s *model.Snapshot) {
		s.Notices = []model.Notice{{Reload: true, Level: model.NoticeWarn, Text: "the configuration file is not good, and nothing of it is applied: line 3: no value"}}
	})
	c.pass(pollEvery)
	c.press("ctrl+r")
	if s := c.screen(t); lineOf(s, "Read the configuration file again?") < 0 || lineOf(s, "line 3: no value") < 0 || lineOf(s, "[ cancel esc ]     read again y") < 0 {
		t.Errorf("\n%s", s)
	}
	c.press("esc")
	c.eng.publish(func(s *model.Snapshot) {
		s.Notices[0].Plan = nil
		for i := range 20 {
			s.Notices[0].Plan = append(s.Notices[0].Plan, "change "+string(rune('a'+i)))
		}
	})
	c.pass(pollEvery)
	c.press("ctrl+r")
	if s := c.screen(t); lineOf(s, "change h") < 0 || lineOf(s, "change i") >= 0 || lineOf(s, "and 12 more: P lists all") < 0 {
		t.Errorf("\n%s", s)
	}
	c.press("esc", "P")
	if s := c.screen(t); lineOf(s, "change q") < 0 {
		t.Errorf("\n%s", s)
	}
}
