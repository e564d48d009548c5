package controller

import (
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

// auditEnd writes down what became of a command.
func (c *Controller) auditEnd(op model.Op) {
	if c.audit == nil {
		return
	}
	phase := store.PhaseDone
	if op.State != model.OpDone {
		phase = store.PhaseFailed
	}
	if err := c.audit.Append(entry(op.Command, phase, op.Result)); err != nil {
		c.log.Error("audit", "error", err.Error())
	}
}
