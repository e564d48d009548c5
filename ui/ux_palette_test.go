package ui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The palette goes to hosts and proxies, and does acts, by name.
func TestUX14_palette(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press(":")
	c.typed("kv")
	if s := c.screen(t); lineOf(s, "> kvm2", "host") < 0 || lineOf(s, " : kv", "enter does it") < 0 {
		t.Errorf("\n%s", s)
	}
	c.press("enter")
	if c.hosts.sel != "kvm2" || c.asking || c.palette != nil {
		t.Errorf("on %s, asking %v", c.hosts.sel, c.asking)
	}
	// A proxy of another host, from a page, under a filter that hides it.
	c.press("/")
	c.typed("q-01")
	c.press("enter", "enter", ":")
	c.typed("r-0")
	c.press("down", "tab", "enter")
	if c.cursor() != "r-02" || c.hosts.sel != "local" || len(c.stack) != 0 {
		t.Errorf("on %s of %s, %d pages", c.cursor(), c.hosts.sel, len(c.stack))
	}
	c.press(":")
	c.typed("drain")
	c.press("enter")
	if got := c.sent(); len(got) != 1 || got[0] != "drain local/r-02" {
		t.Errorf("sent %v", got)
	}
	for typed, want := range map[string]string{"nosuch": "nothing is called nosuch", "only hits": "only hits is for the log: tab goes there, l opens it"} {
		c.toast = nil
		c.press(":")
		c.typed(typed)
		valid(t, c)
		c.press("enter")
		if s := c.foot(t); !strings.Contains(s, want) {
			t.Errorf("%s: %q", typed, s)
		}
	}
	c.press(":")
	c.typed("drain")
	c.press("esc")
	if len(c.eng.cmds) != 1 || c.asking {
		t.Error("esc does not close it")
	}
	c.press("tab", ":")
	c.typed("stop")
	c.press("enter")
	if s := c.foot(t); !strings.Contains(s, "the keys are on the log") || c.dialog != nil {
		t.Errorf("an act from the log: %q", s)
	}
}

// ctrl+s writes what the log shows, for its owner alone, over nothing.
func TestUX18_saveTheLog(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	c := newConsole(t, fleet(), 80, 24)
	save := func() savedMsg {
		t.Helper()
		cmd := c.press("ctrl+s")
		if cmd == nil {
			t.Fatalf("no command: %q", c.foot(t))
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 && c.now.Equal(clock()) {
			t.Fatalf("the key itself has written: %v %v", files, err)
		}
		msg, ok := cmd().(savedMsg)
		if !ok || msg.err != nil {
			t.Fatalf("%+v", msg)
		}
		c.Update(msg)
		return msg
	}
	c.press("l")
	one := save()
	if s := c.foot(t); !strings.Contains(s, "saved 6 lines of the log to") || !strings.Contains(strings.ReplaceAll(s, " ", ""), filepath.Base(one.path)) {
		t.Errorf("%q", s)
	}
	got, err := os.ReadFile(one.path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got), "address=10.0.0.22  poll=2 of 3  last_probe=passed 1s ago") || strings.Contains(string(got), "\x1b") {
		t.Errorf("%s", got)
	}
	info, err := os.Stat(one.path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	c.now = c.now.Add(time.Millisecond) // within the same second
	two := save()
	if two.path == one.path || !strings.HasSuffix(two.path, "-2.txt") {
		t.Errorf("%s, then %s", one.path, two.path)
	}
	c = newConsole(t, fleet(), 80, 24, func(o *Options) { o.ReadOnly = true })
	if cmd := c.press("l", "ctrl+s"); cmd != nil || c.foot(t) != " ! this session may only look" {
		t.Errorf("a session that may only look: %q", c.foot(t))
	}
}
