package health

import (
	"context"
	"time"

	"virdeck/model"
)

// controlState is one target with what is known of it without a proxy.
type controlState struct {
	target Target
	url    string
	control
	since  time.Time
	passes [2]proxied // the newest passes through two different proxies, newest first
	kick   chan struct{}
	ctx    context.Context // ends when the target is not asked any more
	cancel context.CancelFunc
}

// proxied is a pass through a proxy.
type proxied struct {
	proxy model.ProxyName
	start time.Time
}

// note takes in that a proxy has reached the target.
func (c *controlState) note(p model.ProxyName, start time.Time) {
	if c.passes[0].proxy != p {
		c.passes[1] = c.passes[0]
	}
	c.passes[0] = proxied{p, start}
}

// otherPass returns the newest pass through any proxy but p.
func (c *controlState) otherPass(p model.ProxyName) time.Time {
	if c.passes[0].proxy != p {
		return c.passes[0].start
	}
	return c.passes[1].start
}

// explains reports whether the target's own failure explains one through a
// proxy: it does not answer without one, and has not through any since. Where
// proxies still reach it, only our own way to it is lost.
func (c *controlState) explains() bool {
	return c.state == model.WitnessFailing && !c.passes[0].start.After(c.since)
}

// runControl asks a target without a proxy, until it is not wanted any more.
func (e *Engine) runControl(c *controlState) {
	t := time.NewTimer(0)
	defer t.Stop()
	var last time.Time
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-t.C:
		case <-c.kick:
			if !pauseUntil(c.ctx, last.Add(minGap)) {
				return
			}
		}
		last = time.Now()
		ctx, cancel := context.WithTimeout(c.ctx, e.timeout())
		start := e.deps.Now()
		r := probeDirect(ctx, e.deps.Control, c.target)
		cancel()
		if c.ctx.Err() != nil {
			return
		}
		e.mu.Lock()
		now := e.deps.Now()
		dirty := e.hear(c, r, start, now)
		wait := e.cfg.Interval
		switch c.state {
		case model.WitnessFailing:
			wait = e.cfg.Fast
		case model.WitnessNone:
			wait = e.cfg.Slow
		case model.WitnessUnknown, model.WitnessPassing:
		}
		e.mu.Unlock()
		for _, k := range dirty {
			e.deps.Dirty(k)
		}
		t.Reset(max(wait-time.Since(start), minGap))
	}
}

// hear takes in a control probe's result. e.mu is held.
func (e *Engine) hear(c *controlState, r model.ProbeResult, start, now time.Time) []Key {
	was := c.state
	if r.Passed {
		c.lastPass, c.state, c.why = start, model.WitnessPassing, ""
		e.testify(c, start, "")
	} else {
		c.lastFail, c.why = start, r.Reason
		// A control that has never passed is no control: there may be no
		// direct way out from here, and its failure says nothing.
		c.state = model.WitnessNone
		if !c.lastPass.IsZero() {
			c.state = model.WitnessFailing
		}
	}
	var dirty []Key
	if was != c.state {
		c.since = start
		dirty = append(dirty, Key{})
	}
	if c.explains() {
		e.excuse(c.target.URL.String())
	}
	return append(dirty, e.settle(now)...)
}

// excuse voids the failures that a failing target explains. e.mu is held.
func (e *Engine) excuse(target string) {
	for k, s := range e.failing {
		if s.c.last.Target == target && !s.c.last.SelfSeen {
			s.c = void(s.c)
			s.waiting = ""
			delete(e.failing, k)
		}
	}
}
