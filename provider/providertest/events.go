package providertest

import (
	"slices"

	"virdeck/model"
	"virdeck/provider"
)

func eventCases() []testCase {
	return []testCase{
		{"events are triggers: what changes a domain is told in time", eventsTold},
		{"events are resubscribed after a redial, which is told itself", eventsAfterRedial},
	}
}

// told waits for an event about a domain, or about the host for "", that came
// after the first n.
func (c *suite) told(n int, domain, after string) {
	c.Helper()
	c.await(c.pat.Event, "an event after: "+after, func() bool {
		evs := c.rig.Events()
		return slices.ContainsFunc(evs[min(n, len(evs)):], func(e provider.Event) bool { return e.Domain == domain && e.What != "" })
	})
}

// subscribed waits until the host has said that it listens.
func (c *suite) subscribed() {
	c.Helper()
	c.told(0, "", "the link came up")
}

// causes does something to a guest, and waits to be told.
func (c *suite) causes(f Fault, g Guest) {
	c.Helper()
	n := len(c.rig.Events())
	c.do(f, g)
	c.told(n, c.rig.Name(g), f.String())
}

func eventsTold(c *suite) {
	c.subscribed()
	c.causes(AgentStop, Bridged)
	c.causes(AgentStart, Bridged)
	c.causes(DomainPause, NAT)
	c.causes(DomainResume, NAT)
	c.causes(DomainStart, Off)
	c.causes(DomainDestroy, Off)
	n := len(c.rig.Events())
	if err := c.write(c.host.Start, Off); err != nil {
		c.Fatal(err)
	}
	c.told(n, c.rig.Name(Off), "a start of our own")
	// An event outdates what was shared before it.
	in, err := c.get(passing("NAT guest booting"), Off)
	if err != nil || in.Domain != model.DomainRunning {
		c.Errorf("after the event: domain %v, %v", in.Domain, err)
	}
}

func eventsAfterRedial(c *suite) {
	c.subscribed()
	n := len(c.rig.Events())
	c.do(DaemonKill, NAT)
	c.await(c.pat.Event, "the link is down", func() bool { return !c.up() })
	c.do(DaemonStart, NAT)
	c.await(c.pat.Recover, "the link is up", c.up)
	c.told(n, "", "the link came up again")
	c.causes(AgentStop, Bridged)
}
