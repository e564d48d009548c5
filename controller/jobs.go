package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// begin notes a write, and returns what starts it. The lock is held.
func (h *host) begin(p *proxy, d decision, now time.Time) launch {
	m := p.m
	m.busy, m.why, m.from, m.step = d.job, d.why, now, model.Progress{}
	if d.job == jobCreate && !m.built {
		m.hash = m.spec.Hash()
	}
	if d.counted {
		h.c.count(h.name, m.pool, d.job.String()+" "+string(p.spec.Name), m.by, now)
	}
	h.writes++
	owner, spec, domain := h.ownerOf(p), m.spec, p.spec.Domain
	if d.job == jobDelete && m.listed {
		owner = m.owner // under takeover it may be another controller's, which decide has allowed
	}
	h.tellSame(p, note{what: fmt.Sprintf("%s of its VM begins: %s", d.job, d.why)}, now)
	h.refresh(p, now)
	h.phaseOps(p, d.job.String())
	return launch{h: h, undo: func(retry time.Time) {
		m.busy, m.retryAt, m.lastErr = jobNone, retry, "the store could not be written"
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
		h.phaseOps(p, s.Step)
	}
	h.refresh(p, time.Now())
}

// finish takes in the end of a write, and has the host looked at.
func (h *host) finish(p *proxy, j job, err error) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	m := p.m
	h.writes--
	if m == nil {
		return // it was let go meanwhile
	}
	m.busy, m.ended, m.step = jobNone, now, model.Progress{}
	h.nextPoll = time.Time{}
	defer h.kickLoop()
	defer h.c.kickManage()
	switch {
	case err == nil:
		h.succeeded(p, j, now)
	case h.c.ctx.Err() != nil:
		return // the program ends; the next one goes on from here
	default:
		h.failedWrite(p, j, err, now)
	}
	h.refresh(p, now)
}

func (h *host) succeeded(p *proxy, j job, now time.Time) {
	m := p.m
	m.lastErr, m.latched, m.fails, m.retryAt = "", false, 0, time.Time{}
	what := j.String() + " of its VM done"
	switch j {
	case jobCreate:
		m.built = true
		p.st.missing, p.st.off = looks{}, looks{}
		what = "its VM is made and started"
	case jobDelete:
		m.removed = true
		what = "its VM and its volumes are removed"
	case jobStart:
		p.st.off = looks{}
	case jobNone, jobDrain:
	}
	took := now.Sub(m.from).Round(10 * time.Millisecond)
	h.tellSame(p, note{what: fmt.Sprintf("%s, after %s", what, took)}, now)
	if j != jobDelete || m.replace == "" {
		h.endOps(p, nil, fmt.Sprintf("%s after %s", what, took), now)
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

// failedWrite classifies once, and tells once.
func (h *host) failedWrite(p *proxy, j job, err error, now time.Time) {
	m := p.m
	m.lastErr = writeWords(err)
	class := provider.Classify(err)
	switch {
	case class == provider.ClassPermanent || class == provider.ClassUnsupported:
		m.latched = true
		m.fails++
	case class == provider.ClassConflict:
		m.fails++
		m.retryAt = now.Add(retryConflict)
	case errors.Is(err, provider.ErrNotAsked), errors.Is(err, provider.ErrLinkDown) && h.link != model.LinkUp:
		m.retryAt = now.Add(retryFirst) // nothing was asked of the host: no failure of this write
	default:
		m.fails++
		m.retryAt = now.Add(min(retryFirst<<min(m.fails-1, 10), retryMost))
	}
	h.tellSame(p, note{what: fmt.Sprintf("%s of its VM failed (%s): %s", j, class, m.lastErr)}, now)
	if m.latched || class == provider.ClassConflict {
		h.endOps(p, err, "", now)
		return
	}
	h.phaseOps(p, fmt.Sprintf("tried again in %s: %s", m.retryAt.Sub(now).Round(time.Second), m.lastErr))
}

// phaseOps shows what is being done in the Ops that wait for it. The lock is
// held.
func (h *host) phaseOps(p *proxy, phase string) {
	for _, id := range p.m.ops {
		h.c.ops.phase(id, phase)
	}
}

// endOps ends the Ops that wait for a write. The lock is held.
func (h *host) endOps(p *proxy, err error, result string, _ time.Time) {
	for _, id := range p.m.ops {
		h.c.ops.end(id, err, result)
	}
	p.m.ops = nil
}
