package controller

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"virdeck/model"
	"virdeck/store"
)

// Store is where the controller keeps what must survive a restart. An Apply that
// returns nil is on the disk.
type Store interface {
	Apply(ctx context.Context, changes ...store.Change) error
}

// Times of the store.
const (
	heartbeat = 30 * time.Second
	// restoreAge is how old a store may be and still restore its members into
	// the rotation.
	restoreAge = 10 * time.Minute
	storeLimit = 10 * time.Second
)

// persist writes what has changed since the last time, in one transaction, and
// returns nil if all of it is on the disk.
func (c *Controller) persist(now time.Time) error {
	if c.store == nil {
		return nil
	}
	c.saveMu.Lock()
	defer c.saveMu.Unlock()
	changes, saved := c.changes(now)
	if now.Sub(c.beat) >= heartbeat && !c.fresh.Load() { // until then it began empty for the next process, too
		changes = append(changes, store.SavedAt(now))
	}
	if len(changes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeLimit)
	defer cancel()
	if err := c.store.Apply(ctx, changes...); err != nil {
		c.unsaved()
		if c.storeErr.Swap(new(err.Error())) == nil {
			c.log.Error("store", "error", err.Error(), "records", len(changes))
		}
		return err
	}
	if c.storeErr.Swap(nil) != nil {
		c.log.Info("the store can be written again")
	}
	c.beat = now
	saved()
	return nil
}

// unsaved has every record compared again: nobody knows which were written.
func (c *Controller) unsaved() {
	for _, h := range c.hosts() {
		h.each(func(p *proxy) { p.unsaved = true })
	}
}

// changes gathers what differs from what was saved, and returns what notes that
// it is saved.
func (c *Controller) changes(now time.Time) (out []store.Change, saved func()) {
	type kept struct {
		h   *host
		p   *proxy
		rec store.Proxy
	}
	var recs []kept
	pins := map[*host]string{}
	gone := c.dropped
	for name := range gone { // first: a name may have come back
		out = append(out, store.DeleteProxy(name))
	}
	for _, h := range c.hosts() {
		h.mu.Lock()
		for _, p := range h.proxies {
			if !p.unsaved {
				continue
			}
			p.unsaved = false
			if rec := h.record(p); !reflect.DeepEqual(rec, p.saved) {
				out = append(out, store.PutProxy(rec))
				recs = append(recs, kept{h, p, rec})
			}
		}
		if h.pinned != h.pinSaved {
			out = append(out, store.PinHost(h.name, h.pinned))
			pins[h] = h.pinned
		}
		h.mu.Unlock()
	}
	budgets := c.ledger.changed(now)
	for k, at := range budgets {
		out = append(out, store.PutBudget(k, at))
	}
	return out, func() {
		for _, k := range recs {
			k.h.mu.Lock()
			k.p.saved = k.rec
			k.h.mu.Unlock()
		}
		for h, pin := range pins {
			h.mu.Lock()
			h.pinSaved = pin
			h.mu.Unlock()
		}
		clear(gone)
		c.ledger.wrote(budgets)
	}
}

// record is what must survive of a proxy. The lock is held.
func (h *host) record(p *proxy) store.Proxy {
	r := store.Proxy{
		Name: p.spec.Name, Backing: p.spec.Backing, Host: h.name, Pool: p.spec.Pool, Domain: p.spec.Domain,
		UUID: p.st.uuid, IP: p.st.ip, Incarnation: p.st.incarnation, InRotation: p.inRot, Drained: p.drained,
		Wish: store.WishPresent, Events: p.events,
	}
	if m := p.m; m != nil {
		r.UID, r.CreatedAt, r.Template, r.Creds = m.uid, m.created, m.spec.Template.Name, p.spec.Creds
		if m.built {
			r.SpecHash, r.Port = m.hash, p.spec.Port
		}
		switch {
		case m.retired && m.grace.IsZero() && m.pool != "":
			r.Wish = store.WishDeleting
		case m.wish == wishGone:
			r.Wish = store.WishRemoved
		case m.wish == wishStop && m.order != nil:
			r.Wish = store.WishStopping
		case m.wish == wishStop:
			r.Wish = store.WishStopped
		case m.retired: // it is not declared any more; if it is again, it stays
		case m.recreates(), m.unused != "" && p.leaving():
			r.Wish = store.WishRecreating
		case m.order == nil:
		case m.order.verb == model.VerbStart:
			r.Wish = store.WishStarting
		case m.order.verb == model.VerbRestart:
			r.Wish, r.Incarnation = store.WishRestarting, cmp.Or(m.order.run, r.Incarnation)
		}
	}
	return r
}

// restore puts into a new proxy what is remembered of it. The lock is held.
func (h *host) restore(p *proxy, now time.Time) {
	r, ok := h.c.remembered(p.spec.Name)
	h.c.consumed(p.spec.Name)
	promoted := p.spec.Backing == model.BackingAdopted && r.Backing == model.BackingManaged && r.SpecHash == adoptedHash && r.UID != ""
	if !ok || r.Host != h.name || r.Backing != p.spec.Backing && !promoted || p.m == nil && r.Domain != p.spec.Domain {
		return
	}
	if promoted {
		p.m, p.spec.Backing = &managed{adopted: true, drain: singleDrain}, model.BackingManaged
	}
	p.saved, p.drained, p.events = r, r.Drained, r.Events
	if p.spec.Backing != model.BackingExternal {
		p.st.ip, p.st.incarnation, p.st.uuid, p.st.ipAt = r.IP, r.Incarnation, r.UUID, h.c.state.SavedAt
	}
	p.restored = r.InRotation && now.Sub(h.c.state.SavedAt) <= restoreAge
	if p.m == nil || r.UID == "" {
		return
	}
	m := p.m
	m.built, m.hash = r.SpecHash != "", r.SpecHash
	m.proven = r.InRotation
	if r.Port != 0 {
		p.spec.Port = r.Port
	}
	switch r.Wish {
	case store.WishRemoved:
		m.wish = wishGone
	case store.WishDeleting:
		if m.pool != "" { // its pool had decided; one that is declared by itself is wanted again
			m.retired = true
		}
	case store.WishRecreating:
		m.paid = true // it was counted when it began
		m.order = &order{verb: model.VerbRecreate, uid: r.UID, by: "an earlier run", why: "another VM was to take its place when virdeck stopped"}
	case store.WishStopping:
		m.wish = wishStop
		m.order = &order{verb: model.VerbStop, uid: r.UID, by: "an earlier run", why: "stop, asked for before virdeck stopped"}
	case store.WishStarting:
		m.order = &order{verb: model.VerbStart, uid: r.UID, by: "an earlier run", why: "start, asked for before virdeck stopped"}
	case store.WishRestarting:
		m.order = &order{verb: model.VerbRestart, uid: r.UID, run: r.Incarnation, by: "an earlier run", why: "restart, asked for before virdeck stopped"}
	case store.WishStopped:
		m.wish = wishStop
	case store.WishPresent:
	}
	if promoted {
		m.uid, m.created = r.UID, r.CreatedAt
		return
	}
	h.identify(p, r.UID, r.CreatedAt, r.Creds)
}

// apply writes changes that an operator waits for.
func (c *Controller) apply(changes ...store.Change) error {
	if c.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeLimit)
	defer cancel()
	if err := c.store.Apply(ctx, changes...); err != nil {
		return model.Refuse("it could not be remembered: %s", err)
	}
	return nil
}

// remembered returns what the store had of a proxy at the start.
func (c *Controller) remembered(n model.ProxyName) (store.Proxy, bool) {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	r, ok := c.state.Proxies[n]
	return r, ok
}

// memories returns what the store has of proxies that are not there, by name.
func (c *Controller) memories() []store.Proxy {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	return slices.SortedFunc(maps.Values(c.state.Proxies), func(a, b store.Proxy) int { return cmp.Compare(a.Name, b.Name) })
}

// remember keeps a record for whoever has its name and its host later.
func (c *Controller) remember(r store.Proxy) {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	if c.state.Proxies == nil {
		c.state.Proxies = map[model.ProxyName]store.Proxy{}
	}
	c.state.Proxies[r.Name] = r
}

// consumed notes that a proxy has taken its record, or another one its name:
// whoever has the name later begins anew.
func (c *Controller) consumed(n model.ProxyName) {
	c.stateMu.Lock()
	defer c.stateMu.Unlock()
	delete(c.state.Proxies, n)
}

// outlived has the record of an undeclared proxy dropped, since its VM is gone.
func (c *Controller) outlived(n model.ProxyName, uid string) {
	if r, ok := c.remembered(n); !ok || r.UID != uid {
		return
	}
	c.consumed(n)
	c.saveMu.Lock()
	defer c.saveMu.Unlock()
	c.dropped[n] = true
}

// save has one proxy's record on the disk before it returns: for what an
// operator is told was accepted.
func (c *Controller) save() error {
	if err := c.persist(time.Now()); err != nil {
		return model.Refuse("it could not be remembered: %s", err)
	}
	return nil
}
