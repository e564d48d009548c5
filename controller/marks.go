package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// noteMarks keeps, of a listing, what managed proxies and orphans need. The lock
// is held.
func (h *host) noteMarks(l provider.Listing, now time.Time) {
	h.listGen, h.listedAt, h.pollErr = l.Generation, l.At, ""
	h.marked = h.marked[:0]
	unread := ""
	byName := make(map[string]model.Instance, len(l.Instances))
	for _, in := range l.Instances {
		byName[in.Name] = in
		if !in.OwnerKnown {
			if unread == "" && h.c.perhapsOurs(in.Name) {
				unread = join(fmt.Sprintf("the mark of domain %s on %s has not been read yet", in.Name, h.name), " ", brackets(in.OwnerNote))
			}
			continue
		}
		if in.Owner.Fleet == h.c.settings().Fleet {
			h.marked = append(h.marked, in)
		}
	}
	if h.unread != "" { // once is enough
		h.unread = unread
	}
	for _, p := range h.proxies {
		in, ok := byName[p.spec.Domain]
		if ok {
			h.byMark(p, in, now)
		}
		if p.m != nil {
			if in.OwnerKnown && in.UUID != p.st.uuid {
				h.via().queue.Add(p.spec.Name) // without its mark it was not read
			}
			p.m.listed, p.m.owner, p.m.ownerKnown = ok, in.Owner, in.OwnerKnown
			was := p.m.foreign
			if p.m.foreign = h.foreign(p, in); p.m.foreign != was && p.m.foreign != "" {
				h.tellSame(p, note{what: p.m.foreign}, now)
			}
		}
	}
}

// perhapsOurs reports whether a domain of this name may have been made for what is
// declared, on whatever host.
func (c *Controller) perhapsOurs(domain string) bool {
	d, fleet := c.declared.Load(), c.settings().Fleet
	made, ok := model.MadeFor(fleet, domain)
	if !ok {
		return false
	}
	inDomains := func(n model.ProxyName) model.ProxyName { // as domains are named; cut if it is long
		cut, _ := model.MadeFor(fleet, model.DomainName(fleet, n, "-000000"))
		return cut
	}
	return slices.ContainsFunc(d.Managed, func(m model.ManagedSpec) bool { return inDomains(m.Name) == made }) ||
		slices.ContainsFunc(d.Pools, func(p model.PoolSpec) bool {
			_, fits := p.Ordinal(made)
			first := inDomains(p.Member(1))
			return fits || first != p.Member(1) && strings.HasPrefix(string(made), strings.TrimSuffix(string(first), "1"))
		})
}

// holdFirst returns why a proxy's first VM must not be made yet; empty if it may
// be. Where the store began empty, the marks on the hosts are the memory: until
// all of them have been read, what is missing here may well run there. The lock
// of the proxy's host is held.
func (c *Controller) holdFirst(p *proxy) string {
	if p.m.built {
		return ""
	}
	if why := c.rival(p.m.pool, p.spec.Name); why != "" {
		return why
	}
	if !c.fresh.Load() {
		return ""
	}
	if p.m.recovering || c.host(p.spec.Host).hasMarkFor(p) {
		return "its VM is there, and is being taken over by its mark"
	}
	return c.blind()
}

// blind returns why nothing may be made, or taken for an orphan, on any host;
// empty if it may be.
func (c *Controller) blind() string {
	if !c.fresh.Load() {
		return ""
	}
	if why := c.unread(); why != "" {
		return "the store began empty, and " + why
	}
	return ""
}

// sightings is what the marks on all hosts tell together. It is immutable.
type sightings struct {
	unread string                      // what of the marks has not been read since the start; empty: nothing
	rivals map[string]string           // by proxy, and by poolKey: what another controller of this fleet has made
	owners map[string]string           // by uid: which proxy has it, and where
	on     map[string][]model.HostName // by uid: where the newest looks saw it
}

// unread returns what of the marks has not been read since the start; empty if
// all have.
func (c *Controller) unread() string {
	if s := c.sightings.Load(); s != nil {
		return s.unread
	}
	return "the hosts have not been looked at yet"
}

// claimMarks looks at the marks on all hosts. Declared proxies without a VM of
// their own get the uid of the VM that carries their name, if it is ours: after a
// store was lost, or after a define came through that nobody waited for.
func (c *Controller) claimMarks(now time.Time) {
	s := &sightings{rivals: map[string]string{}, owners: map[string]string{}, on: map[string][]model.HostName{}}
	taking := false
	for _, h := range c.hosts() {
		if h.via().build == nil {
			continue
		}
		found, unread := h.readMarks(s)
		if s.unread == "" {
			s.unread = unread
		}
		for _, in := range found {
			c.claimMark(h, in, now)
		}
		h.each(func(p *proxy) {
			if p.m != nil {
				taking = taking || p.m.recovering
				s.owners[p.m.uid] = string(p.spec.Name) + " on " + string(h.name)
			}
		})
	}
	c.sightings.Store(s)
	if c.fresh.Load() && s.unread == "" && !taking && c.settled.Load() {
		c.fresh.Store(false) // from here on the store knows more than the marks
	}
	c.settled.Store(s.unread == "")
}

// readMarks notes the marked domains of the newest listing in s, returns those
// that a record may take over, and what of the marks has never been read.
func (h *host) readMarks(s *sightings) (found []model.Instance, unread string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, in := range h.marked {
		if h.twin == "" {
			s.on[in.Owner.UID] = append(s.on[in.Owner.UID], h.name)
		}
		if o := in.Owner; !h.c.ours(o) {
			why := fmt.Sprintf("another controller, %s, has made %s on %s: start with --takeover if that one is gone for good", o.Controller, in.Name, h.name)
			s.rivals[string(o.Proxy)] = why
			if o.Pool != "" {
				s.rivals[poolKey(o.Pool)] = why
			}
		}
		if p := h.byName[in.Owner.Proxy]; p != nil && p.m != nil && h.c.claimable(p.m, in.Owner) {
			found = append(found, in)
		}
	}
	return found, h.unread
}

// hasMarkFor reports whether a marked domain waits to be taken over by p. The
// lock is held.
func (h *host) hasMarkFor(p *proxy) bool {
	for _, in := range h.marked {
		if in.Owner.Proxy == p.spec.Name && h.c.claimable(p.m, in.Owner) {
			return true
		}
	}
	return false
}

// ownerOfUID names the proxy that has a uid, on whatever host; empty if none has.
func (c *Controller) ownerOfUID(uid string) string {
	if s := c.sightings.Load(); s != nil {
		return s.owners[uid]
	}
	return "a proxy, perhaps: the fleet has not been looked over yet"
}

// elsewhere names another host than h that has a domain with a uid's mark; empty
// if none has.
func (c *Controller) elsewhere(uid string, h model.HostName) model.HostName {
	if s := c.sightings.Load(); s != nil {
		for _, other := range s.on[uid] {
			if other != h {
				return other
			}
		}
	}
	return ""
}

func poolKey(pool string) string { return "pool " + pool } // no proxy's name has a space

// rival returns why nothing may be made for a pool or a proxy: another
// controller of this fleet has, and two that make the same fleet undo each
// other's work.
func (c *Controller) rival(pool string, name model.ProxyName) string {
	s := c.sightings.Load()
	switch {
	case s == nil:
		return ""
	case pool != "":
		return s.rivals[poolKey(pool)]
	}
	return s.rivals[string(name)]
}

// claimable reports whether the record of a proxy may take the uid of a mark.
func (c *Controller) claimable(m *managed, o model.Owner) bool {
	return c.ours(o) && c.fresh.Load() && !m.built && m.busy == jobNone && o.UID != "" && o.UID != m.uid && o.Phase != model.PhaseDeleting && !m.recovering
}

// claimMark takes a VM over into the record: its uid, and the credentials that
// its seed has. The seed is read beside, since that asks the host.
func (c *Controller) claimMark(h *host, in model.Instance, now time.Time) {
	p := h.proxy(in.Owner.Proxy)
	if p == nil || !h.setRecovering(p, true) {
		return
	}
	c.ops.wg.Go(func() {
		ctx, cancel := context.WithTimeout(c.ctx, c.settings().DeleteTimeout)
		defer cancel()
		spec, err := h.via().build.Recover(ctx, in.Name)
		if !h.setRecovering(p, false) {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if err != nil {
			p.m.failure = failure{failed: jobCreate, lastErr: writeWords(err), retryAt: time.Now().Add(retryConflict)}
			h.tellSame(p, note{what: "its VM is there, and its credentials cannot be read back: " + p.m.lastErr}, now)
			return
		}
		h.identify(p, in.Owner.UID, in.Owner.CreatedAt, spec.Creds)
		p.spec.Port = spec.Port
		p.m.listed, p.m.owner, p.m.ownerKnown = true, in.Owner, true
		h.tellSame(p, note{what: "taken over by its mark: uid " + in.Owner.UID}, now)
		h.settle(p, time.Now())
		h.via().queue.Add(p.spec.Name)
		c.kickManage()
	})
}

// setRecovering notes that a proxy's seed is being read; false if it is not
// managed any more.
func (h *host) setRecovering(p *proxy, v bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.m == nil {
		return false
	}
	p.m.recovering = v
	return true
}
