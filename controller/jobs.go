package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"virdeck/model"
	"virdeck/pool"
	"virdeck/provider"
)

// begin notes a write, and returns what starts it. The lock is held.
func (h *host) begin(p *proxy, d decision, now time.Time) launch {
	m := p.m
	m.busy, m.from, m.step, m.there = d.job, now, model.Progress{}, m.listed
	m.charge = nil // from here on it is spent
	if d.job == jobCreate {
		h.buildAs(p, now)
	}
	if o := m.order; d.job == jobRestart && o.run == "" {
		o.run = p.st.incarnation // of which no other is wanted again, whatever the answer
	}
	var counted pool.Entry
	if d.counted {
		counted, m.paid = h.count(p, d, now), true
	}
	h.writes++
	owner, spec, domain := h.ownerOf(p), m.spec, p.spec.Domain
	if d.job == jobDelete && m.listed {
		owner = m.owner // under takeover it may be another controller's, which decide has allowed
	}
	h.tellSame(p, note{what: fmt.Sprintf("%s of its VM begins: %s", d.job, d.why)}, now)
	h.refresh(p, now)
	h.phaseOrder(p, d.job, d.job.String())
	return launch{h: h, undo: func(retry time.Time) {
		m.busy, m.failure = jobNone, failure{failed: d.job, lastErr: "the store could not be written", retryAt: retry}
		if d.counted {
			h.c.uncount(counted)
			m.paid = false
		}
		h.refresh(p, now)
	}, start: func() {
		h.c.ops.wg.Go(func() {
			var err error
			h.c.guard("write of "+string(owner.Proxy), func() {
				err = errPanicked
				err = h.write(p, d.job, owner, spec, domain)
			})
			h.finish(p, d.job, err)
		})
	}}
}

// buildAs notes of what spec the VM is that is being made. Its proxy is found
// there from now on, and not before. The lock is held.
func (h *host) buildAs(p *proxy, now time.Time) {
	p.m.hash = p.m.spec.Hash()
	if p.spec.Port != p.m.spec.Port {
		p.spec.Port = p.m.spec.Port
		h.settle(p, now)
	}
}

var errPanicked = errors.New("the write ended in a panic; see the log")

// write does a job. It blocks as long as the host takes, within the limit of
// the job.
func (h *host) write(p *proxy, j job, owner model.Owner, spec model.BuildSpec, domain string) error {
	limit := h.c.settings().CreateTimeout
	if j != jobCreate {
		limit = h.c.settings().DeleteTimeout
	}
	ctx, cancel := context.WithTimeout(h.c.ctx, limit)
	defer cancel()
	told := func(s model.Progress) { h.progress(p, s) }
	switch j {
	case jobCreate:
		_, err := h.via().build.Create(ctx, provider.Build{Owner: owner, Spec: spec, Takeover: h.c.settings().Takeover}, told)
		return err
	case jobStart:
		return h.via().prov.Start(ctx, domain)
	case jobStop:
		return h.via().prov.Stop(ctx, domain)
	case jobRestart:
		return h.via().prov.Restart(ctx, domain)
	case jobDelete:
		return h.via().build.Delete(ctx, provider.Deletion{Owner: owner, Domain: domain, Storage: spec.Template.Storage}, told)
	case jobNone, jobDrain:
	}
	return nil
}

// progress takes in how far a write has come. Bytes are shown as they go, steps
// at once.
func (h *host) progress(p *proxy, s model.Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.m == nil {
		return
	}
	changed := s.Step != p.m.step.Step
	p.m.step = s
	if changed {
		h.phaseOrder(p, p.m.busy, s.Step)
	}
	h.refresh(p, time.Now())
}

// finish takes in the end of a write, and has the host looked at.
func (h *host) finish(p *proxy, j job, err error) {
	if failed := h.finished(p, j, err); failed != nil {
		_ = h.c.save() // else the next process may find it wanted still; the screen says that nothing can be remembered
		h.c.ops.end(failed.op, err, "")
	}
	h.kickLoop()
	h.c.kickManage()
}

// finished takes in the end of a write. It returns the order that has come to
// nothing with it, if one has.
func (h *host) finished(p *proxy, j job, err error) *order {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	m := p.m
	h.writes--
	h.nextPoll = time.Time{}
	if m == nil {
		return nil // it was let go meanwhile
	}
	m.busy, m.ended, m.step = jobNone, now, model.Progress{}
	defer h.refresh(p, now)
	switch {
	case err == nil:
		h.succeeded(p, j, now)
	case h.c.ctx.Err() != nil: // the program ends; the next one goes on from here
	default:
		return h.failedWrite(p, j, err, now)
	}
	return nil
}

func (h *host) succeeded(p *proxy, j job, now time.Time) {
	m := p.m
	m.failure = failure{}
	what := j.String() + " of its VM done"
	switch j {
	case jobCreate:
		m.built = true
		p.st.missing, p.st.off = looks{}, looks{}
		what = "its VM is made and started"
	case jobDelete:
		m.removed = true
		what = "its VM and its volumes are removed"
	case jobStart, jobRestart:
		p.st.off = looks{}
	case jobNone, jobDrain, jobStop:
	}
	what = fmt.Sprintf("%s, after %s", what, now.Sub(m.from).Round(10*time.Millisecond))
	h.tellSame(p, note{what: what}, now)
	if m.order != nil && m.order.crowns(j, m.uid, m.there) {
		h.fulfil(p, what)
	}
	p.fresh = true
	h.via().queue.Forget(p.spec.Name)
	if j != jobDelete {
		h.via().queue.Add(p.spec.Name)
	}
}

// Waits after a write that failed.
const (
	retryFirst    = time.Second
	retryMost     = 2 * time.Minute
	retryConflict = time.Minute
)

// failedWrite classifies once, and tells once. It returns the order that has come
// to nothing with it, if one has.
func (h *host) failedWrite(p *proxy, j job, err error, now time.Time) *order {
	m := p.m
	fails := m.fails
	if m.failed != j {
		fails = 0
	}
	m.failure = failure{failed: j, lastErr: writeWords(err), fails: fails + 1}
	class := provider.Classify(err)
	switch {
	case class == provider.ClassPermanent || class == provider.ClassUnsupported:
		m.latched = true
	case class == provider.ClassConflict:
		m.retryAt = now.Add(retryConflict)
	case errors.Is(err, provider.ErrNotAsked), errors.Is(err, provider.ErrLinkDown) && h.link != model.LinkUp:
		m.fails = fails // nothing was asked of the host: no failure of this write
		m.retryAt = now.Add(retryFirst)
	default:
		m.retryAt = now.Add(min(retryFirst<<min(fails, 10), retryMost))
	}
	h.tellSame(p, note{what: fmt.Sprintf("%s of its VM failed (%s): %s", j, class, m.lastErr)}, now)
	if (m.latched || class == provider.ClassConflict) && m.order != nil && m.order.crowns(j, m.uid, m.there) {
		return h.void(p)
	}
	return nil // what it waits for now is the next look's to say
}

// phaseOrder shows what is being done in the Op that waits for it. The lock is
// held.
func (h *host) phaseOrder(p *proxy, j job, phase string) {
	if o := p.m.order; o != nil && o.serves(j) {
		h.c.ops.phase(o.op, phase)
	}
}
