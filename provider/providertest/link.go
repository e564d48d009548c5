package providertest

import (
	"context"
	"errors"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

func linkCases() []testCase {
	return []testCase{
		{"a listing tells every domain, and no addresses", listing},
		{"a daemon that is killed: down at once, up by itself, same incarnations", daemonKilled},
		{"a daemon that is frozen: down in time, and callers do not wait", daemonFrozen},
		{"a reconnect replaces a good link and says what it interrupted", reconnectGood},
		{"a reconnect of a frozen daemon frees its callers at once", reconnectFrozen},
		{"a reconnect of a dead daemon says why, and goes on", reconnectDead},
	}
}

func listing(c *suite) {
	for _, g := range []Guest{NAT, Bridged, NoAgent} {
		if _, err := c.get(steady(g.String()), g); err != nil {
			c.Fatal(err)
		}
	}
	var l provider.Listing
	c.await(c.pat.Call, "a listing that knows the host", func() bool {
		var err error
		if l, err = c.list(); err != nil {
			c.Fatal(err)
		}
		return l.HostUUID != ""
	})
	if l.Generation != c.generation() || l.At.IsZero() {
		c.Errorf("generation %d of %d, at %v", l.Generation, c.generation(), l.At)
	}
	for _, g := range Guests() {
		in, ok := l.Find(c.rig.Name(g))
		if !ok {
			c.Errorf("the %s is not listed", g)
			continue
		}
		want := model.DomainRunning
		if g == Off {
			want = model.DomainShutoff
		}
		if in.Domain != want || (in.Incarnation == "") != (g == Off) || in.UUID == "" {
			c.Errorf("the %s: domain %v, incarnation %q, UUID %q", g, in.Domain, in.Incarnation, in.UUID)
		}
		if in.State == model.InstanceRunning || in.State == model.InstanceProvisioning || in.Address.IsValid() {
			c.Errorf("the %s: state %v, address %v, from a listing", g, in.State, in.Address)
		}
		for _, o := range in.Outcomes {
			if o.Source != model.SourceLease {
				c.Errorf("the %s: a listing asked %v", g, o.Source)
			}
		}
		c.rec.Add("listed "+g.String(), false, in.Outcomes)
	}
	if _, ok := l.Find(c.rig.Name(Missing)); ok {
		c.Error("the missing one is listed")
	}
}

// downAtOnce holds every call to the rule that a dead link says so at once.
func (c *suite) downAtOnce() {
	c.Helper()
	calls := map[string]func(context.Context) error{
		"List": func(ctx context.Context) error { _, err := c.host.List(ctx); return err },
		"Get": func(ctx context.Context) error {
			_, err := c.ask(ctx, steady("link down"), NAT, provider.GetRequest{Sources: model.Sources()})
			return err
		},
	}
	for verb, f := range c.writes() {
		calls[verb] = func(ctx context.Context) error { return f(ctx, c.rig.Name(Off)) }
	}
	for name, call := range calls {
		ctx, cancel := c.ctx(c.pat.Call)
		start := time.Now()
		err := call(ctx)
		cancel()
		if took := time.Since(start); !errors.Is(err, provider.ErrLinkDown) || took > c.pat.AtOnce {
			c.Errorf("%s while the link is down: %v after %s, want ErrLinkDown within %s", name, err, took, c.pat.AtOnce)
		}
	}
	if st := c.host.Link(); st.LastError == "" || st.State == model.LinkUp {
		c.Errorf("the link is %v, and its last error is %q", st.State, st.LastError)
	}
}

func daemonKilled(c *suite) {
	before := c.running(steady("NAT"), NAT, c.pat.Call)
	gen := c.generation()
	c.do(DaemonKill, NAT)
	c.await(c.pat.Event, "the link is down", func() bool { return !c.up() })
	c.downAtOnce()
	c.do(DaemonStart, NAT)
	c.await(c.pat.Recover, "the link is up by itself", c.up)
	in := c.running(passing("NAT, daemon restarted"), NAT, c.pat.AgentUp)
	if in.Incarnation != before.Incarnation || in.Address != before.Address {
		c.Errorf("incarnation %q at %v after %q at %v: the guest did not notice", in.Incarnation, in.Address, before.Incarnation, before.Address)
	}
	if in.Generation <= gen || in.Generation != c.generation() {
		c.Errorf("seen through generation %d, the link has %d, and had %d", in.Generation, c.generation(), gen)
	}
}

func daemonFrozen(c *suite) {
	c.running(steady("NAT"), NAT, c.pat.Call)
	gen := c.generation()
	c.do(DaemonFreeze, NAT)
	frozen := time.Now()
	ctx, cancel := c.ctx(2 * c.pat.Frozen)
	defer cancel()
	_, err := c.ask(ctx, passing("NAT, daemon frozen"), NAT, provider.GetRequest{Sources: model.Sources(), Fresh: true})
	if took := time.Since(frozen); provider.Classify(err) != provider.ClassTransient || took > c.pat.Frozen {
		c.Errorf("Get under way: %v after %s, want a transient error within %s", err, took, c.pat.Frozen)
	}
	c.await(c.pat.Frozen-time.Since(frozen), "the link is called down", func() bool { return !c.up() })
	c.downAtOnce()
	c.do(DaemonThaw, NAT)
	c.await(c.pat.Recover, "the link is up by itself", c.up)
	if in := c.running(passing("NAT, daemon thawed"), NAT, c.pat.AgentUp); in.Generation <= gen {
		c.Errorf("generation %d after %d", in.Generation, gen)
	}
}

// hold starts a read of a guest whose agent hangs, and returns its error later.
func (c *suite) hold(g Guest) <-chan error {
	ctx, cancel := c.ctx(2 * c.pat.Agent)
	c.Cleanup(cancel)
	done := make(chan error, 1)
	go func() {
		_, err := c.host.Get(ctx, provider.GetRequest{Domain: c.rig.Name(g), Sources: model.Sources(), Fresh: true})
		done <- err
	}()
	return done
}

func reconnectGood(c *suite) {
	c.running(steady("bridged"), Bridged, c.pat.Call)
	gen := c.generation()
	c.do(AgentHang, Bridged)
	held := c.hold(Bridged)
	c.pause(10 * c.pat.Interval) // what comes before the agent is done by now
	c.await(c.pat.Call, "the agent is being asked", func() bool { return c.host.Link().InFlight > 0 })
	ctx, cancel := c.ctx(c.pat.Forced)
	defer cancel()
	rep, err := c.host.Reconnect(ctx)
	if err != nil {
		c.Fatalf("reconnect: %v", err)
	}
	if rep.From != gen || rep.To <= gen || rep.To != c.generation() || len(rep.Interrupted) == 0 || rep.Took > c.pat.Forced {
		c.Errorf("report %+v; the link had generation %d and has %d", rep, gen, c.generation())
	}
	if err := <-held; !errors.Is(err, provider.ErrLinkDown) {
		c.Errorf("the call that was interrupted: %v, want ErrLinkDown", err)
	}
	c.do(AgentThaw, Bridged)
	c.running(passing("bridged, agent thawed"), Bridged, c.pat.AgentUp)
}

func reconnectFrozen(c *suite) {
	c.running(steady("bridged"), Bridged, c.pat.Call)
	gen := c.generation()
	c.do(DaemonFreeze, NAT)
	held := c.hold(Bridged)
	c.pause(10 * c.pat.Interval)
	ctx, cancel := c.ctx(c.pat.Forced)
	defer cancel()
	asked := time.Now()
	type answer struct {
		rep provider.ReconnectReport
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		rep, err := c.host.Reconnect(ctx)
		answered <- answer{rep, err}
	}()
	err := <-held
	if took := time.Since(asked); !errors.Is(err, provider.ErrLinkDown) || took > c.pat.AtOnce {
		c.Errorf("the call under way: %v after %s, want ErrLinkDown within %s", err, took, c.pat.AtOnce)
	}
	a := <-answered
	if took := time.Since(asked); a.err == nil || took > c.pat.Forced+c.pat.AtOnce || a.rep.To != 0 || len(a.rep.Interrupted) == 0 {
		c.Errorf("reconnect of a frozen daemon: %v after %s, report %+v", a.err, took, a.rep)
	}
	if st := c.host.Link(); st.State == model.LinkUp {
		c.Errorf("the link is up, generation %d", st.Generation)
	}
	c.do(DaemonThaw, NAT)
	ctx2, cancel2 := c.ctx(c.pat.Forced)
	defer cancel2()
	rep, err := c.host.Reconnect(ctx2)
	if err != nil || rep.To <= gen {
		c.Errorf("reconnect after the thaw: %v, report %+v", err, rep)
	}
	c.running(passing("bridged, daemon thawed"), Bridged, c.pat.AgentUp)
}

func reconnectDead(c *suite) {
	gen := c.generation()
	c.do(DaemonKill, NAT)
	ctx, cancel := c.ctx(c.pat.Forced)
	defer cancel()
	rep, err := c.host.Reconnect(ctx)
	if !errors.Is(err, provider.ErrLinkDown) || rep.To != 0 {
		c.Errorf("reconnect: %v, report %+v; want ErrLinkDown", err, rep)
	}
	c.do(DaemonStart, NAT)
	c.await(c.pat.Recover, "the link is up by itself", c.up)
	if g := c.generation(); g <= gen {
		c.Errorf("generation %d after %d", g, gen)
	}
}
