package ui

import (
	"strings"
	"testing"
	"time"

	"virdeck/model"
)

// A page of a managed proxy says whose its VM is, what is done to it, and what
// failed, as the host said it.
func TestManagedPage(t *testing.T) {
	c := at(t, "web-2", 160, 50)
	c.press("enter")
	for _, w := range []string{"uid           0b6e4f1d-web-2", "template      debian-small", "wanted 5be41c07d2aa, built 11aa22bb33cc: another", "fleet home, phase ready, created 3d ago", "controller c-77aa10", "run  it is to be there and to run"} {
		if lineOf(c.screen(t), w) < 0 {
			t.Errorf("no %q in\n%s", w, c.screen(t))
		}
	}
	c = at(t, "web-5", 160, 50)
	c.press("enter")
	for _, w := range []string{"last error    host kvm3: define domain", "machine type 'pc-q35-99' is not supported", "next try      none before its spec changes, or r asks for one", "plan          it is declared and does not exist"} {
		if lineOf(c.screen(t), w) < 0 {
			t.Errorf("no %q in\n%s", w, c.screen(t))
		}
	}
	c.eng.publish(func(s *model.Snapshot) {
		v := s.Hosts[2].Proxies[4].Managed
		v.Latched, v.RetryAt, v.Fails = false, clock().Add(13*time.Second), 4
	})
	c.pass(pollEvery)
	if s := c.screen(t); lineOf(s, "next try      in 12s; 4 writes failed in a row") < 0 {
		t.Errorf("\n%s", s)
	}
	c = at(t, "web-4", 80, 24)
	c.press("e")
	if s := c.screen(t); lineOf(s, "Its VM is being made: upload base image 43%") < 0 || lineOf(s, "under way     create 15s upload base image") < 0 {
		t.Errorf("\n%s", s)
	}
}

// What is told of a managed proxy is what virdeck does with it: it is made and
// started again, other than an adopted one.
func TestManagedStories(t *testing.T) {
	c := newConsole(t, managedFleet(), 120, 40)
	make1 := func(change func(*model.ProxyView)) *model.ProxyView {
		p := proxy("web-1", "kvm3", model.StatePending, "")
		managed(p)
		change(p)
		return p
	}
	for _, tt := range []struct {
		name string
		p    *model.ProxyView
		want []string
	}{
		{"stopped by itself", make1(func(p *model.ProxyView) { p.Domain = model.DomainShutoff }), []string{"Its VM is shut off", "virdeck starts it again", "P shows"}},
		{"stopped by an operator", make1(func(p *model.ProxyView) { p.Domain, p.Managed.Wish = model.DomainShutoff, "stop" }), []string{"An operator stopped it", "S starts it"}},
		{"missing", make1(func(p *model.ProxyView) { p.Domain = model.DomainMissing }), []string{"virdeck makes it again", "within the budget"}},
		{"deleted", make1(func(p *model.ProxyView) {
			p.Domain, p.Managed.Wish, p.Managed.Plan = model.DomainMissing, "gone", "it is not wanted any more"
		}), []string{"An operator had its VM deleted", "S makes it again"}},
		{"retried", make1(func(p *model.ProxyView) {
			p.Managed.LastError, p.Managed.RetryAt, p.Managed.Plan = "no space", clock().Add(9*time.Second), "x"
		}), []string{"The last write for its VM failed: no space.", "tries again by itself in 9s", "r tries now"}},
		{"removed", make1(func(p *model.ProxyView) {
			p.State, p.Managed.Write, p.Managed.Step = model.StateDeleting, "delete", model.Progress{Step: "delete volume a"}
		}), []string{"Its VM is being removed: delete volume a"}},
		{"waits", make1(func(p *model.ProxyView) {
			p.Domain, p.Managed.Plan = model.DomainUnknown, "it is declared and does not exist; the budget is used up"
		}), []string{"Its VM is not there yet.", "the budget is used up"}},
	} {
		s := c.story(tt.p, c.snap.Hosts[2])
		all := s.is + " " + s.did + " " + s.can
		for _, w := range tt.want {
			if !strings.Contains(all, w) {
				t.Errorf("%s: no %q in %q", tt.name, w, all)
			}
		}
		for _, w := range []string{"starts no VM", "defines no domain"} {
			if strings.Contains(all, w) {
				t.Errorf("%s: %q", tt.name, all)
			}
		}
	}
}

func TestHostPage_orphansAndBudget(t *testing.T) {
	c := newConsole(t, managedFleet(), 160, 50)
	c.press("3", "shift+tab", "enter")
	for _, words := range [][]string{{"budget        5 of 5 replacements used in 1h: used up, the next is free in 12m"}, {"home-web-9-77b0", "made for web-9", "found 3m ago", "still there: removed in 7m0s, after the grace for orphans"},
		{"DOMAINS THAT NO PROXY DECLARES: A adopts one"}} {
		if lineOf(c.screen(t), words...) < 0 {
			t.Errorf("no %q in\n%s", words, c.screen(t))
		}
	}
}

// The page of a host says since when its link is down, when it is tried again and
// why; and what an operator must know of one whose events are missing.
func TestHostPage_linkDownAndEventsOff(t *testing.T) {
	s := fleet()
	s.Hosts[0].Link.EventsOff = "agent events: this function is not supported by the connection driver: \x1b[2J"
	c := newConsole(t, s, 160, 50)
	c.press("2", "shift+tab", "enter")
	for _, words := range [][]string{
		{"link          DOWN 12s"}, {"next dial     in 3s"}, {"last error    dial tcp 10.0.0.5:16509: connect: connection refused"}, {"              2s ago"}, {"last look     14s ago"},
	} {
		if lineOf(c.screen(t), words...) < 0 {
			t.Errorf("no %q in\n%s", words, c.screen(t))
		}
	}
	if lineOf(c.screen(t), "events") >= 0 {
		t.Errorf("events are missing here:\n%s", c.screen(t))
	}
	c.now = c.now.Add(48 * time.Second)
	c.Update(tickMsg{})
	if s := c.screen(t); lineOf(s, "link          DOWN 1m") < 0 || lineOf(s, "next dial") >= 0 {
		t.Errorf("a minute later:\n%s", s)
	}
	c = newConsole(t, s, 160, 50)
	c.press("1", "shift+tab", "enter")
	if s := c.screen(t); lineOf(s, "events        missing, so changes are seen at the next look: agent events: this function is not supported by the connection driver: [2J") < 0 ||
		lineOf(s, "link          up 26h") < 0 || lineOf(s, "last error    read tcp 10.0.0.9:51022") < 0 {
		t.Errorf("\n%s", s)
	}
}
