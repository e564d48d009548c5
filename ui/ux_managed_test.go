package ui

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"virdeck/model"
)

// at opens a console on the crafted managed fleet with the cursor on a proxy.
func at(t *testing.T, name model.ProxyName, w, h int, change ...func(*Options)) *console {
	t.Helper()
	c := newConsole(t, managedFleet(), w, h, change...)
	c.goToProxy(name)
	c.dirty = true
	if c.cursor() != string(name) {
		t.Fatalf("on %s, not on %s", c.cursor(), name)
	}
	return c
}

// by does an act of the palette by its name.
func (c *console) by(name string) {
	c.press(":")
	c.typed(name)
	c.press("enter")
}

// Nothing that removes or marks a VM is sent without a yes, whose key is not the
// one that asked, and cancel has the focus.
func TestUX05_managedActsAsk(t *testing.T) {
	acts := []struct {
		name  string
		do    func(*console)
		proxy model.ProxyName
		again string // the key that asked
		sent  string
		says  []string
	}{
		{"recreate", func(c *console) { c.press("X") }, "web-1", "X", "recreate kvm3/web-1",
			[]string{"Make web-1 anew on kvm3?", "its VM is removed with its disk", "Pool web is left with 2 in rotation.", "It counts against the budget of kvm3 (5/5 in 1h, next 12m)"}},
		{"delete", func(c *console) { c.press("delete") }, "web-1", "delete", "delete kvm3/web-1",
			[]string{"Delete the VM of web-1 on kvm3?", "It stays declared: S makes it again."}},
		{"manage", func(c *console) { c.by("manage") }, "p-01", "m", "manage beelink/p-01",
			[]string{"Manage p-01 on beelink?", "writes its mark", "starts it again by itself when it stops, within the budget", ":release takes the mark off again."}},
		{"release", func(c *console) { c.by("release") }, "p-01", "r", "release beelink/p-01",
			[]string{"Release p-01 on beelink?", "Domain p-01 is left as it is."}},
		{"cancel", func(c *console) { c.press("C") }, "web-1", "C", "cancel kvm3/web-2",
			[]string{"Withdraw recreate of web-2?", "bob asked for it 9s ago; it has not begun."}},
		{"reload", func(c *console) { c.press("ctrl+r") }, "web-1", "ctrl+r", "reload /",
			[]string{"Apply the configuration file?", "pool web: count 5 -> 6: 1 member more", "A bad file changes nothing."}},
	}
	for _, a := range acts {
		t.Run(a.name, func(t *testing.T) {
			for _, no := range [][]string{{"enter"}, {"esc"}, {"n"}, {a.again, "enter"}, {a.again, a.again, "esc"}, {"tab", "tab", "enter"}} {
				c := at(t, a.proxy, 120, 40)
				a.do(c)
				if c.dialog == nil {
					t.Fatalf("no question: %q", c.foot(t))
				}
				c.press(no...)
				if len(c.eng.cmds) != 0 || c.dialog != nil {
					t.Errorf("%v: sent %v, dialog %v", no, c.sent(), c.dialog != nil)
				}
			}
			c := at(t, a.proxy, 80, 24)
			a.do(c)
			s := strings.Join(strings.Fields(strings.ReplaceAll(c.screen(t), "│", " ")), " ")
			for _, line := range c.dialog.body {
				s += " " + line.plain()
			}
			for _, w := range a.says {
				if !strings.Contains(s, w) {
					t.Errorf("no %q in\n%s", w, c.screen(t))
				}
			}
			c.press("y")
			if got := c.sent(); !slices.Equal(got, []string{a.sent}) {
				t.Errorf("sent %v, want %s", got, a.sent)
			}
			c = at(t, a.proxy, 120, 40, func(o *Options) { o.ReadOnly = true })
			a.do(c)
			if c.foot(t) != " ! this session may only look" || c.dialog != nil {
				t.Errorf("a session that may only look: %q", c.foot(t))
			}
		})
	}
}

// What was seen when the key was pressed is checked again at the yes.
func TestUX04_managedActsAreCheckedAgain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		do     func(*console)
		proxy  model.ProxyName
		change func(*model.Snapshot)
		want   string
	}{
		{"another VM", func(c *console) { c.press("X") }, "web-1", func(s *model.Snapshot) {
			s.Hosts[2].Proxies[0].Managed.UID = "another"
		}, "not done: web-1 has another VM since you asked"},
		{"not managed any more", func(c *console) { c.press("delete") }, "web-1", func(s *model.Snapshot) { s.Hosts[2].Proxies[0].Managed = nil }, "not done: web-1 is not managed any more"},
		{"gone", func(c *console) { c.press("delete") }, "web-1", func(s *model.Snapshot) { s.Hosts[2].Proxies = s.Hosts[2].Proxies[1:] }, "not done: web-1 is gone"},
		{"another domain", func(c *console) { c.by("manage") }, "p-01", func(s *model.Snapshot) { s.Hosts[0].Proxies[0].Spec.Domain = "z" }, "not done: p-01 is adopted now, domain z: not as it was when you asked"},
		{"begun", func(c *console) { c.press("C") }, "web-1", func(s *model.Snapshot) {
			s.Ops = []model.Op{{ID: 3, Command: model.Command{Verb: model.VerbRecreate, Host: "kvm3", Proxy: "web-2"}, State: model.OpRunning, Phase: "drains"}}
		}, "not done: recreate of web-2 has begun: drains"},
		{"another file", func(c *console) { c.press("ctrl+r") }, "web-1", func(s *model.Snapshot) {
			s.Notices = []model.Notice{{Reload: true, Text: "the configuration file has changed and is not applied", Plan: []string{"pool web: removed"}}}
		}, "not done: the configuration file, or what it would change, is another since you asked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := at(t, tt.proxy, 120, 40)
			tt.do(c)
			c.eng.publish(tt.change)
			c.pass(pollEvery)
			c.press("y")
			if len(c.eng.cmds) != 0 || !strings.Contains(c.foot(t), tt.want) {
				t.Errorf("sent %v, said %q", c.sent(), c.foot(t))
			}
		})
	}
}

// Several need the name that they have in common, typed; y is a letter of it.
func TestUX05_severalNeedATypedName(t *testing.T) {
	for _, key := range []string{"X", "delete"} {
		for _, no := range [][]string{{"enter"}, {"esc"}, {"y", "enter", "esc"}, {"w", "e", "enter", "esc"}, {"w", "e", "b", "x", "enter", "esc"}, {key, "enter", "esc"}} {
			c := newConsole(t, managedFleet(), 120, 40)
			c.press("3", "g", "space", "space", key)
			if c.dialog == nil || c.dialog.wants != "web" {
				t.Fatalf("%s: %+v", key, c.dialog)
			}
			c.press(no...)
			if len(c.eng.cmds) != 0 || c.dialog != nil {
				t.Errorf("%s, %v: sent %v, dialog %v", key, no, c.sent(), c.dialog != nil)
			}
		}
	}
	c := newConsole(t, managedFleet(), 120, 40)
	c.press("3", "g", "space", "space", "X")
	c.Update(tea.PasteMsg{Content: "web"})
	if c.dialog.typed != "" {
		t.Error("a paste types the name")
	}
	c.press("w", "x", "backspace", "e", "b")
	valid(t, c)
	c.press("enter")
	if got := c.sent(); len(got) != 2 || !strings.HasPrefix(got[0], "recreate kvm3/web-") {
		t.Errorf("sent %v", got)
	}
	// Of several pools: the fleet's name. One that is not managed is named, and left out.
	c = newConsole(t, managedFleet(), 120, 40)
	c.eng.publish(func(s *model.Snapshot) { s.Hosts[2].Proxies[0].Spec.Pool = "api" })
	c.pass(pollEvery)
	for _, n := range []model.ProxyName{"web-1", "web-2", "p-01"} {
		c.marks[n] = struct{}{}
	}
	c.press("3", "delete")
	if c.dialog == nil || c.dialog.wants != "home" || lineOf(c.screen(t), "Not among them: p-01 is adopted: only VMs") < 0 {
		t.Fatalf("\n%s", c.screen(t))
	}
	c.typed("home")
	c.press("enter")
	if got := c.sent(); !slices.Equal(got, []string{"delete kvm3/web-1", "delete kvm3/web-2"}) {
		t.Errorf("sent %v", got)
	}
}

// A key that cannot act on this one says why.
func TestUX06_managedKeysThatCannotActSayWhy(t *testing.T) {
	for _, tt := range []struct {
		name  string
		proxy model.ProxyName
		do    func(*console)
		want  string
	}{
		{"recreate of an adopted one", "p-01", func(c *console) { c.press("X") }, "p-01 is adopted: only VMs that virdeck made are removed or made anew"},
		{"delete of an external one", "ext-1", func(c *console) { c.press("delete") }, "ext-1 is external: only VMs that virdeck made are removed or made anew"},
		{"manage of a managed one", "web-1", func(c *console) { c.by("manage") }, "web-1 is managed already"},
		{"manage of an external one", "ext-1", func(c *console) { c.by("manage") }, "ext-1 is external: it has no VM that could be marked"},
		{"manage on a dead link", "q-01", func(c *console) { c.by("manage") }, "the link of kvm2 is down: c reconnects it"},
		{"release of a made one", "web-1", func(c *console) { c.by("release") }, "web-1 was made by virdeck: take it out of the configuration, or delete it"},
		{"restart of one that is being made", "web-4", func(c *console) { c.press("x") }, "web-4 has no complete VM: its create is under way"},
		{"stop of one that has none", "web-5", func(c *console) { c.press("T") }, "web-5 has no VM: the last write failed for good; r tries again"},
		{"adopt on the externals", "ext-1", func(c *console) { c.press("A") }, "external proxies have no domains"},
		{"adopt where nothing is", "q-01", func(c *console) { c.press("A") }, "kvm2 has no domain that could be adopted"},
		{"adopt on the plan", "p-01", func(c *console) { c.press("P", "A") }, "this page is not about one host"},
		{"recreate on the plan", "web-1", func(c *console) { c.press("P", "X") }, "this page is not about one proxy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := at(t, tt.proxy, 120, 40)
			tt.do(c)
			if s := c.foot(t); !strings.Contains(s, tt.want) || c.dialog != nil || len(c.eng.cmds) != 0 {
				t.Errorf("said %q, dialog %v, sent %v", s, c.dialog != nil, c.sent())
			}
		})
	}
	c := at(t, "web-1", 120, 40)
	c.eng.publish(func(s *model.Snapshot) {
		s.Notices, s.Ops = nil, nil
		s.Hosts[2].Proxies[0].Managed.Wish = "gone"
		w := s.Hosts[2].Proxies[1].Managed
		w.Template, w.Adopted = "", true
	})
	c.pass(pollEvery)
	for _, tt := range []struct {
		proxy model.ProxyName
		key   string
		want  string
	}{
		{"web-1", "ctrl+r", "no change of the configuration file has been announced: nothing to apply"},
		{"web-1", "C", "no operation is queued"},
		{"web-1", "delete", "web-1 is being removed, or was, already; S makes it again"},
		{"web-2", "X", "web-2 was adopted: virdeck did not make its VM and cannot make it anew"},
	} {
		c.goToProxy(tt.proxy)
		c.press(tt.key)
		if s := c.foot(t); !strings.Contains(s, tt.want) || c.dialog != nil {
			t.Errorf("%s of %s: %q", tt.key, tt.proxy, s)
		}
	}
}

// A managed proxy that has no VM can be started: that makes one. An adopted one
// cannot.
func TestUX05_startMakesWhatIsNotThere(t *testing.T) {
	c := at(t, "web-5", 120, 40)
	c.eng.publish(func(s *model.Snapshot) {
		v := s.Hosts[2].Proxies[4].Managed
		v.Latched, v.Wish = false, "gone"
		s.Hosts[0].Proxies[0].Domain = model.DomainMissing
	})
	c.pass(pollEvery)
	c.press("T")
	if s := c.foot(t); !strings.Contains(s, "web-5 has no VM; S has it made") {
		t.Errorf("%q", s)
	}
	c.press("S")
	if s := c.screen(t); lineOf(s, "Start web-5 on kvm3?") < 0 || lineOf(s, "Where there is no VM, it is made") < 0 {
		t.Fatalf("\n%s", s)
	}
	c.press("y")
	if got := c.sent(); !slices.Equal(got, []string{"start kvm3/web-5"}) {
		t.Errorf("sent %v", got)
	}
	c.goToProxy("p-01")
	c.press("S")
	if s := c.foot(t); !strings.Contains(s, "p-01: its domain is not defined on beelink") || c.dialog != nil {
		t.Errorf("%q", s)
	}
}

// A promoted VM is not promised to come back: virdeck did not make it.
func TestUX04_deleteOfAPromotedOneIsForGood(t *testing.T) {
	c := at(t, "web-2", 120, 40)
	c.eng.publish(func(s *model.Snapshot) {
		v := s.Hosts[2].Proxies[1].Managed
		v.Template, v.Adopted = "", true
	})
	c.pass(pollEvery)
	says := func() string {
		var s []string
		for _, l := range c.dialog.body {
			s = append(s, l.plain())
		}
		return strings.Join(s, " ")
	}
	c.press("delete")
	if s := says(); !strings.Contains(s, "removed for good") || strings.Contains(s, "S makes it again") {
		t.Error(s)
	}
	c.press("esc")
	c.eng.publish(func(s *model.Snapshot) {
		p := s.Hosts[2].Proxies[1]
		p.Managed.Wish, p.Managed.Plan = "gone", "it is not wanted any more"
		p.State, p.Domain, p.Health.InRotation, p.IP = model.StatePending, model.DomainMissing, false, netip.Addr{}
	})
	c.pass(pollEvery)
	c.press("S")
	if s := c.foot(t); !strings.Contains(s, "web-2: its domain is not defined on kvm3") || c.dialog != nil {
		t.Errorf("%q", s)
	}
	c.press("delete")
	if s := c.foot(t); !strings.Contains(s, "already; virdeck did not make it, and cannot make it again") || c.dialog != nil {
		t.Errorf("%q", s)
	}
	p, h := c.snap.Proxy("web-2")
	if tale := c.story(p, h); !strings.Contains(tale.did, "cannot make it again") || strings.Contains(tale.can, "S makes") {
		t.Errorf("%+v", tale)
	}
	c.eng.publish(func(s *model.Snapshot) {
		s.Hosts[2].Proxies[1].Managed.Wish = "run"
	})
	c.pass(pollEvery)
	c.marks["web-1"], c.marks["web-2"] = struct{}{}, struct{}{}
	c.press("delete")
	if s := says(); !strings.Contains(s, "It stays declared: S makes it again.") || !strings.Contains(s, "web-2: It leaves the rotation and drains; then its domain is removed for good.") {
		t.Error(s)
	}
}
