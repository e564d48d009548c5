package controller

import (
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
	h := c.host(cmd.Host)
	var p *proxy
	err := func() error {
		if cmd.Verb == model.VerbReload || cmd.Verb == model.VerbCancel {
			return nil
		}
		if h == nil {
			return model.Refuse("there is no host %s", cmd.Host)
		}
		if cmd.Proxy != "" {
			if p = h.proxy(cmd.Proxy); p == nil {
				return model.Refuse("there is no proxy %s on %s", cmd.Proxy, cmd.Host)
			}
		}
		return nil
	}()
	if err == nil {
		err = c.refuse(h, p, cmd)
	}
	if err == nil {
		err = c.auditStart(cmd)
	}
	if err != nil {
		c.log.Warn("command refused", "verb", cmd.Verb.String(), "host", string(cmd.Host),
			"proxy", string(cmd.Proxy), "by", cmd.By, "why", err.Error())
		c.auditRefused(cmd, err)
		return 0, err
	}
	if cmd.Verb == model.VerbCancel {
		return cmd.Op, c.cancel(cmd.Op, cmd.By)
	}
	id, joined := c.ops.open(cmd, time.Now())
	c.log.Info("command", "verb", cmd.Verb.String(), "host", string(cmd.Host),
		"proxy", string(cmd.Proxy), "by", cmd.By, "joined", joined)
	if !joined {
		c.start(h, p, cmd, id)
	}
	c.touch()
	return id, nil
}

// start sets an accepted command going.
func (c *Controller) start(h *host, p *proxy, cmd model.Command, id model.OpID) {
	now := time.Now()
	switch cmd.Verb {
	case model.VerbReconcile:
		h.unlatch(p, now)
		h.readNow(p, id)
	case model.VerbReconcileHost:
		h.reconcileHost(id)
	case model.VerbReconnect:
		c.ops.wg.Go(func() { h.reconnect(id) })
	case model.VerbDrain, model.VerbUndrain:
		h.setDrained(p, cmd.Verb == model.VerbDrain)
		err := c.save()
		if err != nil { // what would be forgotten does not hold
			h.setDrained(p, cmd.Verb != model.VerbDrain)
		}
		c.ops.end(id, err, cmd.Verb.String()+"ed")
	case model.VerbStop:
		h.setWish(p, wishStop, now)
		c.powered(h, p, cmd.Verb, id)
	case model.VerbStart, model.VerbRestart:
		h.setWish(p, wishRun, now)
		if h.absent(p) {
			h.await(p, id)
			return
		}
		c.powered(h, p, cmd.Verb, id)
	case model.VerbRecreate:
		h.recreate(p, cmd.By, id, now)
		c.keepOp(h, id)
	case model.VerbDelete:
		h.await(p, id)
		h.setWish(p, wishGone, now)
		c.keepOp(h, id)
	case model.VerbAdopt:
		c.ops.end(id, c.adopt(h, *cmd.Adopt), "adopted")
	case model.VerbRelease:
		c.ops.wg.Go(func() { c.release(h, p, id) })
	case model.VerbManage:
		c.ops.wg.Go(func() { c.promote(h, p, id) })
	case model.VerbRepin:
		said := h.repin(cmd.By)
		c.ops.end(id, c.save(), said)
	case model.VerbReload:
		c.ops.wg.Go(func() {
			c.ops.phase(id, "reading the configuration")
			said, err := c.reload(cmd.By)
			c.ops.end(id, err, said)
		})
	case model.VerbCancel:
	}
}

// keepOp has what a command has set on the disk before it is acknowledged; what
// cannot be remembered is withdrawn.
func (c *Controller) keepOp(h *host, id model.OpID) {
	err := c.save()
	if err == nil {
		return
	}
	if op, ok := c.ops.get(id); ok {
		h.withdraw(op)
	}
	c.ops.end(id, err, "")
}

// powered runs a power command, once its wish is on the disk.
func (c *Controller) powered(h *host, p *proxy, v model.Verb, id model.OpID) {
	if err := c.save(); err != nil {
		c.ops.end(id, err, "")
		return
	}
	h.mu.Lock()
	if p.m != nil && v != model.VerbStop {
		h.c.count(h.name, p.m.pool, v.String()+" "+string(p.spec.Name), "an operator", time.Now())
	}
	h.mu.Unlock()
	c.ops.wg.Go(func() { h.power(p, v, id) })
}

// absent reports whether a managed proxy has no VM that could be started.
func (h *host) absent(p *proxy) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return p.m != nil && (!p.m.built || !p.m.listed)
}

// await has an op end with the next write of a managed proxy.
func (h *host) await(p *proxy, id model.OpID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.m.ops = append(p.m.ops, id)
}

// unlatch has a write that failed for good tried again.
func (h *host) unlatch(p *proxy, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := p.m; m != nil && (m.latched || m.fails > 0 || !m.retryAt.IsZero()) {
		m.latched, m.fails, m.retryAt = false, 0, time.Time{}
		h.refresh(p, now)
		h.c.kickManage()
	}
}

// recreate has another VM take the place of a managed one.
func (h *host) recreate(p *proxy, by string, id model.OpID, now time.Time) {
	h.mu.Lock()
	m := p.m
	m.replace, m.operator, m.by, m.wish, m.drain = "recreate, asked for by "+by, true, by, wishRun, 0
	m.latched, m.retryAt, m.fails, m.barren = false, time.Time{}, 0, 0
	m.ops = append(m.ops, id)
	h.refresh(p, now)
	h.mu.Unlock()
	h.c.kickManage()
}

// cancel withdraws a command that has not begun.
func (c *Controller) cancel(id model.OpID, by string) error {
	op, ok := c.ops.get(id)
	switch {
	case !ok:
		return model.Refuse("there is no such command any more")
	case !op.Ended.IsZero():
		return model.Refuse("%s of %s has ended already", op.Command.Verb, op.Command.Target())
	case op.State != model.OpQueued:
		return model.Refuse("%s of %s has begun: %s", op.Command.Verb, op.Command.Target(), op.Phase)
	}
	if h := c.host(op.Command.Host); h != nil {
		h.withdraw(op)
	}
	c.ops.close(id, model.OpCanceled, "withdrawn by "+by)
	c.touch()
	return nil
}

// withdraw takes back what a queued command has set.
func (h *host) withdraw(op model.Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.byName[op.Command.Proxy]
	if p == nil {
		return
	}
	p.waiting = without(p.waiting, op.ID)
	if m := p.m; m != nil {
		m.ops = without(m.ops, op.ID)
		switch {
		case op.Command.Verb == model.VerbRecreate && !m.leaving:
			m.replace, m.operator, m.by = "", false, ""
		case op.Command.Verb == model.VerbDelete && !m.leaving:
			m.wish = wishRun
		}
	}
	h.refresh(p, time.Now())
}

func without(ids []model.OpID, id model.OpID) []model.OpID {
	var out []model.OpID
	for _, i := range ids {
		if i != id {
			out = append(out, i)
		}
	}
	return out
}
