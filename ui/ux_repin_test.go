package ui

import (
	"slices"
	"strings"
	"testing"

	"virdeck/model"
)

// Another machine is taken for a host after a question that names both, and not
// if a third one answers by then.
func TestRepin(t *testing.T) {
	begin := func(t *testing.T) *console {
		t.Helper()
		c := at(t, "p-01", 120, 40)
		c.eng.publish(func(s *model.Snapshot) {
			s.Hosts[0].UUID, s.Hosts[0].Shows = "pinned-uuid", "other-uuid"
			s.Hosts[0].Misconfig = "this is another machine"
		})
		c.pass(pollEvery)
		c.by("repin beelink")
		return c
	}
	t.Run("yes", func(t *testing.T) {
		c := begin(t)
		if s := c.screen(t); !strings.Contains(s, "Take another machine for beelink?") || !strings.Contains(s, "answers: other-uuid") || !strings.Contains(s, "pinned:  pinned-uuid") {
			t.Fatalf("asks\n%s", s)
		}
		c.press("y")
		if got := c.sent(); !slices.Equal(got, []string{"repin beelink/"}) {
			t.Errorf("sent %v", got)
		}
	})
	t.Run("a third machine", func(t *testing.T) {
		c := begin(t)
		c.eng.publish(func(s *model.Snapshot) { s.Hosts[0].Shows = "third-uuid" })
		c.pass(pollEvery)
		c.press("y")
		if got, says := c.sent(), c.foot(t); len(got) != 0 || !strings.Contains(says, "another machine answers for beelink than when you asked") {
			t.Errorf("sent %v, says %q", got, says)
		}
	})
	t.Run("refused", func(t *testing.T) {
		c := at(t, "p-01", 120, 40)
		c.eng.unfit = map[string]error{"repin beelink": model.Refuse("it is the machine that it always was")}
		c.by("repin beelink")
		if says := c.foot(t); c.dialog != nil || !strings.Contains(says, "it is the machine that it always was") {
			t.Errorf("asks %+v, says %q", c.dialog, says)
		}
	})
}

// A host that is only read is said to be, and why.
func TestHostDetail_readOnly(t *testing.T) {
	c := at(t, "p-01", 160, 50)
	c.eng.publish(func(s *model.Snapshot) { s.Hosts[0].Twin = "beelink and kvm2 show one host UUID" })
	c.pass(pollEvery)
	c.press("shift+tab", "enter")
	if s := c.screen(t); !strings.Contains(s, "read only") || !strings.Contains(s, "beelink and kvm2 show one host UUID") {
		t.Errorf("shows\n%s", s)
	}
}
