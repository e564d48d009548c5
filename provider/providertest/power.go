package providertest

import (
	"context"
	"errors"
	"sync"

	"virdeck/model"
	"virdeck/provider"
)

func powerCases() []testCase {
	return []testCase{
		{"writes to a missing guest are not found", func(c *suite) {
			for verb, f := range c.writes() {
				if err := c.write(f, Missing); provider.Classify(err) != provider.ClassNotFound {
					c.Errorf("%s: %v, want not found", verb, err)
				}
			}
		}},
		{"start, twice: it runs", func(c *suite) {
			for i := range 2 {
				if err := c.write(c.host.Start, Off); err != nil {
					c.Fatalf("start %d: %v", i+1, err)
				}
				in, err := c.get(passing("NAT guest booting"), Off)
				if err != nil || in.Domain != model.DomainRunning || in.Incarnation == "" {
					c.Errorf("after start %d: domain %v, incarnation %q, %v", i+1, in.Domain, in.Incarnation, err)
				}
			}
		}},
		{"start of a guest that runs leaves it alone", func(c *suite) {
			before, err := c.get(steady("NAT"), NAT)
			if err != nil {
				c.Fatal(err)
			}
			if err := c.write(c.host.Start, NAT); err != nil {
				c.Errorf("start: %v", err)
			}
			in, err := c.get(steady("NAT"), NAT)
			if err != nil || in.Incarnation != before.Incarnation || in.Address != before.Address {
				c.Errorf("incarnation %q at %v after %q at %v, %v", in.Incarnation, in.Address, before.Incarnation, before.Address, err)
			}
		}},
		{"start by two at once: it runs, once", startTwice},
		{"stop, twice: it does not run, and is still there", func(c *suite) {
			c.do(DomainStart, Off)
			c.running(passing("NAT guest booting"), Off, c.pat.Boot)
			for i := range 2 {
				if err := c.write(c.host.Stop, Off); err != nil {
					c.Fatalf("stop %d: %v", i+1, err)
				}
				in, err := c.get(steady("stopped"), Off)
				c.expect(in, err, model.InstanceStopped, says{})
			}
		}},
		{"stop of a paused guest", func(c *suite) {
			c.do(DomainStart, Off)
			c.do(DomainPause, Off)
			if err := c.write(c.host.Stop, Off); err != nil {
				c.Fatal(err)
			}
			in, err := c.get(steady("stopped"), Off)
			c.expect(in, err, model.InstanceStopped, says{})
		}},
		{"restart of one that is off starts it, of one that runs makes another incarnation", func(c *suite) {
			var last model.Incarnation
			for i := range 2 {
				if err := c.write(c.host.Restart, Off); err != nil {
					c.Fatalf("restart %d: %v", i+1, err)
				}
				in := c.running(passing("NAT guest booting"), Off, c.pat.Boot)
				if in.Incarnation == last {
					c.Errorf("restart %d: incarnation %q again", i+1, last)
				}
				last = in.Incarnation
			}
		}},
		{"a write's caller may leave: the link is not hurt", func(c *suite) {
			gen := c.generation()
			ctx, cancel := context.WithCancel(c.Context())
			cancel()
			if err := c.host.Start(ctx, c.rig.Name(Off)); !errors.Is(err, context.Canceled) {
				c.Errorf("start: %v, want its own context's error", err)
			}
			if in, err := c.get(steady("NAT"), NAT); err != nil || c.generation() != gen {
				c.Errorf("then: %v, %v, generation %d after %d", in.State, err, c.generation(), gen)
			}
		}},
		{"a domain that ends under a read is not running", endsUnderRead},
	}
}

// writes are the writes by name.
func (c *suite) writes() map[string]func(context.Context, string) error {
	return map[string]func(context.Context, string) error{"start": c.host.Start, "stop": c.host.Stop, "restart": c.host.Restart}
}

func (c *suite) write(f func(context.Context, string) error, g Guest) error {
	ctx, cancel := c.ctx(c.pat.Stop)
	defer cancel()
	return f(ctx, c.rig.Name(g))
}

func startTwice(c *suite) {
	var errs [2]error
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = c.write(c.host.Start, Off) })
	}
	wg.Wait()
	good := 0
	for _, err := range errs {
		switch {
		case err == nil:
			good++
		case !errors.Is(err, provider.ErrNotAsked):
			c.Errorf("start: %v, want nothing or ErrNotAsked", err)
		}
	}
	if good == 0 {
		c.Errorf("neither start succeeded: %v", errs)
	}
	if in, err := c.get(passing("NAT guest booting"), Off); err != nil || in.Domain != model.DomainRunning {
		c.Errorf("domain %v, %v", in.Domain, err)
	}
}

// endsUnderRead pulls the plug while the agent is being waited for.
func endsUnderRead(c *suite) {
	c.do(DomainStart, Off)
	c.running(passing("NAT guest booting"), Off, c.pat.Boot)
	c.await(c.pat.Boot, "the agent is up", func() bool {
		in, err := c.get(passing("NAT guest booting"), Off)
		return err == nil && len(in.Outcomes) == 3 && in.Outcomes[model.SourceAgent].Kind == model.OutcomeAddresses
	})
	c.do(AgentHang, Off)
	ctx, cancel := c.ctx(c.pat.Agent)
	defer cancel()
	done := make(chan struct{})
	var in model.Instance
	var err error
	go func() {
		defer close(done)
		in, err = c.host.Get(ctx, provider.GetRequest{Domain: c.rig.Name(Off), Sources: []model.Source{model.SourceAgent}, Fresh: true})
	}()
	c.await(c.pat.Call, "the agent is being asked", func() bool { return c.host.Link().InFlight > 0 })
	c.do(DomainDestroy, Off)
	<-done
	if in.State == model.InstanceRunning || in.State == model.InstanceProvisioning || in.Address.IsValid() {
		c.Errorf("state %v, address %v: the domain does not run", in.State, in.Address)
	}
	if class := provider.Classify(err); class != provider.ClassNone && class != provider.ClassTransient {
		c.Errorf("error %v, want none or a transient one", err)
	}
	in, err = c.get(steady("destroyed"), Off)
	c.expect(in, err, model.InstanceStopped, says{})
}
