package controller

import (
	"context"
	"fmt"
	"time"

	"virdeck/model"
)

// manageEvery is how often the fleet is looked over when nothing asks for it.
const manageEvery = time.Second

// manageGap is the rest after each look, however much asks for the next: a pass
// costs the whole fleet, and a thousand creates that end ask a thousand times.
const manageGap = 50 * time.Millisecond

// manage decides what the managed VMs need, and has it done. It is the only
// goroutine that decides; the writes themselves run beside it. A panic in it is
// logged, and it goes on.
func (c *Controller) manage(ctx context.Context) {
	t := time.NewTicker(manageEvery)
	defer t.Stop()
	gap := time.NewTimer(0)
	defer gap.Stop()
	for {
		c.guard("manage", func() { c.managePass(time.Now()) })
		gap.Reset(manageGap)
		select {
		case <-ctx.Done():
			return
		case <-gap.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-c.replan:
		}
	}
}

// kickManage asks for a pass soon.
func (c *Controller) kickManage() {
	select {
	case c.replan <- struct{}{}:
	default:
	}
}

// managePass looks the fleet over once.
func (c *Controller) managePass(now time.Time) {
	c.claimMarks(now)
	c.poolsPass(now)
	var plan []model.PlanItem
	var due []launch
	for _, h := range c.hosts() {
		items, jobs := h.managePass(now)
		plan, due = append(plan, items...), append(due, jobs...)
	}
	c.forgetGone()
	c.plan.Store(&plan)
	// First what must survive, then what follows from it: a VM that was made
	// under a uid that nobody remembers is an orphan.
	if !c.persist(now) {
		c.giveUp(due, now)
		due = nil
	}
	for _, l := range due {
		l.start()
	}
	c.touch()
}

// launch is a write that has been decided upon.
type launch struct {
	h     *host
	start func()
	undo  func(retry time.Time) // it is not started; called with the host's lock held
}

// giveUp takes back what was decided, since it could not be remembered.
func (c *Controller) giveUp(due []launch, now time.Time) {
	for _, l := range due {
		l.h.mu.Lock()
		l.h.writes--
		l.undo(now.Add(retryStore))
		l.h.mu.Unlock()
	}
}

// retryStore is how soon a write is tried again that the store refused to
// remember.
const retryStore = 10 * time.Second

// managePass decides for each managed proxy of the host.
func (h *host) managePass(now time.Time) (plan []model.PlanItem, due []launch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.proxies {
		if p.m == nil {
			continue
		}
		h.grow(p, now)
		before := p.m.done.text()
		d := decide(h.facts(p, now))
		p.m.done = d
		if p.m.leaving && p.m.poolDrain.IsZero() && !d.removes(p.m) {
			p.m.leaving = false // wanted again
			h.refresh(p, now)
		}
		switch {
		case d.gone:
			h.gone(p, now)
		case d.job == jobDrain:
			h.leave(p, d, now)
		case d.job != jobNone && h.mayWrite(&d) && d.wait == "":
			due = append(due, h.begin(p, d, now))
		}
		if p.m == nil {
			continue // it was promoted, and is an adopted one again
		}
		if d.job != jobNone && p.m.busy == jobNone {
			p.m.done = d // with what it waits for
		}
		if it, ok := h.planItem(p, d); ok {
			plan = append(plan, it)
		}
		if p.m.done.text() != before {
			h.refresh(p, now)
		}
	}
	return append(plan, h.orphansPass(now, &due)...), due
}

// removes reports whether the decision still leads to the VM's removal.
func (d decision) removes(m *managed) bool {
	return m.busy == jobDelete || m.owner.Phase == model.PhaseDeleting || m.wish == wishGone || m.replace != "" || d.job == jobDelete || d.gone
}

// facts gathers what decide looks at. The lock is held.
func (h *host) facts(p *proxy, now time.Time) vmFacts {
	m := p.m
	return vmFacts{
		now: now, wish: m.wish, declared: !m.retired, busy: m.busy != jobNone, unreachable: h.unreachable(m), hold: h.c.holdFirst(p),
		listed: m.listed, elsewhere: h.c.elsewhere(m.uid, h.name), owner: m.owner, ownerKnown: m.ownerKnown, uid: m.uid,
		fleet: h.c.settings().Fleet, id: h.c.id, takeover: h.c.settings().Takeover, adopted: m.adopted, built: m.built, removed: m.removed,
		missing: p.st.missing.n, off: p.st.off.n, leaveOff: h.c.settings().LeaveStopped, serving: p.st.ip.IsValid(),
		replace: m.replace, operator: m.operator, grace: m.grace, leaving: m.leaving, drainUntil: m.drainEnd,
		latched: latchedText(m), lastErr: m.lastErr, retryAt: m.retryAt, budget: h.c.budgetHold(h.name, m.pool, now),
	}
}

func latchedText(m *managed) string {
	if !m.latched {
		return ""
	}
	return m.lastErr
}

// unreachable returns why the newest listing may not be acted upon; empty if it
// may. The lock is held.
func (h *host) unreachable(m *managed) string {
	switch {
	case h.via().build == nil:
		return "this host cannot make VMs"
	case h.misconfig != "":
		return h.misconfig
	case h.twin != "":
		return h.twin
	case h.link != model.LinkUp:
		return fmt.Sprintf("the link to %s is %s", h.name, h.link)
	case h.listGen == 0:
		return fmt.Sprintf("%s has not been looked at yet", h.name)
	case h.pollErr != "":
		return fmt.Sprintf("the last look at %s failed: %s", h.name, h.pollErr)
	case h.listGen > h.identGen || h.listGen != h.via().prov.Link().Generation:
		return fmt.Sprintf("%s has not been looked at since its link came up", h.name)
	case m != nil && !h.listedAt.After(m.ended):
		return "a look at the host since the last write"
	}
	return ""
}

// leave takes the proxy out of rotation before its VM is removed. The lock is
// held.
func (h *host) leave(p *proxy, d decision, now time.Time) {
	m := p.m
	m.leaving, m.drainEnd = true, now
	if p.inRot {
		m.drainEnd = now.Add(m.drain)
	}
	if d.counted {
		h.c.count(h.name, m.pool, "replace "+string(p.spec.Name), m.by, now)
	}
	h.tellSame(p, note{what: "leaves the rotation, its VM is to be removed: " + d.why}, now)
	h.refresh(p, now)
	h.c.kickManage()
}

// gone: nothing is left of the VM. The lock is held.
func (h *host) gone(p *proxy, now time.Time) {
	m := p.m
	switch {
	case m.retired:
		return // forgetGone takes it away
	case m.replace != "" && m.wish != wishGone:
		h.tellSame(p, note{what: "its VM is gone; another one takes its place"}, now)
		h.renew(p, now)
		h.c.kickManage()
	case m.adopted && m.removed:
		h.tellSame(p, note{what: "its VM is gone; virdeck did not make it, and cannot make another"}, now)
		h.endOps(p, nil, "removed", now)
		p.m, p.spec.Backing, p.st = nil, model.BackingAdopted, status{}
		h.settle(p, now)
	case m.removed && m.wish != wishGone: // wanted again while it was being removed
		h.tellSame(p, note{what: "its VM is gone; it is wanted again, and made anew"}, now)
		h.renew(p, now)
		h.c.kickManage()
	case m.wish == wishGone && (m.built || m.removed):
		h.tellSame(p, note{what: "its VM is gone"}, now)
		h.endOps(p, nil, "removed", now)
		h.renew(p, now) // start makes another one
		p.m.wish = wishGone
		h.refresh(p, now)
	}
}

// mayWrite reports whether the host takes one more write now; if not, d says
// why. The lock is held.
func (h *host) mayWrite(d *decision) bool {
	switch {
	case h.c.settings().Observer:
		d.wait = "this virdeck only observes"
	case h.c.settings().DryRun:
		d.wait = "dry run: nothing is written"
	case h.resting:
		d.wait = "the settings of " + string(h.name) + " are being changed"
	case h.writes >= h.c.settings().Writes:
		d.wait = fmt.Sprintf("%d other writes to %s come first", h.writes, h.name)
	default:
		return true
	}
	return false
}

// planItem describes the decision for the plan. The lock is held.
func (h *host) planItem(p *proxy, d decision) (model.PlanItem, bool) {
	m := p.m
	it := model.PlanItem{
		Host: h.name, Proxy: p.spec.Name, Domain: p.spec.Domain, Why: d.why, Wait: p.m.done.wait,
		Counted: d.counted, Dry: h.c.settings().DryRun || h.c.settings().Observer, Verb: model.PlanNothing,
	}
	j := d.job
	if m.busy != jobNone {
		j, it.Why, it.Wait, it.Since, it.Step = m.busy, m.why, "", m.from, m.step
	}
	switch {
	case m.replace != "" && m.wish != wishGone && (d.why != "" || m.busy == jobDelete):
		it.Verb = model.PlanReplace
	case j == jobCreate, d.job == jobNone && !m.built && d.why != "" && m.wish == wishRun:
		it.Verb = model.PlanCreate
	case j == jobStart:
		it.Verb = model.PlanStart
	case j == jobDrain:
		it.Verb = model.PlanDrain
	case j == jobDelete, m.wish == wishGone && d.why != "" && !d.gone:
		it.Verb = model.PlanDelete
	case d.why == "" && d.wait == "":
		return it, false
	}
	return it, !d.gone
}
