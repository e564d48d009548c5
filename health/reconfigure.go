package health

import (
	"context"
	"slices"
	"time"
)

// Reconfigure changes pace, thresholds and targets. What is known of the
// subjects is kept, and so is what is known of a target that is asked for as
// before. Failures that only a target which is gone has seen count for nothing.
// Safe at any time, from any goroutine; it does not block.
func (e *Engine) Reconfigure(cfg Config) {
	e.mu.Lock()
	if e.ctx.Err() != nil {
		e.mu.Unlock()
		return
	}
	e.cfg = cfg
	gone := e.setTargets(cfg)
	for _, c := range gone {
		e.excuse(c.url)
	}
	dirty := append(e.settle(e.deps.Now()), Key{})
	for k, s := range e.subs { // at the new pace, now
		poke(s.kick)
		dirty = append(dirty, k)
	}
	e.mu.Unlock()
	for _, k := range dirty {
		e.deps.Dirty(k)
	}
}

// setTargets makes the controls those of cfg, and returns those that are not
// asked any more. e.mu is held.
func (e *Engine) setTargets(cfg Config) (gone []*controlState) {
	old := e.controls
	e.controls = nil
	for _, t := range cfg.Targets {
		i := slices.IndexFunc(old, func(c *controlState) bool { return sameTarget(c.target, t) })
		if i >= 0 && (old[i].cancel != nil) == cfg.Control {
			e.controls = append(e.controls, old[i])
			old = slices.Delete(slices.Clone(old), i, i+1)
			continue
		}
		c := &controlState{target: t, url: t.URL.String(), kick: make(chan struct{}, 1)}
		e.controls = append(e.controls, c)
		if cfg.Control {
			c.ctx, c.cancel = context.WithCancel(e.ctx)
			e.wg.Go(func() { e.runControl(c) })
		}
	}
	for _, c := range old {
		if c.cancel != nil {
			c.cancel()
		}
	}
	return old
}

func sameTarget(a, b Target) bool {
	return a.URL.String() == b.URL.String() && slices.Equal(a.Status, b.Status) && a.Body == b.Body && a.EchoIP == b.EchoIP
}

// timeout is how long one probe may take.
func (e *Engine) timeout() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cfg.Timeout
}
