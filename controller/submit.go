package controller

import (
	"slices"
	"time"

	"virdeck/model"
	"virdeck/store"
)

// Audit is where commands are written down: on the disk before Append returns.
type Audit interface {
	Append(store.Entry) error
}

// Submit accepts or refuses an operator's command. It does not wait for the
// host, but for the disk where the command is to outlive a crash. The error is a
// model.Refusal whose text is for the operator.
func (c *Controller) Submit(cmd model.Command) (model.OpID, error) {
	h, p, err := c.accept(cmd)
	if err == nil {
		err = c.auditStart(cmd)
	}
	if err == nil {
		h, p, err = c.find(cmd) // that may have taken a while
	}
	if err != nil {
		c.log.Warn("command refused", append(attrs(cmd), "why", err.Error())...)
		c.auditRefused(cmd, err)
		return 0, err
	}
	if cmd.Verb == model.VerbCancel {
		return cmd.Op, c.cancel(cmd.Op, cmd.By)
	}
	id, joined := c.ops.open(cmd, time.Now())
	c.log.Info("command", append(attrs(cmd), "joined", joined)...)
	if joined {
		c.ops.awaitBegun(id)
	} else {
		c.start(h, p, cmd, id)
	}
	c.touch()
	return id, nil
}

// Refuse returns why Submit would refuse a command now, or nil: for those who ask
// before they submit. It waits for nobody.
func (c *Controller) Refuse(cmd model.Command) error {
	_, _, err := c.accept(cmd)
	return err
}

// accept finds what a command is about, and says why it cannot be carried out now.
func (c *Controller) accept(cmd model.Command) (h *host, p *proxy, err error) {
	if h, p, err = c.find(cmd); err != nil {
		return h, p, err
	}
	return h, p, c.refuse(h, p, cmd)
}

// find finds what a command is about.
func (c *Controller) find(cmd model.Command) (h *host, p *proxy, err error) {
	if cmd.Verb != model.VerbReload && cmd.Verb != model.VerbCancel {
		if h = c.host(cmd.Host); h == nil {
			return nil, nil, model.Refuse("there is no host %s", cmd.Host)
		}
		if cmd.Proxy != "" {
			if p = h.proxy(cmd.Proxy); p == nil {
				return h, nil, model.Refuse("there is no proxy %s on %s", cmd.Proxy, cmd.Host)
			}
		}
	}
	return h, p, nil
}

// attrs are those of a command in the log: what it is about, and nothing empty.
func attrs(cmd model.Command) []any {
	out := []any{"verb", cmd.Verb.String()}
	if cmd.Host != "" {
		out = append(out, "host", string(cmd.Host))
	}
	if cmd.Proxy != "" {
		out = append(out, "proxy", string(cmd.Proxy))
	}
	return append(out, "by", cmd.By)
}

// start sets an accepted command going.
func (c *Controller) start(h *host, p *proxy, cmd model.Command, id model.OpID) {
	defer c.ops.begin(id)
	now := time.Now()
	switch cmd.Verb {
	case model.VerbReconcile:
		h.forgive(p, cmd.By, now)
		if err := h.readNow(p, id); err != nil {
			c.ops.end(id, err, "")
		}
	case model.VerbReconcileHost:
		h.reconcileHost(id)
	case model.VerbReconnect:
		c.ops.wg.Go(func() { h.reconnect(id) })
	case model.VerbDrain, model.VerbUndrain:
		c.ops.end(id, c.setDrained(h, p, cmd.Verb == model.VerbDrain), cmd.Verb.String()+"ed")
	case model.VerbStart, model.VerbStop, model.VerbRestart, model.VerbRecreate, model.VerbDelete:
		switch managed, err := h.order(p, cmd, id, now); {
		case err != nil:
			c.ops.end(id, err, "")
		case managed:
			c.keepOrder(h, id)
		default:
			c.ops.wg.Go(func() { h.power(p, cmd.Verb, id) })
		}
	case model.VerbAdopt:
		c.ops.end(id, c.adopt(h, *cmd.Adopt), "adopted")
	case model.VerbRelease:
		c.ops.wg.Go(func() { c.release(h, p, id) })
	case model.VerbManage:
		c.ops.wg.Go(func() { c.promote(h, p, id) })
	case model.VerbRepin:
		said, err := c.repin(h, cmd.By)
		c.ops.end(id, err, said)
	case model.VerbReload:
		c.ops.wg.Go(func() {
			c.ops.phase(id, "reading the configuration")
			said, err := c.reload(cmd.By)
			c.ops.end(id, err, said)
		})
	case model.VerbCancel:
	}
}

// setDrained drains a proxy, or undrains it, and remembers that.
func (c *Controller) setDrained(h *host, p *proxy, v bool) error {
	if err := h.setDrained(p, v); err != nil {
		return err
	}
	err := c.save()
	if err != nil { // what would be forgotten does not hold
		_ = h.setDrained(p, !v) // of one that has left nothing holds
	}
	return err
}

// keepOrder has what an order wants on the disk before it is acknowledged; what
// cannot be remembered is withdrawn.
func (c *Controller) keepOrder(h *host, id model.OpID) {
	err := c.save()
	if err == nil {
		return
	}
	if op, ok := c.ops.get(id); ok {
		h.mu.Lock()
		h.withdraw(op)
		h.mu.Unlock()
	}
	c.ops.end(id, err, "")
}

// forgive has a write that failed tried again, on the word of whoever reconciles
// the proxy. One that the budget holds is done beyond it: this one, this time.
func (h *host) forgive(p *proxy, by string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := p.m
	if m == nil {
		return
	}
	if m.done.held && by != "" {
		m.allowed = by
	}
	m.failure = failure{}
	h.refresh(p, now)
	h.c.kickManage()
}

// cancel withdraws a command that has not begun.
func (c *Controller) cancel(id model.OpID, by string) error {
	if err := c.withdraw(id); err != nil {
		return err
	}
	result := "withdrawn by " + by
	if err := c.save(); err != nil {
		result += ", until virdeck is started anew: " + err.Error()
	}
	c.ops.close(id, model.OpCanceled, result)
	c.touch()
	return nil
}

// withdraw takes back what a command has set that has not begun.
func (c *Controller) withdraw(id model.OpID) error {
	c.ops.awaitBegun(id) // until then there is nothing to take back
	op, ok := c.ops.get(id)
	h := c.host(op.Command.Host)
	if h != nil { // with the lock held nothing of it begins
		h.mu.Lock()
		defer h.mu.Unlock()
		op, ok = c.ops.get(id)
	}
	switch {
	case !ok:
		return model.Refuse("there is no such command any more")
	case !op.Ended.IsZero():
		return model.Refuse("%s of %s has ended already", op.Command.Verb, op.Command.Target())
	case op.State != model.OpQueued:
		return model.Refuse("%s of %s has begun: %s", op.Command.Verb, op.Command.Target(), op.Phase)
	}
	if h != nil {
		h.withdraw(op)
	}
	return nil
}

// withdraw takes back what a command has set of its proxy. The lock is held.
func (h *host) withdraw(op model.Op) {
	p := h.byName[op.Command.Proxy]
	if p == nil {
		return
	}
	p.waiting = slices.DeleteFunc(slices.Clone(p.waiting), func(id model.OpID) bool { return id == op.ID })
	if p.m != nil && p.m.order != nil && p.m.order.op == op.ID {
		h.void(p)
	}
}
