package providertest

import (
	"errors"
	"net/netip"
	"slices"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// What the sources may say. ARP is a matter of luck everywhere: a busy or
// crowded table answers with nothing, and some hosts cannot read theirs, which
// counts as nothing too.
var (
	named  = []string{"addresses"}
	maybe  = []string{"addresses", "empty", "empty 1"}
	silent = []string{"empty", "empty 1"}
	gone   = []string{"failed 86"}
	noWay  = []string{"not_applicable"}
)

func addressCases() []testCase {
	return []testCase{
		{"a NAT guest is known to every source", func(c *suite) {
			in, err := c.get(steady("NAT"), NAT)
			c.expect(in, err, model.InstanceRunning, says{named, named, maybe})
		}},
		{"a bridged guest is known to its agent alone", func(c *suite) {
			in, err := c.get(steady("bridged"), Bridged)
			c.expect(in, err, model.InstanceRunning, says{noWay, named, silent})
			if in.Won != model.SourceAgent {
				c.Errorf("%v won, want the agent", in.Won)
			}
		}},
		{"a guest without an agent channel is known to the host", func(c *suite) {
			in, err := c.get(steady("no agent channel"), NoAgent)
			c.expect(in, err, model.InstanceRunning, says{named, noWay, maybe})
		}},
		{"a guest that is shut off", func(c *suite) {
			in, err := c.get(steady("shut off"), Off)
			c.expect(in, err, model.InstanceStopped, says{})
			if in.Domain != model.DomainShutoff {
				c.Errorf("domain %v, want shut off", in.Domain)
			}
		}},
		{"a missing guest is not found", func(c *suite) {
			in, err := c.get(steady("missing"), Missing)
			if !errors.Is(err, provider.ErrNotFound) {
				c.Errorf("Get: %v, want ErrNotFound", err)
			}
			c.outcomes(in, says{})
		}},
		{"a source that is turned off is not applicable", sourcesTurnedOff},
		{"a stopped agent: provisioning where nobody else knows", agentStopped},
		{"a stopped agent: the lease is enough", func(c *suite) {
			c.do(AgentStop, NAT)
			in, err := c.get(steady("NAT, agent stopped"), NAT)
			c.expect(in, err, model.InstanceRunning, says{named, gone, maybe})
		}},
		{"a hung agent costs seconds", agentHung},
		{"a paused guest: nobody is asked", paused},
		{"a boot: provisioning, then an address, and another incarnation", boot},
		{"a hint helps to choose and decides nothing", func(c *suite) {
			ctx, cancel := c.ctx(c.pat.Agent)
			defer cancel()
			in, err := c.ask(ctx, steady("bridged"), Bridged, provider.GetRequest{
				Sources: model.Sources(), Fresh: true, Hint: netip.MustParseAddr("192.0.2.77"),
			})
			c.expect(in, err, model.InstanceRunning, says{noWay, named, silent})
		}},
		{"an agent that lists no address is an answer", func(c *suite) {
			c.do(AgentBare, Bridged)
			in, err := c.get(steady("bridged, agent without addresses"), Bridged)
			c.expect(in, err, model.InstanceProvisioning, says{noWay, silent, silent})
		}},
		{"a lost lease is an answer", func(c *suite) {
			c.do(LeaseLose, NAT)
			in, err := c.get(steady("NAT, lease lost"), NAT)
			c.expect(in, err, model.InstanceRunning, says{silent, named, maybe})
		}},
		{"a network that is gone is no missing domain", func(c *suite) {
			if _, err := c.get(steady("NAT"), NAT); err != nil { // the network is known now
				c.Fatal(err)
			}
			c.do(NetworkGone, NAT)
			c.pause(2 * time.Second) // shared answers grow old
			in, err := c.get(steady("NAT, network undefined"), NAT)
			c.expect(in, err, model.InstanceRunning, says{{"failed 43"}, named, maybe})
		}},
		{"every source failing is transient", func(c *suite) {
			c.do(ARPFail, Bridged)
			c.do(AgentStop, Bridged)
			in, err := c.get(steady("bridged, agent stopped, ARP failing"), Bridged)
			if !errors.Is(err, provider.ErrTransient) || errors.Is(err, provider.ErrLinkDown) || errors.Is(err, provider.ErrNotAsked) {
				c.Errorf("Get: %v, want ErrTransient for what the sources said", err)
			}
			c.outcomes(in, says{noWay, gone, {"failed 1", "failed 38"}})
		}},
		{"a read that is refused with a write's permanent code is transient", func(c *suite) {
			c.do(Refused, Bridged)
			in, err := c.get(steady("bridged, reads refused"), Bridged)
			if !errors.Is(err, provider.ErrTransient) {
				c.Errorf("Get: %v, want ErrTransient: a read condemns nobody", err)
			}
			c.outcomes(in, says{noWay, {"failed 8"}, {"failed 8"}})
		}},
	}
}

func sourcesTurnedOff(c *suite) {
	for _, only := range model.Sources() {
		ctx, cancel := c.ctx(c.pat.Agent)
		in, err := c.ask(ctx, steady("NAT, "+only.String()+" alone"), NAT, provider.GetRequest{Sources: []model.Source{only}, Fresh: true})
		cancel()
		want := says{noWay, noWay, noWay}
		want[only] = named
		if only == model.SourceARP {
			want[only] = maybe
		}
		if err != nil {
			c.Fatalf("with %v alone: %v", only, err)
		}
		c.outcomes(in, want)
	}
	ctx, cancel := c.ctx(c.pat.Agent)
	defer cancel()
	in, err := c.ask(ctx, steady("NAT, no source"), NAT, provider.GetRequest{Fresh: true})
	if !errors.Is(err, provider.ErrTransient) {
		c.Errorf("nobody to ask: %v, want ErrTransient", err)
	}
	c.outcomes(in, says{noWay, noWay, noWay})
}

// agentStopped is the incident: the agent fails, ARP answers with nothing, and
// that is neither an error nor an address.
func agentStopped(c *suite) {
	before, err := c.get(steady("bridged"), Bridged)
	if err != nil {
		c.Fatal(err)
	}
	c.do(AgentStop, Bridged)
	in, err := c.get(steady("bridged, agent stopped"), Bridged)
	c.expect(in, err, model.InstanceProvisioning, says{noWay, gone, silent})
	if in.Incarnation != before.Incarnation {
		c.Errorf("incarnation %q after %q: an agent's end is no start", in.Incarnation, before.Incarnation)
	}
	c.do(AgentStart, Bridged)
	in = c.running(passing("bridged, agent coming back"), Bridged, c.pat.AgentUp)
	if in.Incarnation != before.Incarnation {
		c.Errorf("incarnation %q after %q", in.Incarnation, before.Incarnation)
	}
}

func agentHung(c *suite) {
	if _, err := c.get(steady("bridged"), Bridged); err != nil {
		c.Fatal(err)
	}
	gen := c.generation()
	c.do(AgentHang, Bridged)
	in, err := c.get(steady("bridged, agent hung"), Bridged)
	// 86 from libvirt before 11.2, 112 since
	c.expect(in, err, model.InstanceProvisioning, says{noWay, {"failed 86", "failed 112"}, silent})
	if in, err := c.get(steady("NAT"), NAT); err != nil || in.State != model.InstanceRunning {
		c.Errorf("the neighbour: %v, %v", in.State, err)
	}
	c.do(AgentThaw, Bridged)
	c.running(passing("bridged, agent thawed"), Bridged, c.pat.AgentUp)
	if g := c.generation(); g != gen {
		c.Errorf("generation %d, want %d: a guest's agent cost the link", g, gen)
	}
}

func paused(c *suite) {
	before, err := c.get(steady("NAT"), NAT)
	if err != nil {
		c.Fatal(err)
	}
	c.do(DomainPause, NAT)
	in, err := c.get(steady("paused"), NAT)
	c.expect(in, err, model.InstancePaused, says{})
	if in.Incarnation != before.Incarnation || in.Domain != model.DomainPaused || in.Reason == "" {
		c.Errorf("incarnation %q, domain %v, reason %q; want that of the run before, and why", in.Incarnation, in.Domain, in.Reason)
	}
	c.do(DomainResume, NAT)
	in = c.running(passing("NAT, resumed"), NAT, c.pat.AgentUp)
	if in.Incarnation != before.Incarnation {
		c.Errorf("incarnation %q after %q: it was not started", in.Incarnation, before.Incarnation)
	}
}

func boot(c *suite) {
	const where = "NAT guest booting"
	c.do(DomainStart, Off)
	saw := map[model.InstanceState]bool{}
	var first model.Instance
	c.await(c.pat.Boot, "the guest that was started has an address", func() bool {
		in, err := c.get(passing(where), Off)
		if err != nil {
			c.Errorf("a boot is no error: %v", err)
		}
		saw[in.State] = true
		first = in
		agentIn := slices.ContainsFunc(in.Outcomes, func(o model.Outcome) bool {
			return o.Source == model.SourceAgent && o.Kind == model.OutcomeAddresses
		})
		return in.State == model.InstanceRunning && agentIn || c.Failed()
	})
	if saw[model.InstanceStopped] || saw[model.InstanceUnknown] {
		c.Errorf("states %v during the boot", saw)
	}
	c.do(DomainDestroy, Off)
	in, err := c.get(steady("destroyed"), Off)
	c.expect(in, err, model.InstanceStopped, says{})
	c.do(DomainStart, Off)
	in, err = c.get(passing(where), Off)
	if err != nil || in.Incarnation == "" || in.Incarnation == first.Incarnation {
		c.Errorf("incarnation %q after %q, %v; want another", in.Incarnation, first.Incarnation, err)
	}
}
