package controller

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"virdeck/health"
	"virdeck/model"
	"virdeck/provider"
)

// work reads proxies, one at a time, until the queue is shut down. The queue
// gives one proxy to one worker at a time, and folds what is asked for in the
// meantime into one more read.
func (h *host) work(ctx context.Context) {
	for {
		name, down := h.via().queue.Get()
		if down {
			return
		}
		func() {
			// Even after a panic: a proxy that is never done is never read again.
			defer h.via().queue.Done(name)
			h.reconcile(ctx, name)
		}()
	}
}

// reconcile reads one proxy and takes in what it says. Overrunning the budget
// costs this reconcile alone.
func (h *host) reconcile(ctx context.Context, name model.ProxyName) {
	p, q := h.question(name)
	if p == nil {
		return
	}
	rctx, cancel := context.WithTimeout(ctx, h.c.settings().Budget)
	defer cancel()
	in, err := h.via().prov.Get(rctx, q.GetRequest)
	if ctx.Err() != nil { // the program ends, or the host's settings change: no news about the guest
		for _, id := range q.ops {
			h.c.ops.end(id, ctx.Err(), "")
		}
		return
	}
	result := h.answer(p, q, in, err)
	for _, id := range q.ops {
		h.c.ops.end(id, err, result)
	}
	h.c.touch()
	h.again(name, err)
}

// question is what a worker asks of the host about one proxy, and for whom.
type question struct {
	provider.GetRequest
	scheduled bool
	ops       []model.OpID
}

// question takes what is wanted of a proxy; nil if there is none of the name.
func (h *host) question(name model.ProxyName) (*proxy, question) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.byName[name]
	if p == nil {
		return nil, question{}
	}
	q := question{
		GetRequest: provider.GetRequest{Domain: p.spec.Domain, Sources: h.via().spec.Sources, Hint: p.st.ip, Fresh: p.fresh},
		scheduled:  p.due, ops: p.waiting,
	}
	if !q.Hint.IsValid() {
		q.Hint = p.st.hint
	}
	p.due, p.fresh, p.waiting = false, false, nil
	return p, q
}

// answer takes in what the host said, and puts it into words.
func (h *host) answer(p *proxy, q question, in model.Instance, err error) string {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.take(p, read{
		inst: in, err: err, scheduled: q.scheduled, now: now, health: h.healthOf(p), hold: h.c.settings().AddressHold,
	})
	h.sooner(p, now)
	return h.opResult(p, err)
}

// again decides whether a failed read is repeated before its schedule: with
// backoff, and not while the link is down, since its return reads everything.
func (h *host) again(name model.ProxyName, err error) {
	if err == nil || errors.Is(err, provider.ErrNotFound) || errors.Is(err, provider.ErrLinkDown) {
		h.via().queue.Forget(name)
		return
	}
	h.via().queue.AddRateLimited(name)
}

// sooner moves the next scheduled poll forward when the address came into
// doubt, and the next look at the host when a second look is wanted. The lock is
// held.
func (h *host) sooner(p *proxy, now time.Time) {
	if soon := now.Add(h.c.settings().AddressRetry); (p.st.doubtful() || p.rival != "") && p.next.After(soon) {
		p.next = soon
		h.kickLoop()
	}
	if (p.st.off.n == 1 || p.st.missing.n == 1) && h.nextPoll.After(now.Add(time.Second)) {
		h.nextPoll = now.Add(time.Second) // the second look
		h.kickLoop()
	}
}

// take puts a read into a proxy. The lock is held.
func (h *host) take(p *proxy, r read) {
	if r = h.itsOwn(p, r); p.unsure(r.inst) {
		return // its mark comes with a look at the host, and another read with that
	}
	r = h.trusted(p, r)
	wasHeld := p.st.hold.Active
	var notes []note
	p.st, notes = p.st.apply(r)
	for _, n := range notes {
		h.tellSame(p, n, r.now)
	}
	h.refuseClaimed(p, r.now)
	if p.st.hold.Active && !wasHeld {
		h.c.health.ProbeNow(health.Key{Proxy: p.spec.Name, Address: p.st.ip})
	}
	h.settle(p, r.now)
	if r.bulk {
		h.sooner(p, r.now)
	}
}

// refuseClaimed drops a candidate that is another proxy's address: probes
// through it would prove the other one. The present address stays.
func (h *host) refuseClaimed(p *proxy, now time.Time) {
	p.claimed = ""
	if !p.st.candidate.IsValid() {
		return
	}
	if by := h.c.claims.holder(p.spec.Name, p.st.candidate, p.spec.Port); by != "" {
		if p.told != p.st.candidate { // once, however often the source repeats it
			p.told = p.st.candidate
			h.tellSame(p, note{what: fmt.Sprintf("its sources name %s, which %s has: not taken", p.st.candidate, by)}, now)
		}
		p.claimed, p.st.candidate = by, netip.Addr{}
	}
}

// retryClaims reads those again that wait for an address, whenever one has
// become free.
func (c *Controller) retryClaims(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.claims.released:
		}
		for _, h := range c.hosts() {
			h.each(func(p *proxy) {
				if (p.rival != "" || p.claimed != "") && !h.external() {
					h.via().queue.Add(p.spec.Name)
				}
			})
		}
	}
}

// tellSame records an event that is no change of state by itself.
func (h *host) tellSame(p *proxy, n note, now time.Time) {
	h.tell(p, p.state.String(), p.state.String(), n.what, n.evidence, now)
}

// settle makes claims, health and the view agree with the status. The lock is
// held.
func (h *host) settle(p *proxy, now time.Time) {
	p.rival = h.c.claims.take(p.spec.Name, p.effective(), p.spec.Port)
	h.syncHealth(p)
	h.refresh(p, now)
}

func (h *host) opResult(p *proxy, err error) string {
	if err != nil {
		return err.Error()
	}
	if p.st.ip.IsValid() && !p.st.hold.Active {
		return p.state.String() + ", address " + p.st.ip.String() + " by " + p.st.ipSource.String()
	}
	return p.state.String() + ": " + p.view.Reason
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
