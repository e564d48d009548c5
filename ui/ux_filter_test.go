package ui

import (
	"testing"
)

// A term that there is not is remarked, not silently taken for a text; what may be
// part of an address is none.
func TestUX13_unknownTermsAreRemarked(t *testing.T) {
	for src, want := range map[string]string{
		"foo:x": "no term foo: (state host pool source)", "!foo:x": "no term foo: (state host pool source)",
		"state:foo": "no state foo", "source:dns=failed": "no source dns (lease agent arp)",
		"state:re": "", "source:ag": "", "fe80::1": "", "dead:beef": "", "10.0.0.1:3128": "", "host:x": "", "plain": "",
	} {
		if got := parseFilter(src).wrong; got != want {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
	c := newConsole(t, fleet(), 80, 24)
	c.press("/")
	c.typed("foo:x")
	if s := c.screen(t); lineOf(s, "/ foo:x", "no term foo: (state host pool source)") < 0 {
		t.Errorf("not said while it is typed:\n%s", s)
	}
	c.press("enter")
	if s := c.screen(t); lineOf(s, "no term foo: (state host pool source)") < 0 {
		t.Errorf("not said under the empty table:\n%s", s)
	}
}

func TestUX13_textMatchesTheHostToo(t *testing.T) {
	for text, want := range map[string]string{"(external)": "ext-1", "external": "ext-1", "kvm2": "q-01 q-02 q-03 q-04"} {
		c := newConsole(t, fleet(), 120, 40)
		c.press("0", "/")
		c.typed(text)
		if got := order(c); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
