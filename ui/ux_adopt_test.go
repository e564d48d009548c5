package ui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"virdeck/logbuf"
	"virdeck/model"
)

// Adoption shows its plan before its fields, asks, and sends what was typed.
func TestAdopt_form(t *testing.T) {
	c := newConsole(t, managedFleet(), 80, 24)
	c.press("3", "shift+tab", "enter", "A")
	s := c.screen(t)
	will, name := lineOf(s, "will", "Its addresses are read"), lineOf(s, "> name", "build-vm")
	if c.form == nil || will < 0 || name < will || lineOf(s, "Its definition, disks, metadata and power are not") < 0 || lineOf(s, "kept  Remembered in virdeck's store") < 0 {
		t.Fatalf("\n%s", s)
	}
	v := c.View()
	if v.Cursor == nil || v.Cursor.Y != name || !strings.HasSuffix(ansi.Cut(strings.Split(s, "\n")[name], 0, v.Cursor.X), "build-vm") {
		t.Errorf("the cursor is at %+v:\n%s", v.Cursor, s)
	}
	c.press("backspace", "backspace", "backspace", "tab", "backspace")
	c.typed("9")
	c.press("enter", "space", "enter", "enter")
	c.typed("ops")
	c.press("enter")
	c.Update(tea.PasteMsg{Content: "s3cret:y q"})
	if s := c.screen(t); strings.Contains(s, "s3cret") || lineOf(s, "> password  **********") < 0 || lineOf(s, "probe     connect") < 0 {
		t.Errorf("\n%s", s)
	}
	c.press("enter")
	if c.dialog == nil || len(c.eng.cmds) != 0 {
		t.Fatalf("no question: %q\n%s", c.foot(t), c.screen(t))
	}
	s = c.dialog.title
	for _, l := range c.dialog.body {
		s += " " + l.plain()
	}
	for _, w := range []string{"Adopt domain build-vm on kvm3 as build?", "probed with connect on port 3129, credentials ops:***, and enters the rotation of pool default", "not touched"} {
		if !strings.Contains(s, w) {
			t.Errorf("no %q in\n%s", w, c.screen(t))
		}
	}
	if lineOf(c.screen(t), "[ cancel esc ]     adopt y") < 0 {
		t.Errorf("\n%s", c.screen(t))
	}
	c.press("enter") // the focus is on cancel: back to the form, nothing lost
	if len(c.eng.cmds) != 0 || c.dialog != nil || c.form == nil {
		t.Fatalf("sent %v, dialog %v, form %v", c.sent(), c.dialog != nil, c.form != nil)
	}
	c.press("enter", "y")
	if len(c.eng.cmds) != 1 || c.form != nil {
		t.Fatalf("sent %v", c.sent())
	}
	got := c.eng.cmds[0]
	want := model.ProxySpec{Name: "build", Host: "kvm3", Backing: model.BackingAdopted, Domain: "build-vm", Port: 3129, Probe: model.ProbeConnect,
		Creds: model.Credentials{User: "ops", Password: "s3cret:y q"}, Pool: "default"}
	if got.Verb != model.VerbAdopt || got.Host != "kvm3" || got.Adopt == nil || !got.Adopt.Equal(want) || got.By != "alice" {
		t.Errorf("sent %+v, %+v", got, got.Adopt)
	}
	if s := c.foot(t); s != " adopt build: asked" {
		t.Errorf("%q", s)
	}
	c.eng.finish(model.OpDone, "adopted")
	c.pass(pollEvery)
	recs := c.opts.Ring.After(0, 1000)
	if last := recs[len(recs)-1]; last.Message != "adopt build: adopted" {
		t.Errorf("the log ends with %q", last.Message)
	}
	for _, rec := range recs {
		if strings.Contains(fmt.Sprint(rec), "s3cret") {
			t.Errorf("the password is in the log: %v", rec)
		}
	}
}

// What is wrong is said, and the field that it is in gets the keys.
func TestAdopt_mistakes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fill  func(*console)
		field int
		want  string
	}{
		{"no name", func(c *console) { c.form.fields[fName].SetValue("") }, fName, "a name is needed"},
		{"no such name", func(c *console) { c.form.fields[fName].SetValue("Build VM") }, fName, "a name has a to z"},
		{"a name of another", func(c *console) { c.form.fields[fName].SetValue("web-1") }, fName, "there is a proxy web-1 already, on kvm3"},
		{"a name of a member to come", func(c *console) { c.form.fields[fName].SetValue("web-70") }, fName, "a member of pool web may be called web-70"},
		{"port 0", func(c *console) { c.form.fields[fPort].SetValue("0") }, fPort, "the port is a number from 1 to 65535"},
		{"port 65536", func(c *console) { c.form.fields[fPort].SetValue("65536") }, fPort, "the port is a number from 1 to 65535"},
		{"a word", func(c *console) { c.form.fields[fPort].SetValue("http") }, fPort, "the port is a number from 1 to 65535"},
		{"no pool", func(c *console) { c.form.fields[fPool].SetValue("") }, fPool, "the pool: a name is needed"},
		{"no user", func(c *console) { c.form.fields[fPassword].SetValue("x") }, fUser, "a password needs a user"},
		{"no password", func(c *console) { c.form.fields[fUser].SetValue("x") }, fPassword, "a user needs a password"},
		{"a colon", func(c *console) { c.form.fields[fUser].SetValue("a:b") }, fUser, "a user has no colon in it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newConsole(t, managedFleet(), 80, 24)
			c.press("3", "A")
			tt.fill(c)
			c.press("ctrl+s")
			if !strings.Contains(c.foot(t), tt.want) || c.dialog != nil || c.form.at != tt.field || len(c.eng.cmds) != 0 {
				t.Errorf("said %q, field %d, dialog %v", c.foot(t), c.form.at, c.dialog != nil)
			}
		})
	}
	c := newConsole(t, managedFleet(), 80, 24)
	c.press("3", "A", "ctrl+s")
	c.eng.publish(func(s *model.Snapshot) { s.Hosts[2].Undeclared = nil })
	c.pass(pollEvery)
	c.press("y")
	if len(c.eng.cmds) != 0 || !strings.Contains(c.foot(t), "not done: domain build-vm cannot be adopted any more") {
		t.Errorf("sent %v, said %q", c.sent(), c.foot(t))
	}
	c.press("esc")
	if c.form != nil {
		t.Error("esc does not leave the form")
	}
}

// Of several domains one is chosen by name; one with our mark is not offered.
func TestAdopt_choice(t *testing.T) {
	c := newConsole(t, managedFleet(), 120, 30)
	c.press("1", "A")
	s := c.screen(t)
	if lineOf(s, "> adopt build-vm", "domain on beelink") < 0 || lineOf(s, "adopt win]52;c;AAAAxp", "domain on beelink") < 0 || strings.Contains(s, "home-web-9") || strings.Contains(s, "domain on kvm3") || strings.Contains(s, "key A") {
		t.Fatalf("\n%s", s)
	}
	c.typed("win")
	c.press("enter")
	if c.form == nil || c.form.domain != "win\x1b]52;c;AAAA\x07xp" || c.form.host != "beelink" || c.form.value(fName) != "" {
		t.Fatalf("%+v", c.form)
	}
	valid(t, c)
	c = newConsole(t, managedFleet(), 120, 30, func(o *Options) { o.ReadOnly = true })
	c.press("3", "A")
	if c.foot(t) != " ! this session may only look" || c.form != nil {
		t.Errorf("%q", c.foot(t))
	}
	c.pass(2e9)
	c.by("adopt build")
	if c.foot(t) != " ! this session may only look" || c.form != nil {
		t.Errorf("by name: %q", c.foot(t))
	}
}

// Every page and question about managed VMs keeps its frame at every size, has
// ASCII alone where there is nothing else, and lets nothing hostile through.
func TestManagedPages_wholeAsciiAndInert(t *testing.T) {
	evil := "x\x1b]52;c;QUJD\x07\x1b[2J\u009b31m\u202e\x9b\x00\x7fz"
	bad := func() *model.Snapshot {
		s := managedFleet()
		h := s.Hosts[2]
		h.Undeclared = []string{evil, evil + "2"}
		h.Orphans[0].Domain, h.Orphans[0].Wait, h.Orphans[0].Owner.Proxy = evil, evil, model.ProxyName(evil)
		for _, p := range h.Proxies {
			v := p.Managed
			v.UID, v.Domain, v.Template, v.SpecHash, v.BuiltHash, v.Wish, v.LastError, v.Plan = evil, evil, evil, evil, evil+"2", evil, evil, evil
			v.Owner = model.Owner{Fleet: evil, Proxy: model.ProxyName(evil), UID: evil, Controller: evil, SpecHash: evil, Pool: evil, Phase: model.MarkPhase(evil)}
			p.Spec.Pool, p.Spec.Domain, p.Reason = evil, evil, evil
		}
		h.Proxies[3].Managed.Write, h.Proxies[3].Managed.Step.Step = evil, evil
		for i := range s.Plan {
			it := &s.Plan[i]
			it.Host, it.Proxy, it.Domain, it.Verb, it.Why, it.Wait, it.Step.Step = model.HostName(evil), model.ProxyName(evil), evil, model.PlanVerb(evil), evil, evil, evil
		}
		for i := range s.Pools {
			p := &s.Pools[i]
			p.Name, p.Template, p.Wait, p.Placement = evil, evil, []string{evil}, map[model.HostName]int{model.HostName(evil): 1}
		}
		s.Notices[0].Text, s.Notices[0].Plan = evil, []string{evil}
		s.Ops[0].Command.Proxy, s.Ops[0].Command.By = model.ProxyName(evil), evil
		s.Fleet = evil
		return s
	}
	pages := [][]string{nil, {"P"}, {"P", "/", "x"}, {"o"}, {"3"}, {"3", "enter"}, {"3", "j", "enter"}, {"3", "j", "e"}, {"3", "shift+tab", "enter"}, {"3", "X"}, {"3", "space", "space", "X", "x"},
		{"3", "delete"}, {"C"}, {"ctrl+r"}, {"3", "A"}, {"3", "A", "enter"}, {"3", "A", "enter", "q", "tab", "tab", "tab", "u"}, {"3", "A", "enter", "q", "ctrl+s"}, {":", "m", "a"}, {"?"}}
	for _, keys := range pages {
		for _, dry := range []bool{false, true} {
			snap := bad()
			snap.DryRun = dry
			ring := logbuf.NewRing(4)
			c := newConsole(t, snap, 120, 40, func(o *Options) { o.Ring = ring })
			c.press(keys...)
			for _, w := range []int{40, 41, 60, 80, 100, 160} {
				for _, h := range []int{10, 11, 14, 24, 50} {
					c.Update(tea.WindowSizeMsg{Width: w, Height: h})
					valid(t, c)
					for _, r := range ansi.Strip(strings.ReplaceAll(c.View().Content, "\n", "")) {
						if r < 0x20 || (r >= 0x7f && r < 0xa0) || r == 0x202e {
							t.Fatalf("%v: %q on the screen", keys, r)
						}
					}
					if strings.Contains(c.View().Content, "\x1b[2J") || strings.Contains(c.View().Content, "\x1b]52") {
						t.Fatalf("%v: a sequence of somebody else's", keys)
					}
				}
			}
		}
		c := newConsole(t, managedFleet(), 160, 150, func(o *Options) { o.ASCII = true })
		c.press(keys...)
		for l := range strings.SplitSeq(c.screen(t), "\n") {
			if i := strings.IndexFunc(l, func(r rune) bool { return r > 0x7e }); i >= 0 {
				t.Errorf("%v: %q", keys, l)
			}
		}
	}
}

// The field that has the keys is in sight in the smallest window.
func TestAdopt_smallestWindow(t *testing.T) {
	c := newConsole(t, managedFleet(), 40, 10)
	c.press("3", "A")
	for i := range fFields {
		if s := c.screen(t); lineOf(s, "> "+fieldNames[i]) < 0 || lineOf(s, "enter next, then asks") < 0 {
			t.Errorf("field %d:\n%s", i, s)
		}
		valid(t, c)
		c.press("down")
	}
}
