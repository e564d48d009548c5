package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// orphan is a domain with our mark that no declared proxy owns.
type orphan struct {
	name  string // of the domain
	owner model.Owner
	first time.Time // when the first look found it so
	last  time.Time // the newest look that did
	looks int

	busy    bool // being removed
	from    time.Time
	step    model.Progress
	lastErr string
	retryAt time.Time
	fails   int
}

// looked takes in that one more look found the orphan.
func (o orphan) looked(at time.Time) orphan {
	if o.first.IsZero() {
		o.first = at
	}
	if o.looks == 0 || at.Sub(o.last) >= lookApart {
		o.looks++
	}
	o.last = at
	return o
}

// hold returns why the orphan is not removed now; empty if it may be. Two looks
// through a live link, and a grace counted from the younger of its making and
// our finding it: an abandoned define may come through late, and a proxy that
// was taken out of the file by mistake can be put back.
func (o orphan) hold(now time.Time, grace time.Duration, budget string) string {
	since := o.first
	if o.owner.CreatedAt.After(since) {
		since = o.owner.CreatedAt
	}
	switch {
	case o.looks < 2:
		return "a second look at the host"
	case now.Before(since.Add(grace)):
		return fmt.Sprintf("removed in %s, after the grace for orphans", since.Add(grace).Sub(now).Round(time.Second))
	}
	return budget
}

// noteOrphans keeps, of the marked domains of the newest listing, those that
// nobody declares, with what was known of them before. A domain that is ours and
// whose proxy lives on another host is an orphan here. The lock is held.
func (h *host) noteOrphans() {
	old := h.orphans
	h.orphans = map[string]*orphan{}
	if h.twin != "" {
		return // they are the other name's to judge
	}
	mine := map[string]bool{}   // uids that this host's proxies have
	stands := map[string]bool{} // domains that they stand on
	for _, p := range h.proxies {
		stands[p.spec.Domain] = true
		if p.m != nil {
			mine[p.m.uid] = true
		}
	}
	for _, in := range h.marked {
		if !h.c.ours(in.Owner) || mine[in.Owner.UID] {
			continue
		}
		// What virdeck did not make it never removes of its own accord, whatever
		// has become of the record of its promotion.
		if in.Owner.SpecHash == adoptedHash || stands[in.Name] {
			continue
		}
		// A mark that came with a copy: Create gives name and UUID by the owner.
		if by := h.via().build.Identity(in.Owner); by.Domain != in.Name || by.UUID != in.UUID {
			continue
		}
		o := orphan{}
		if was := old[in.Owner.UID]; was != nil {
			o = *was
		}
		o.name, o.owner = in.Name, in.Owner
		o = o.looked(h.listedAt)
		h.orphans[in.Owner.UID] = &o
	}
	for uid, o := range old {
		if o.busy && h.orphans[uid] == nil {
			h.orphans[uid] = o // its removal will end it
		}
	}
}

// orphansPass removes the orphans whose time has come. The lock is held.
func (h *host) orphansPass(now time.Time, due *[]launch) []model.PlanItem {
	var plan []model.PlanItem
	for _, uid := range slices.Sorted(maps.Keys(h.orphans)) {
		o := h.orphans[uid]
		d := decision{job: jobDelete, why: "its mark is ours, and no proxy has its uid", counted: true}
		it := model.PlanItem{Host: h.name, Domain: o.name, Verb: model.PlanOrphan, Why: d.why, Counted: true, Dry: h.c.passive() != ""}
		switch {
		case o.busy:
			it.Since, it.Step = o.from, o.step
			plan = append(plan, it)
			continue
		case h.waitOrphan(o, now) != "":
			it.Wait = h.waitOrphan(o, now)
		case h.mayWrite(&d):
			*due = append(*due, h.beginOrphan(uid, o, now))
		default:
			it.Wait = d.wait
		}
		plan = append(plan, it)
	}
	return plan
}

// waitOrphan returns why an orphan is not removed now.
func (h *host) waitOrphan(o *orphan, now time.Time) string {
	switch {
	case h.c.blind() != "":
		return h.c.blind()
	case h.unreachable(nil) != "":
		return h.unreachable(nil)
	case h.c.ownerOfUID(o.owner.UID) != "":
		// Moved, or two hosts of the configuration are one: whose it is is known.
		return "its uid is that of " + h.c.ownerOfUID(o.owner.UID) + ": it is left alone"
	case now.Before(o.retryAt):
		return fmt.Sprintf("tried again in %s: %s", o.retryAt.Sub(now).Round(time.Second), o.lastErr)
	}
	return o.hold(now, h.c.settings().OrphanGrace, h.c.budgetHold(h.name, o.owner.Pool, now))
}

func (h *host) beginOrphan(uid string, o *orphan, now time.Time) launch {
	o.busy, o.from = true, now
	h.writes++
	counted := h.c.count(h.name, o.owner.Pool, "remove orphan "+o.name, "", now)
	h.tellHost("", "", "the orphan "+o.name+" is being removed", now)
	del := provider.Deletion{Owner: o.owner, Domain: o.name}
	return launch{h: h, undo: func(retry time.Time) {
		o.busy, o.retryAt, o.lastErr = false, retry, "the store could not be written"
		h.c.uncount(counted)
	}, start: func() {
		h.c.ops.wg.Go(func() {
			ctx, cancel := context.WithTimeout(h.c.ctx, h.c.settings().DeleteTimeout)
			defer cancel()
			err := h.via().build.Delete(ctx, del, func(s model.Progress) {
				h.mu.Lock()
				o.step = s
				h.mu.Unlock()
			})
			h.endOrphan(uid, o, err)
		})
	}}
}

func (h *host) endOrphan(uid string, o *orphan, err error) {
	now := time.Now()
	if err == nil {
		h.c.outlived(o.owner.Proxy, uid)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes--
	o.busy = false
	h.dirty = true
	h.nextPoll = time.Time{}
	defer h.kickLoop()
	if err != nil {
		o.fails++
		o.lastErr, o.retryAt = writeWords(err), now.Add(min(retryFirst<<min(o.fails, 10), retryMost))
		h.tellHost("", "", "the orphan "+o.name+" could not be removed: "+o.lastErr, now)
		return
	}
	delete(h.orphans, uid)
	h.tellHost("", "", "the orphan "+o.name+" and its volumes are removed", now)
}

// orphanViews is what screens show of the orphans. The lock is held.
func (h *host) orphanViews(now time.Time) []model.OrphanView {
	var out []model.OrphanView
	for _, uid := range slices.Sorted(maps.Keys(h.orphans)) {
		o := h.orphans[uid]
		wait := h.waitOrphan(o, now)
		if o.busy {
			wait = "being removed"
		}
		out = append(out, model.OrphanView{Domain: o.name, Owner: o.owner, First: o.first, Wait: wait})
	}
	return out
}
