package providertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

func unaskedCases() []testCase {
	return []testCase{
		{"a caller that leaves harms nobody", callerLeaves},
		{"agents that hang take their share of the slots and no more", agentsHang},
		{"a context that has ended asks nothing", func(c *suite) {
			gen := c.generation()
			ctx, cancel := context.WithCancel(c.Context())
			cancel()
			if _, err := c.ask(ctx, steady("cancelled"), NAT, provider.GetRequest{Sources: model.Sources()}); !errors.Is(err, context.Canceled) {
				c.Errorf("Get: %v, want its own context's error", err)
			}
			if _, err := c.host.List(ctx); !errors.Is(err, context.Canceled) {
				c.Errorf("List: %v, want its own context's error", err)
			}
			if g := c.generation(); g != gen || !c.up() {
				c.Errorf("generation %d, up %v; want %d: a cancelled call cost the link", g, c.up(), gen)
			}
		}},
		{"no slot: not asked, and nothing concluded", noSlot},
	}
}

func callerLeaves(c *suite) {
	if _, err := c.get(steady("bridged"), Bridged); err != nil {
		c.Fatal(err)
	}
	gen := c.generation()
	c.do(AgentHang, Bridged)
	ctx, cancel := c.ctx(500 * time.Millisecond)
	defer cancel()
	if _, err := c.ask(ctx, passing("bridged, agent hung, no time"), Bridged, provider.GetRequest{Sources: model.Sources()}); !errors.Is(err, context.DeadlineExceeded) {
		c.Errorf("Get: %v, want its own deadline", err)
	}
	// The call that was left is still under way. Whether the next one waits for it
	// or is refused, it learns no more than the truth.
	in, err := c.get(passing("bridged, agent call under way"), Bridged)
	if !errors.Is(err, provider.ErrNotAsked) && (err != nil || in.State != model.InstanceProvisioning) {
		c.Errorf("while the call before is under way: %v, %v; want ErrNotAsked, or provisioning", in.State, err)
	}
	if in, err := c.get(steady("NAT"), NAT); err != nil || in.State != model.InstanceRunning {
		c.Errorf("the neighbour: %v, %v", in.State, err)
	}
	if g := c.generation(); g != gen {
		c.Errorf("generation %d, want %d: a caller's deadline closed the link", g, gen)
	}
	c.do(AgentThaw, Bridged)
	c.running(passing("bridged, agent thawed"), Bridged, c.pat.AgentUp)
}

// agentsHang lets two readers wait for agents that hang. A third guest's agent
// may then not be asked, which says nothing about that guest; reads that need no
// agent go on, on the same link.
func agentsHang(c *suite) {
	c.do(DomainStart, Off)
	c.await(c.pat.Boot, "the third guest's agent is up", func() bool {
		in, err := c.get(passing("NAT guest booting"), Off)
		return err == nil && len(in.Outcomes) == 3 && in.Outcomes[model.SourceAgent].Kind == model.OutcomeAddresses
	})
	for _, g := range []Guest{NAT, Bridged} {
		if _, err := c.get(steady(g.String()), g); err != nil {
			c.Fatal(err)
		}
	}
	gen := c.generation()
	c.do(AgentHang, NAT)
	c.do(AgentHang, Off)
	held := []<-chan error{c.hold(NAT), c.hold(Off)}
	c.pause(5 * c.pat.Interval)
	in, err := c.get(passing("bridged, two agents hung"), Bridged)
	if !errors.Is(err, provider.ErrNotAsked) && (err != nil || in.State != model.InstanceRunning) {
		c.Errorf("the third: %v, %v; want ErrNotAsked or its address", in.State, err)
	}
	if in, err := c.get(steady("no agent channel"), NoAgent); err != nil || in.State != model.InstanceRunning {
		c.Errorf("one that needs no agent: %v, %v", in.State, err)
	}
	for i, h := range held {
		if err := <-h; err != nil {
			c.Errorf("held reader %d, whose guest has a lease: %v", i+1, err)
		}
	}
	if g := c.generation(); g != gen {
		c.Errorf("generation %d, want %d: hung agents cost the link", g, gen)
	}
	c.do(AgentThaw, NAT)
	c.do(AgentThaw, Off)
}

// noSlot takes all slots with reads that a frozen daemon does not answer, in
// the time before the link is called down. Whatever a read says then, it
// concludes nothing; where the provider kept what it knew of the domains, each
// source is shown as not asked.
func noSlot(c *suite) {
	for _, g := range []Guest{NAT, Bridged} {
		if _, err := c.get(steady(g.String()), g); err != nil {
			c.Fatal(err)
		}
	}
	c.pause(1200 * time.Millisecond) // leases that are shared grow old
	if _, err := c.get(steady("bridged"), Bridged); err != nil {
		c.Fatal(err)
	}
	c.do(DaemonFreeze, NAT)
	all := provider.GetRequest{Sources: model.Sources()}
	stuck, leave := c.ctx(c.pat.Frozen)
	var wg sync.WaitGroup
	req := all
	req.Domain = c.rig.Name(Bridged)
	for range c.host.Link().Slots {
		wg.Go(func() { _, _ = c.host.Get(stuck, req) }) // it holds a slot, that is all
	}
	// Where the freeze took too long for what is shared, they wait in one call.
	for range 10 {
		if st := c.host.Link(); st.InFlight >= st.Slots {
			break
		}
		c.pause(c.pat.Interval)
	}
	ctx, cancel := c.ctx(c.pat.Frozen)
	_, err := c.ask(ctx, passing("NAT, no slot"), NAT, all)
	cancel()
	if provider.Classify(err) != provider.ClassTransient {
		c.Errorf("Get without a slot: %v, want a transient error", err)
	}
	leave()
	wg.Wait()
	c.do(DaemonThaw, NAT)
	c.await(c.pat.Recover, "the link is up", c.up)
	c.running(passing("NAT, after the thaw"), NAT, c.pat.Recover)
}
