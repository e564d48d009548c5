package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"virdeck/model"
)

// hosts is a fleet of n hosts with two proxies each.
func hosts(n int) *model.Snapshot {
	s := fleet()
	s.Hosts = nil
	for i := range n {
		name := model.HostName(fmt.Sprintf("h-%02d", i+1))
		h := &model.HostView{Name: name, LastGood: ago(time.Second), Link: model.LinkStatus{State: model.LinkUp, Generation: 1, Slots: 4, Since: ago(time.Hour)}}
		for k := range 2 {
			p := proxy(fmt.Sprintf("%s-%d", name, k+1), name, model.StateReady, fmt.Sprintf("10.1.%d.%d", i, k+1))
			passes(p, 30, 31, 32, 33)
			h.Proxies = append(h.Proxies, p)
		}
		s.Hosts = append(s.Hosts, h)
	}
	return s
}

func hostOrder(c *console) string {
	var out []string
	for _, r := range c.hostRows {
		out = append(out, string(r.h.Name))
	}
	return strings.Join(out, " ")
}

func down(s *model.Snapshot, at ...int) {
	for _, i := range at {
		s.Hosts[i].Link.State, s.Hosts[i].Link.Since = model.LinkDown, ago(2*time.Second)
	}
}

// Hosts that are not up come first, and the header counts those that are down.
func TestUX08_hostsThatAreNotUpComeFirst(t *testing.T) {
	c := newConsole(t, hosts(12), 80, 24)
	if s := c.screen(t); lineOf(s, "12 hosts") != 0 || strings.Contains(s, "DOWN") {
		t.Errorf("\n%s", s)
	}
	c.eng.publish(func(s *model.Snapshot) { down(s, 4, 8, 11) })
	c.pass(time.Second)
	if s := c.screen(t); lineOf(s, "12 hosts, 3 DOWN") != 0 || lineOf(s, "5 h-05", "DOWN") != 2 || lineOf(s, "  h-12", "DOWN") != 4 {
		t.Errorf("\n%s", s)
	}
	c.eng.publish(func(s *model.Snapshot) { s.Hosts[6].Misconfig = "another UUID" })
	c.pass(time.Second)
	if got := hostOrder(c); !strings.HasPrefix(got, "h-05 h-07 h-09 h-12 h-01 h-02 h-03 h-04 h-06") {
		t.Errorf("order %s", got)
	}
	if c.hosts.sel != "h-01" {
		t.Errorf("the cursor went to %s", c.hosts.sel)
	}
	// A number is the host's own, wherever it stands.
	c.press("5")
	if c.hosts.sel != "h-05" {
		t.Errorf("5 goes to %s", c.hosts.sel)
	}
	c = newConsole(t, hosts(12), 160, 50)
	c.eng.publish(func(s *model.Snapshot) { down(s, 4, 8, 11) })
	c.pass(time.Second)
	if s := c.screen(t); lineOf(s, "12 hosts, 3 DOWN  24 proxies") != 0 {
		t.Errorf("\n%s", s)
	}
}

// The order of hosts stands still while a hand is on the keys.
func TestUX02_orderOfHostsIsFrozenAfterACursorKey(t *testing.T) {
	c := newConsole(t, hosts(6), 80, 24)
	c.pass(4 * time.Second)
	c.press("shift+tab", "j")
	was := hostOrder(c)
	c.eng.publish(func(s *model.Snapshot) { down(s, 4) })
	c.pass(2 * time.Second)
	if got := hostOrder(c); got != was {
		t.Errorf("hosts moved under the hand: %s", got)
	}
	c.press("j") // again, and the row under the cursor is the next one
	if c.hosts.sel != "h-03" || hostOrder(c) != was {
		t.Errorf("on %s, order %s", c.hosts.sel, hostOrder(c))
	}
	c.pass(4 * time.Second)
	if got := hostOrder(c); got != "h-05 h-01 h-02 h-03 h-04 h-06" || c.hosts.sel != "h-03" {
		t.Errorf("after 3s: %s, on %s", got, c.hosts.sel)
	}
}

// The selected proxy's reason and what can be done are in sight at 80x24, however
// many hosts and proxies there are.
func TestUX10_whyIsInSightAt80x24(t *testing.T) {
	for name, snap := range map[string]*model.Snapshot{"few": fleet(), "many hosts": hosts(12), "many proxies": big(312)} {
		t.Run(name, func(t *testing.T) {
			c := newConsole(t, snap, 80, 24)
			c.eng.publish(func(s *model.Snapshot) {
				p := s.Hosts[0].Proxies[0]
				without(p, model.StatePending, model.DomainShutoff)
				p.Reason = "domain is shut off"
			})
			c.pass(time.Second)
			c.press("/")
			c.typed("state:pending")
			c.press("enter")
			s := c.screen(t)
			if lineOf(s, "why   domain is shut off") < 0 || lineOf(s, "next  S starts it, after a question.") < 0 || lineOf(s, "log") < 0 {
				t.Errorf("\n%s", s)
			}
			valid(t, c)
		})
	}
}
