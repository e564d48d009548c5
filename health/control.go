package health

import (
	"context"
	"time"

	"virdeck/model"
)

// controlState is one target with what is known of it without a proxy.
type controlState struct {
	target Target
	control
	since time.Time
	kick  chan struct{}
}

// runControl asks a target without a proxy, for as long as the engine lives.
func (e *Engine) runControl(i int) {
	t := time.NewTimer(0)
	defer t.Stop()
	c := e.controls[i]
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-t.C:
		case <-c.kick:
		}
		ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Timeout)
		start := e.deps.Now()
		r := probeDirect(ctx, e.deps.Control, c.target)
		cancel()
		if e.ctx.Err() != nil {
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
		c.lastPass, c.state, c.note = start, model.WitnessPassing, ""
		e.testify(start, nil)
	} else {
		c.lastFail, c.note = start, r.Reason
		// A control that has never passed is no control: there may be no
		// direct way out from here, and its failure says nothing.
		c.state = model.WitnessNone
		if !c.lastPass.IsZero() {
			c.state = model.WitnessFailing
			e.excuse(c.target.URL.String())
		}
	}
	var dirty []Key
	if was != c.state {
		c.since = now
		dirty = append(dirty, Key{})
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
