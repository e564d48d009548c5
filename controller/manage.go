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
	if c.persist(now) != nil {
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
		if p.m.busy == jobNone {
			due = append(due, h.manageProxy(p, now)...)
		}
		if p.m == nil {
			continue // it was promoted, and is an adopted one again
		}
		if it, ok := h.planItem(p); ok {
			plan = append(plan, it)
		}
	}
	return append(plan, h.orphansPass(now, &due)...), due
}

// manageProxy decides for one of which nothing is under way, and returns what is
// to be begun. The lock is held.
func (h *host) manageProxy(p *proxy, now time.Time) (due []launch) {
	m := p.m
	before := m.done.text()
	if m.listed && m.ownerKnown && m.owner.UID == m.uid && h.unreachable(m) == "" {
		m.hash = m.owner.SpecHash // the mark is the truth
	}
	d := decide(h.facts(p, now))
	m.done = d
	h.settleWants(p, d, now)
	switch {
	case d.refused:
		h.overrule(p, d.wait)
	case d.met != "":
		h.fulfil(p, d.met)
	case d.gone:
		h.gone(p, now)
	case d.job == jobNone || d.wait != "":
	case d.job == jobDrain && h.mayAct(&m.done):
		h.leave(p, d, now)
	case d.job == jobDrain:
	case h.mayWrite(&m.done):
		due = append(due, h.begin(p, d, now))
	}
	if p.m == m && m.done.text() != before {
		h.refresh(p, now)
	}
	if m.order != nil && m.busy == jobNone && m.done.wait != "" {
		h.c.ops.waits(m.order.op, m.done.wait)
	}
	return due
}

// settleWants forgets what belongs to something that is wanted no more. The lock
// is held.
func (h *host) settleWants(p *proxy, d decision, now time.Time) {
	m := p.m
	if m.retired && m.order != nil && m.order.verb != model.VerbDelete {
		h.c.ops.close(h.void(p).op, model.OpCanceled, m.overtaken())
	}
	nothing := d.text() == ""
	if nothing {
		m.paid, m.allowed = false, ""
	}
	if !nothing && d.job == jobNone {
		return // nobody knows what is wanted, or it is gone
	}
	if m.failed != d.job && (m.failed != jobDelete || !d.removes()) {
		m.failure = failure{}
	}
	if m.leaving() && m.poolDrain.IsZero() && !d.removes() { // wanted again
		m.drainEnd = time.Time{}
		if m.charge != nil {
			h.c.uncount(*m.charge)
			m.charge, m.paid = nil, false
		}
		h.refresh(p, now)
	}
}

// facts gathers what decide looks at. The lock is held.
func (h *host) facts(p *proxy, now time.Time) vmFacts {
	m := p.m
	f := vmFacts{
		now: now, wish: m.wish, retired: m.retired, unreachable: h.unreachable(m), hold: h.c.holdFirst(p),
		listed: m.listed, elsewhere: h.c.elsewhere(m.uid, h.name), owner: m.owner, ownerKnown: m.ownerKnown, uid: m.uid,
		fleet: h.c.settings().Fleet, id: h.c.id, takeover: h.c.settings().Takeover, adopted: m.adopted, built: m.built, removed: m.removed,
		domain: p.st.domain, missing: p.st.missing.n, off: p.st.off.n, leaveOff: h.c.settings().LeaveStopped, serving: p.st.ip.IsValid(),
		pooled: m.poolWhy, grace: m.grace, leaving: m.leaving(), drainUntil: m.drainEnd,
		failure: m.failure, budget: h.c.budgetHold(h.name, m.pool, now), paid: m.paid, allowed: m.allowed,
	}
	if o := m.order; o != nil {
		f.order, f.by, f.asked = o.verb, o.by, o.why
		f.unseen = !p.st.seen.After(o.at) && !h.listedAt.After(o.at)
		f.anew = o.uid != m.uid || o.run != "" && p.st.incarnation != "" && o.run != p.st.incarnation
	}
	f.remake = m.remake()
	return f
}

// unreachable returns why the newest listing may not be acted upon; empty if it
// may. The lock is held.
func (h *host) unreachable(m *managed) string {
	switch {
	case h.via().build == nil:
		return "this host cannot make VMs"
	case h.unfit() != "":
		return h.unfit()
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
	m.drainEnd = now
	if hurried := m.recreates() && m.order.op != 0; p.inRot && !hurried {
		m.drainEnd = now.Add(m.drain)
	}
	if d.counted {
		m.charge, m.paid = new(h.count(p, d, now)), true
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
	case m.adopted:
		what := "its VM is gone; virdeck did not make it, and cannot make another"
		if m.listed && !m.removed {
			what = "is not managed any more: " + m.done.why
		}
		h.tellSame(p, note{what: what}, now)
		h.fulfil(p, "removed")
		p.m, p.spec.Backing, p.st = nil, model.BackingAdopted, status{}
		h.settle(p, now)
	case m.wish == wishGone && m.hash == "" && m.order == nil:
		return // it stays away
	case m.wish == wishGone:
		if m.hash != "" {
			h.tellSame(p, note{what: "its VM is gone"}, now)
		}
		h.fulfil(p, "removed")
		h.renew(p, now) // start makes another one
	default:
		h.tellSame(p, note{what: "its VM is gone; another one takes its place"}, now)
		h.renew(p, now)
		h.c.kickManage()
	}
}

// mayWrite reports whether the host takes one more write now; if not, d says
// why. The lock is held.
func (h *host) mayWrite(d *decision) bool {
	if h.mayAct(d) && h.writes >= h.writesFor(*d) {
		d.wait = fmt.Sprintf("%d other writes to %s come first", h.writes, h.name)
	}
	return d.wait == ""
}

// mayAct reports whether anything is done at all; if not, d says why. The lock is
// held.
func (h *host) mayAct(d *decision) bool {
	if d.wait = h.c.passive(); d.wait == "" && h.resting {
		d.wait = "the settings of " + string(h.name) + " are being changed"
	}
	return d.wait == ""
}

// passive tells why nothing is written to any host by this virdeck; empty if
// things are.
func (c *Controller) passive() string {
	switch {
	case c.settings().Observer:
		return "this virdeck only observes"
	case c.settings().DryRun:
		return "dry run: nothing is written"
	}
	return ""
}

// writesFor is how many writes there may be under way for one more to begin. What
// an operator switches on or off does not wait for VMs that are being made.
func (h *host) writesFor(d decision) int {
	switch d.job {
	case jobStop, jobRestart, jobStart:
		if d.by != "" {
			return h.c.settings().Writes + powerAtOnce
		}
	case jobNone, jobCreate, jobDrain, jobDelete:
	}
	return h.c.settings().Writes
}

// planItem describes what is wanted for the plan; false if nothing is. The lock
// is held.
func (h *host) planItem(p *proxy) (model.PlanItem, bool) {
	m := p.m
	d := m.done
	it := model.PlanItem{
		Host: h.name, Proxy: p.spec.Name, Domain: p.spec.Domain, Verb: d.planVerb(), Why: d.why, Wait: d.wait,
		Counted: d.counted, Dry: h.c.passive() != "",
	}
	if m.busy != jobNone {
		it.Since, it.Step = m.from, m.step
	}
	return it, m.busy != jobNone || d.text() != "" && !d.gone
}

func (d decision) planVerb() model.PlanVerb {
	switch d.job {
	case jobCreate:
		return model.PlanCreate
	case jobStart:
		return model.PlanStart
	case jobStop:
		return model.PlanStop
	case jobRestart:
		return model.PlanRestart
	case jobDrain, jobDelete:
		if d.remake {
			return model.PlanReplace
		}
		if d.job == jobDrain {
			return model.PlanDrain
		}
		return model.PlanDelete
	case jobNone:
		if d.why != "" { // what its pool has drained
			return model.PlanDrain
		}
	}
	return model.PlanNothing
}
