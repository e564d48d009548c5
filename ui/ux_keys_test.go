package ui

import (
	"slices"
	"strings"
	"testing"

	"virdeck/model"
)

// What a toast says of one page is not shown on another; an error stays.
func TestUX25_toastGoesWithItsPage(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("enter", "w")
	if c.toast == nil {
		t.Fatal("nothing said")
	}
	c.press("esc")
	if s := c.foot(t); c.toast != nil || !strings.Contains(s, "r reconcile") {
		t.Errorf("the hint of another page hides the keys: %q", s)
	}
	c.press("w", "tab")
	if c.toast != nil {
		t.Error("it stays when another pane has the keys")
	}
	c.press("shift+tab")
	c.eng.refuse = model.Refuse("no")
	c.press("enter", "r", "esc")
	if s := c.foot(t); s != " ! reconcile refused: p-04: no" {
		t.Errorf("an error goes with its page: %q", s)
	}
}

// A toast too long for its line is not cut, and the layout stands.
func TestUX25_longToastTakesLinesAbove(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.eng.refuse = model.Refuse("the host is busy with a migration that somebody else has started, and takes no other command until it has ended")
	was := strings.Split(c.screen(t), "\n")
	c.press("r")
	if s := c.foot(t); s != " ! reconcile refused: p-04: the host is busy with a migration that somebody else has started, and takes no other command until it has ended" {
		t.Errorf("cut: %q", s)
	}
	is := strings.Split(c.screen(t), "\n")
	if len(is) != len(was) || !slices.Equal(was[:17], is[:17]) {
		t.Errorf("the layout moved:\n%s", c.screen(t))
	}
}

// The pane that has the keys is marked by a sign, with colours or without.
func TestUX12_focusedPaneIsMarkedWithoutColour(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	titles := [][]string{{"» beelink / proxies"}, {"» log"}, {"»  HOST"}}
	for i, words := range titles {
		s := c.screen(t)
		if lineOf(s, words...) < 0 || strings.Count(s, "»") != 1 {
			t.Errorf("pane %d:\n%s", i, s)
		}
		c.press("tab")
	}
}

// At 80 columns the footer keeps the ways on, and is about its own pane.
func TestUX12_footerIsOfThePane(t *testing.T) {
	for _, tt := range []struct {
		keys []string
		want []string
		not  []string
	}{
		{nil, []string{"r reconcile", "d drain", "e ", "l log", "? all keys", "q quit"}, []string{"v level"}},
		{[]string{"tab"}, []string{"/ search", "v level", "w wrap", "l log", "? all keys", "q quit"}, []string{"drain", "reconcile", "explain"}},
		{[]string{"shift+tab"}, []string{"r reconcile", "c ", "e ", "l log", "? all keys", "q quit"}, []string{"drain", "sort"}},
		{[]string{"e"}, []string{"esc back", "r reconcile", "d drain", "? all keys"}, []string{"explain", "why"}},
		{[]string{"o"}, []string{"esc back"}, []string{"explain", "reconcile"}},
	} {
		c := newConsole(t, fleet(), 80, 24)
		c.press(tt.keys...)
		s := c.foot(t)
		for _, w := range tt.want {
			if !strings.Contains(s, w) {
				t.Errorf("%v: no %q in %q", tt.keys, w, s)
			}
		}
		for _, w := range tt.not {
			if strings.Contains(s, w) {
				t.Errorf("%v: %q in %q", tt.keys, w, s)
			}
		}
	}
}

// No key that a footer names is refused there.
func TestUX12_footerNamesNoKeyThatIsRefused(t *testing.T) {
	for _, page := range [][]string{nil, {"tab"}, {"shift+tab"}, {"enter"}, {"e"}, {"shift+tab", "enter"}, {"shift+tab", "e"}, {"o"}, {"?"}, {"l"}} {
		c := newConsole(t, fleet(), 200, 40)
		c.press(page...)
		at := c.place()
		for _, a := range c.actions {
			if a.hint&at == 0 {
				continue
			}
			if a.in&at == 0 {
				t.Errorf("%v: %s is named and does nothing", page, a.b.Help().Key)
				continue
			}
			c := newConsole(t, fleet(), 200, 40)
			c.press(page...)
			if at&anyLog != 0 { // where there is something to search for
				c.press("/")
				c.typed("held")
				c.press("enter")
			}
			c.toast = nil
			c.press(a.b.Keys()[0])
			if c.toast == nil {
				continue
			}
			for _, no := range []string{"does nothing", "not about", "already", "first / and", "is for the log", "the keys are on"} {
				if strings.Contains(c.toast.text, no) {
					t.Errorf("%v: %s is named and refused: %s", page, a.b.Help().Key, c.toast.text)
				}
			}
		}
	}
}
