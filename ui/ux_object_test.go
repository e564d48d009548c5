package ui

import (
	"slices"
	"strings"
	"testing"

	"virdeck/model"
)

// An act of the palette takes what it is about: wherever the cursor is, whatever
// is marked, on any page.
func TestPalette_actsTakeAnObject(t *testing.T) {
	for _, tt := range []struct {
		typed, asks, sent string
	}{
		{"recreate web-3", "Make web-3 anew on kvm3?", "recreate kvm3/web-3"},
		{"delete web-3", "Delete the VM of web-3 on kvm3?", "delete kvm3/web-3"},
		{"restart p-01", "Restart p-01 on beelink?", "restart beelink/p-01"},
		{"stop p-01", "Stop p-01 on beelink?", "stop beelink/p-01"},
		{"manage p-02", "Manage p-02 on beelink?", "manage beelink/p-02"},
		{"release p-02", "Release p-02 on beelink?", "release beelink/p-02"},
		{"drain p-01", "", "drain beelink/p-01"},
		{"drain ext-1", "Drain ext-1?", "drain (external)/ext-1"},
		{"reconcile web-3", "", "reconcile kvm3/web-3"},
		{"reconcile host beelink", "", "reconcile host beelink/"},
		{"reconnect beelink", "Reconnect the libvirt link of beelink?", "reconnect beelink/"},
		{"reconnect kvm2", "", "reconnect kvm2/"},
	} {
		for place, keys := range map[string][]string{
			"the proxies": nil, "the hosts": {"shift+tab"}, "the log": {"tab"}, "the plan": {"P"}, "a page": {"enter"}, "marks": {"space", "space"},
		} {
			t.Run(tt.typed+" on "+place, func(t *testing.T) {
				c := at(t, "web-1", 120, 40)
				c.press(keys...)
				pages, cursor := len(c.stack), c.cursor()
				c.by(tt.typed)
				if (c.dialog == nil) != (tt.asks == "") || c.dialog != nil && c.dialog.title != tt.asks {
					t.Fatalf("asks %+v, says %q", c.dialog, c.foot(t))
				}
				if c.dialog != nil {
					c.press("y")
				}
				if got := c.sent(); !slices.Equal(got, []string{tt.sent}) {
					t.Errorf("sent %v", got)
				}
				if len(c.stack) != pages || c.cursor() != cursor {
					t.Errorf("moved to %s, %d pages", c.cursor(), len(c.stack))
				}
			})
		}
	}
}

// Names are completed after the act, and only there; without one the act is about
// what is selected.
func TestPalette_completesObjects(t *testing.T) {
	c := at(t, "web-1", 120, 40)
	c.press(":")
	c.typed("recr")
	if s := c.screen(t); lineOf(s, "> recreate", "key X") < 0 || strings.Contains(s, "recreate p-01") {
		t.Errorf("\n%s", s)
	}
	c.press("tab")
	if s := c.screen(t); lineOf(s, " : recreate ") < 0 || lineOf(s, "> recreate ", "key X") < 0 || lineOf(s, "recreate p-01", "proxy on beelink") < 0 {
		t.Errorf("\n%s", s)
	}
	c.typed("web-")
	if s := c.screen(t); lineOf(s, "> recreate web-1", "proxy on kvm3") < 0 || lineOf(s, "recreate web-5") < 0 || strings.Contains(s, "recreate p-01") {
		t.Errorf("\n%s", s)
	}
	valid(t, c)
	c.press("down", "down", "tab")
	if got := c.input.Value(); got != "recreate web-3" {
		t.Errorf("completed to %q", got)
	}
	c.press("enter")
	if c.dialog == nil || c.dialog.title != "Make web-3 anew on kvm3?" {
		t.Errorf("%+v", c.dialog)
	}
	c.press("esc")
	c.by("recreate")
	if c.dialog == nil || c.dialog.title != "Make web-1 anew on kvm3?" {
		t.Errorf("%+v", c.dialog)
	}
	c.press("esc")
	c.by("recreate nosuch")
	if s := c.foot(t); s != " nothing is called recreate nosuch" || c.dialog != nil {
		t.Errorf("%q", s)
	}
	c.by("recreate p-01")
	if s := c.foot(t); !strings.Contains(s, "p-01 is adopted: only VMs that virdeck made") || c.dialog != nil {
		t.Errorf("%q", s)
	}
	c = at(t, "web-1", 120, 40, func(o *Options) { o.ReadOnly = true })
	c.by("recreate web-3")
	if s := c.foot(t); s != " ! this session may only look" || c.dialog != nil {
		t.Errorf("%q", s)
	}
}

// What the engine would refuse anyway is refused before the question.
func TestUX06_refusedBeforeTheQuestion(t *testing.T) {
	const why = "p-02 is declared in the configuration: take it out there"
	for _, tt := range []struct{ verb, proxy string }{
		{"release", "p-02"}, {"manage", "p-02"}, {"restart", "p-02"}, {"stop", "p-02"}, {"recreate", "web-1"}, {"delete", "web-1"}, {"drain", "ext-1"},
	} {
		c := at(t, "p-01", 120, 40)
		c.eng.unfit = map[string]error{tt.verb + " " + tt.proxy: model.Refuse("%s", why)}
		c.by(tt.verb + " " + tt.proxy)
		if s := c.foot(t); c.dialog != nil || len(c.eng.cmds) != 0 || !strings.Contains(s, why) {
			t.Errorf("%s: said %q, dialog %v, sent %v", tt.verb, s, c.dialog != nil, c.sent())
		}
	}
	c := at(t, "web-1", 120, 40)
	c.eng.unfit = map[string]error{"delete web-2": model.Refuse("web-2 is busy")}
	c.press("space", "space", "delete")
	if c.dialog == nil || lineOf(c.screen(t), "Not among them: web-2 is busy") < 0 {
		t.Errorf("\n%s", c.screen(t))
	}
	c = newConsole(t, managedFleet(), 120, 40)
	c.eng.unfit = map[string]error{"adopt build-vm": model.Refuse("a member of pool web may be called so")}
	c.by("adopt build-vm")
	c.press("ctrl+s")
	if s := c.foot(t); c.dialog != nil || c.form == nil || !strings.Contains(s, "a member of pool web may be called so") {
		t.Errorf("said %q", s)
	}
}
