package controller

import (
	"context"
	"time"

	"virdeck/model"
	"virdeck/store"
)

func entry(cmd model.Command, phase store.Phase, result string) store.Entry {
	e := store.Entry{At: time.Now().UTC(), By: cmd.By, Verb: cmd.Verb.String(), Host: cmd.Host, Proxy: cmd.Proxy, Phase: phase, Result: result}
	if cmd.Adopt != nil {
		e.Proxy = cmd.Adopt.Name
	}
	return e
}

// auditStart has a command on the disk before it is accepted. What cannot be
// written down is not done.
func (c *Controller) auditStart(cmd model.Command) error {
	if c.audit == nil {
		return nil
	}
	if err := c.audit.Append(entry(cmd, store.PhaseAccepted, "")); err != nil {
		return model.Refuse("the audit log cannot be written: %s", err)
	}
	return nil
}

func (c *Controller) auditRefused(cmd model.Command, why error) {
	if c.audit == nil {
		return
	}
	if err := c.audit.Append(entry(cmd, store.PhaseRefused, why.Error())); err != nil {
		c.log.Error("audit", "error", err.Error())
	}
}

// auditLoop writes down what became of commands, until ctx ends. Run writes down
// what ends after that.
func (c *Controller) auditLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.ops.news:
			c.auditEnds()
		}
	}
}

// auditEnds writes down what has ended since the last time. It is called by one
// goroutine at a time, with no lock held.
func (c *Controller) auditEnds() {
	for _, op := range c.ops.takeEnded() {
		if c.audit == nil {
			continue
		}
		e := entry(op.Command, store.PhaseDone, op.Result)
		if e.At = op.Ended.UTC(); op.State != model.OpDone {
			e.Phase = store.PhaseFailed
		}
		c.guard("audit", func() {
			if err := c.audit.Append(e); err != nil {
				c.log.Error("audit", "error", err.Error())
			}
		})
	}
}
