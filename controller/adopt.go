package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"virdeck/model"
	"virdeck/store"
)

// refuseAdopt returns why a domain cannot become a proxy, or nil.
func (c *Controller) refuseAdopt(h *host, cmd model.Command) error {
	a := cmd.Adopt
	switch {
	case a == nil || a.Name == "" || a.Domain == "" || a.Port == 0:
		return model.Refuse("adopt needs a name, a domain and a port")
	case h.external():
		return model.Refuse("external proxies have no domains")
	case c.hostOf(a.Name) != nil:
		return model.Refuse("there is a proxy %s already", a.Name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.proxies {
		if p.spec.Domain == a.Domain {
			return model.Refuse("domain %s is the proxy %s already", a.Domain, p.spec.Name)
		}
	}
	if !slices.Contains(h.strangers, a.Domain) {
		return model.Refuse("there is no domain %s on %s, as far as the last look knows", a.Domain, h.name)
	}
	for _, in := range h.marked {
		if in.Name == a.Domain {
			return model.Refuse("domain %s has the mark of this fleet's proxy %s: it is not adopted, but managed or removed", a.Domain, in.Owner.Proxy)
		}
	}
	return nil
}

// adopt makes a domain a proxy, and remembers it: it is declared in the store,
// not in the configuration.
func (c *Controller) adopt(h *host, spec model.ProxySpec) error {
	spec.Host, spec.Backing = h.name, model.BackingAdopted
	if err := c.apply(store.PutAdopted(store.Adopted{
		Name: spec.Name, Host: spec.Host, Domain: spec.Domain, Port: spec.Port, Probe: spec.Probe, Pool: spec.Pool, Labels: spec.Labels, Creds: spec.Creds,
	})); err != nil {
		return err
	}
	c.lay(func(t *topology) { c.addProxy(t, spec, nil) })
	h.refreshAll()
	c.consoleAdopted(spec.Name, true)
	c.log.Info("adopted", "host", string(h.name), "proxy", string(spec.Name), "domain", spec.Domain)
	return nil
}

// adoptedSpec is the proxy that a record of the store declares.
func adoptedSpec(a store.Adopted) model.ProxySpec {
	return model.ProxySpec{
		Name: a.Name, Host: a.Host, Backing: model.BackingAdopted, Domain: a.Domain, Port: a.Port, Probe: a.Probe, Creds: a.Creds, Pool: a.Pool, Labels: a.Labels,
	}
}

// consoleAdopted notes who is declared in the store alone.
func (c *Controller) consoleAdopted(n model.ProxyName, yes bool) {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	if yes {
		c.adopted[n] = true
		return
	}
	delete(c.adopted, n)
}

func (c *Controller) isConsoleAdopted(n model.ProxyName) bool {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	return c.adopted[n]
}

// refuseRelease returns why a proxy cannot be let go, or nil.
func (c *Controller) refuseRelease(h *host, p *proxy) error {
	if p == nil {
		return model.Refuse("release needs a proxy")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case p.m != nil && p.m.busy != jobNone:
		return model.Refuse("%s of %s is under way", p.m.busy, p.spec.Name)
	case p.m != nil && !p.m.adopted:
		return model.Refuse("%s was made by virdeck: take it out of the configuration, or delete it", p.spec.Name)
	case p.m != nil:
		return c.readOnly()
	case !c.isConsoleAdopted(p.spec.Name):
		return model.Refuse("%s is declared in the configuration: take it out there", p.spec.Name)
	}
	return nil
}

// release takes the mark from a promoted proxy, or forgets one that was adopted
// at the console. Its VM goes on as it is.
func (c *Controller) release(h *host, p *proxy, id model.OpID) {
	h.mu.Lock()
	marked := p.m != nil
	var owner model.Owner
	if marked {
		owner = h.ownerOf(p)
	}
	domain := p.spec.Domain
	h.mu.Unlock()
	if marked {
		ctx, cancel := context.WithTimeout(c.ctx, powerLimit)
		defer cancel()
		c.ops.phase(id, "taking the mark off domain "+domain)
		if err := h.via().build.ClearOwner(ctx, domain, owner); err != nil {
			c.ops.end(id, err, "")
			return
		}
		h.mu.Lock()
		p.m, p.spec.Backing = nil, model.BackingAdopted
		h.tellSame(p, note{what: "is not managed any more; its VM is left as it is"}, time.Now())
		h.refresh(p, time.Now())
		h.nextPoll = time.Time{}
		h.mu.Unlock()
		h.kickLoop()
		c.ops.end(id, c.save(), "its mark is gone: adopted again")
		return
	}
	if err := c.apply(store.DeleteAdopted(p.spec.Name)); err != nil {
		c.ops.end(id, err, "")
		return
	}
	c.consoleAdopted(p.spec.Name, false)
	c.drop([]*proxy{p})
	c.ops.end(id, c.save(), fmt.Sprintf("forgotten; domain %s is left as it is", domain))
}

// refuseManage returns why an adopted proxy cannot be marked, or nil.
func (c *Controller) refuseManage(h *host, p *proxy) error {
	if p == nil {
		return model.Refuse("manage needs a proxy")
	}
	if err := c.readOnly(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case p.m != nil:
		return model.Refuse("%s is managed already", p.spec.Name)
	case p.spec.Backing != model.BackingAdopted || h.via().build == nil:
		return model.Refuse("%s has no VM that could be marked", p.spec.Name)
	case p.st.domain == model.DomainMissing || p.st.uuid == "":
		return model.Refuse("domain %s has not been seen on %s", p.spec.Domain, h.name)
	case h.unreachable(nil) != "":
		return model.Refuse("%s", h.unreachable(nil))
	}
	return nil
}

// promote marks the domain of an adopted proxy as ours: from then on virdeck
// starts it again when it stops, and an operator may delete it. It is never made
// anew, since virdeck did not make it.
func (c *Controller) promote(h *host, p *proxy, id model.OpID) {
	now := time.Now()
	m := &managed{adopted: true, built: true, listed: true, drain: singleDrain, uid: c.newUID(), created: now.UTC().Truncate(time.Second)}
	h.mu.Lock()
	domain := p.spec.Domain
	p.m = m
	owner := h.ownerOf(p)
	p.m = nil
	h.mu.Unlock()
	owner.SpecHash = adoptedHash
	ctx, cancel := context.WithTimeout(c.ctx, powerLimit)
	defer cancel()
	c.ops.phase(id, "marking domain "+domain)
	if err := h.via().build.SetOwner(ctx, domain, owner); err != nil {
		c.ops.end(id, err, "")
		return
	}
	h.mu.Lock()
	m.owner, m.ownerKnown, m.hash, m.ended = owner, true, adoptedHash, time.Now()
	m.owner.Phase = model.PhaseReady
	p.m, p.spec.Backing = m, model.BackingManaged
	h.tellSame(p, note{what: "is managed from now on: uid " + m.uid}, now)
	h.refresh(p, now)
	h.nextPoll = time.Time{}
	h.mu.Unlock()
	h.kickLoop()
	c.ops.end(id, c.save(), "marked as managed")
}

// adoptedHash stands in the mark of a VM that virdeck did not make.
const adoptedHash = "adopted"
