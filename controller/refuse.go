package controller

import "virdeck/model"

// refuse returns why a command cannot be carried out now, or nil.
func (c *Controller) refuse(h *host, p *proxy, cmd model.Command) error {
	external := h != nil && h.external()
	switch cmd.Verb {
	case model.VerbReconcile, model.VerbStart, model.VerbStop, model.VerbRestart:
		if p == nil {
			return model.Refuse("%s needs a proxy", cmd.Verb)
		}
		if external {
			return model.Refuse("%s is external: it has no VM to %s", p.spec.Name, cmd.Verb)
		}
		if cmd.Verb != model.VerbReconcile {
			if err := c.readOnly(); err != nil {
				return err
			}
			if err := h.refuseRetired(p); err != nil {
				return err
			}
			if err := h.refuseForeign(p); err != nil {
				return err
			}
			if err := h.refuseUnfit(); err != nil {
				return err
			}
		}
		if ls := h.via().prov.Link(); ls.State != model.LinkUp {
			return model.Refuse("the link to %s is %s: reconnect it first", h.name, ls.State)
		}
	case model.VerbReconcileHost:
		if external {
			return model.Refuse("external proxies have no host to look at")
		}
		if ls := h.via().prov.Link(); ls.State != model.LinkUp {
			return model.Refuse("the link to %s is %s: reconnect it first", h.name, ls.State)
		}
	case model.VerbReconnect:
		if external {
			return model.Refuse("external proxies have no link")
		}
		if g := h.via().prov.Link().Generation; cmd.SeenGen != 0 && g != cmd.SeenGen {
			return model.Refuse("the link to %s was replaced meanwhile: it is generation %d now, you saw %d", h.name, g, cmd.SeenGen)
		}
	case model.VerbDrain, model.VerbUndrain:
		if p == nil {
			return model.Refuse("%s needs a proxy", cmd.Verb)
		}
		h.mu.Lock()
		drained := p.drained
		h.mu.Unlock()
		if drained == (cmd.Verb == model.VerbDrain) {
			return model.Refuse("%s is %s already", p.spec.Name, map[bool]string{true: "drained", false: "not drained"}[drained])
		}
	case model.VerbRecreate, model.VerbDelete:
		return c.refuseManaged(h, p, cmd)
	case model.VerbAdopt:
		return c.refuseAdopt(h, cmd)
	case model.VerbRelease:
		return c.refuseRelease(h, p)
	case model.VerbManage:
		return c.refuseManage(h, p)
	case model.VerbRepin:
		if external {
			return model.Refuse("external proxies have no host")
		}
		return h.refuseRepin()
	case model.VerbReload:
		if c.reload == nil {
			return model.Refuse("there is no configuration file to reload")
		}
	case model.VerbCancel:
	default:
		return model.Refuse("unknown command")
	}
	return nil
}

// readOnly refuses what would write to a host.
func (c *Controller) readOnly() error {
	switch {
	case c.settings().Observer:
		return model.Refuse("this virdeck only observes")
	case c.settings().DryRun:
		return model.Refuse("this is a dry run: nothing is written to any host")
	}
	return nil
}

// refuseManaged is for what only managed VMs know.
func (c *Controller) refuseManaged(h *host, p *proxy, cmd model.Command) error {
	if p == nil {
		return model.Refuse("%s needs a proxy", cmd.Verb)
	}
	if err := c.readOnly(); err != nil {
		return err
	}
	if err := h.refuseRetired(p); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m := p.m; {
	case m == nil:
		return model.Refuse("%s is %s: only VMs that virdeck made are removed or made anew", p.spec.Name, p.spec.Backing)
	case m.adopted && cmd.Verb == model.VerbRecreate:
		return model.Refuse("%s was adopted: virdeck did not make its VM and cannot make it anew", p.spec.Name)
	case m.remake().why != "" && cmd.Verb == model.VerbRecreate && m.leaving():
		return model.Refuse("%s is being replaced already: %s", p.spec.Name, m.remake().why)
	case m.wish == wishGone && cmd.Verb == model.VerbDelete:
		return model.Refuse("%s is being removed, or was, already", p.spec.Name)
	}
	return nil
}

// refuseRetired is for what is about a VM that is on its way out.
func (h *host) refuseRetired(p *proxy) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.m != nil && p.m.retired {
		return model.Refuse("%s is not declared any more: its VM is being removed", p.spec.Name)
	}
	return nil
}
