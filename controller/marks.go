package controller

import (
	"context"
	"fmt"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// noteMarks keeps, of a listing, what managed proxies and orphans need. The lock
// is held.
func (h *host) noteMarks(l provider.Listing) {
	h.listGen, h.listedAt, h.pollErr = l.Generation, l.At, ""
	h.marked, h.marksRead = h.marked[:0], true
	byName := make(map[string]model.Instance, len(l.Instances))
	for _, in := range l.Instances {
		byName[in.Name] = in
		if !in.OwnerKnown {
			h.marksRead = false
			continue
		}
		if in.Owner.Fleet == h.c.set.Fleet {
			h.marked = append(h.marked, in)
		}
	}
	h.seen = h.seen || h.marksRead
	for _, p := range h.proxies {
		if p.m == nil {
			continue
		}
		in, ok := byName[p.spec.Domain]
		p.m.listed, p.m.owner, p.m.ownerKnown = ok, in.Owner, in.OwnerKnown
	}
}

// holdFirst returns why a proxy's first VM must not be made yet; empty if it may
// be. Where the store began empty, the marks on the hosts are the memory: until
// all of them have been read, what is missing here may well run there. The lock
// of the proxy's host is held.
func (c *Controller) holdFirst(p *proxy) string {
	if !c.fresh || p.m.built {
		return ""
	}
	if h := c.unreadHost(); h != "" {
		return fmt.Sprintf("the store began empty, and the marks on %s have not been read yet", h)
	}
	return ""
}

// unreadHost returns a host whose marks have not been read since the start;
// empty if there is none.
func (c *Controller) unreadHost() string {
	if h := c.unread.Load(); h != nil {
		return *h
	}
	return "any host"
}

// claimMarks gives declared proxies without a VM of their own the uid of the VM
// that carries their name, if it is ours: after a store was lost, or after a
// define came through that nobody waited for.
func (c *Controller) claimMarks(now time.Time) {
	unread := ""
	for _, h := range c.hosts() {
		if h.build == nil {
			continue
		}
		h.mu.Lock()
		if !h.seen && unread == "" {
			unread = string(h.spec.Name)
		}
		var found []model.Instance
		for _, in := range h.marked {
			if p := h.byName[in.Owner.Proxy]; p != nil && p.m != nil && c.claimable(p.m, in.Owner) {
				found = append(found, in)
			}
		}
		h.mu.Unlock()
		for _, in := range found {
			c.claimMark(h, in, now)
		}
	}
	c.unread.Store(&unread)
}

// claimable reports whether the record of a proxy may take the uid of a mark.
func (c *Controller) claimable(m *managed, o model.Owner) bool {
	mine := o.Controller == c.id || c.set.Takeover
	return mine && c.fresh && !m.built && m.busy == jobNone && o.UID != "" && o.UID != m.uid && o.Phase != model.PhaseDeleting && !m.recovering
}

// claimMark takes a VM over into the record: its uid, and the credentials that
// its seed has. The seed is read beside, since that asks the host.
func (c *Controller) claimMark(h *host, in model.Instance, now time.Time) {
	h.mu.Lock()
	p := h.byName[in.Owner.Proxy]
	p.m.recovering = true
	h.mu.Unlock()
	c.ops.wg.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, c.set.DeleteTimeout)
		defer cancel()
		spec, err := h.build.Recover(ctx, in.Name)
		h.mu.Lock()
		defer h.mu.Unlock()
		p.m.recovering = false
		if err != nil {
			p.m.lastErr, p.m.retryAt = words(err), time.Now().Add(retryConflict)
			h.tellSame(p, note{what: "its VM is there, and its credentials cannot be read back: " + p.m.lastErr}, now)
			return
		}
		h.identify(p, in.Owner.UID, in.Owner.CreatedAt, spec.Creds)
		p.m.listed, p.m.owner, p.m.ownerKnown = true, in.Owner, true
		h.tellSame(p, note{what: "taken over by its mark: uid " + in.Owner.UID}, now)
		h.settle(p, time.Now())
		h.queue.Add(p.spec.Name)
		c.kickManage()
	})
}
