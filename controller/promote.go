package controller

import (
	"context"
	"fmt"
	"time"

	"virdeck/model"
)

// adoptedHash stands in the mark of a VM that virdeck did not make.
const adoptedHash = "adopted"

// byMark makes an adopted proxy a managed one, and the reverse, as the mark of
// its domain says. The mark is the truth, and not what was being done to it: a
// crash, or a lost store, in the middle of a promotion or a release changes
// nothing. The lock is held.
func (h *host) byMark(p *proxy, in model.Instance, now time.Time) {
	if !in.OwnerKnown || in.OwnerNote != "" || !h.listedAt.After(p.marked) {
		return
	}
	o := in.Owner
	switch ours := h.c.ours(o) && o.Proxy == p.spec.Name && o.SpecHash == adoptedHash; {
	case ours && p.m == nil && p.spec.Backing == model.BackingAdopted:
		h.promoted(p, o, now)
	case ours && p.m != nil && p.m.adopted:
		p.m.become(o.UID, o.CreatedAt)
	case o.Zero() && p.m != nil && p.m.adopted && p.m.busy == jobNone:
		h.released(p, now)
	}
}

// ours reports whether a mark is this controller's to act upon.
func (c *Controller) ours(o model.Owner) bool {
	s := c.settings()
	return o.Fleet == s.Fleet && (o.Controller == c.id || s.Takeover)
}

// promoted: the domain of p has our mark. The lock is held.
func (h *host) promoted(p *proxy, o model.Owner, now time.Time) {
	if p.m != nil {
		return // a look at the host was sooner
	}
	p.m = &managed{
		adopted: true, built: true, hash: adoptedHash, drain: singleDrain,
		uid: o.UID, created: o.CreatedAt, listed: true, owner: o, ownerKnown: true,
	}
	p.spec.Backing = model.BackingManaged
	h.tellSame(p, note{what: "is managed from now on: uid " + o.UID}, now)
	h.refresh(p, now)
}

// released: the domain of p has no mark any more. The lock is held.
func (h *host) released(p *proxy, now time.Time) {
	if p.m == nil {
		return // a look at the host was sooner
	}
	h.overrule(p, "its mark is gone: it is not managed any more")
	p.m, p.spec.Backing = nil, model.BackingAdopted
	h.tellSame(p, note{what: "is not managed any more; its VM is left as it is"}, now)
	h.refresh(p, now)
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
	owner := model.Owner{
		Fleet: c.settings().Fleet, Proxy: p.spec.Name, UID: c.newUID(), Controller: c.id,
		SpecHash: adoptedHash, Phase: model.PhaseReady, CreatedAt: now.UTC().Truncate(time.Second),
	}
	c.remark(h, p, id, "marking", func(ctx context.Context, domain string) error {
		return h.via().build.SetOwner(ctx, domain, owner)
	}, func(now time.Time) { h.promoted(p, owner, now) }, "marked as managed")
}

// remark changes the mark of a proxy's domain for an operator, and takes in that
// it is changed.
func (c *Controller) remark(h *host, p *proxy, id model.OpID, doing string, write func(ctx context.Context, domain string) error, then func(time.Time), done string) {
	if err := h.beginAsked(p); err != nil {
		c.ops.end(id, err, "")
		return
	}
	defer h.endAsked()
	ctx, cancel := context.WithTimeout(c.ctx, powerLimit)
	defer cancel()
	domain := h.domainOf(p)
	if !c.ops.phase(id, doing+" domain "+domain) {
		return // withdrawn
	}
	if err := write(ctx, domain); err != nil {
		c.ops.end(id, err, "")
		return
	}
	h.remarked(p, then)
	h.kickLoop()
	c.ops.end(id, nil, done) // the mark is there, and is the truth: nothing that must be remembered
}

// remarked takes in a change of the mark: an older look at the host shows the
// one before.
func (h *host) remarked(p *proxy, then func(time.Time)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	p.marked, h.nextPoll = now, time.Time{}
	then(now)
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
	case p.m != nil && !p.m.ownerKnown:
		return model.Refuse("the mark of domain %s has not been read yet", p.spec.Domain)
	case p.m != nil && h.unfit() != "":
		return model.Refuse("%s", h.unfit())
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
	if owner, marked := h.markOf(p); marked {
		c.remark(h, p, id, "taking the mark off", func(ctx context.Context, domain string) error {
			return h.via().build.ClearOwner(ctx, domain, owner)
		}, func(now time.Time) { h.released(p, now) }, "its mark is gone: adopted again")
		return
	}
	if err := c.forgetAdopted(p.spec.Name); err != nil {
		c.ops.end(id, err, "")
		return
	}
	c.drop([]*proxy{p})
	c.ops.end(id, c.save(), fmt.Sprintf("forgotten; domain %s is left as it is", h.domainOf(p)))
}

// markOf returns the mark of a managed proxy's VM.
func (h *host) markOf(p *proxy) (model.Owner, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.m == nil {
		return model.Owner{}, false
	}
	return p.m.owner, true
}
