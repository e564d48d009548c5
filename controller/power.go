package controller

import (
	"context"
	"time"

	"virdeck/model"
)

// powerLimit bounds an operator's start, stop or restart.
const powerLimit = 60 * time.Second

// powerAtOnce is how many of them one host is asked for at a time; others queue.
const powerAtOnce = 4

// power starts, stops or restarts a VM on an operator's word. Of a managed one
// the wish is kept first, or the next look would undo what was asked for.
func (h *host) power(p *proxy, v model.Verb, id model.OpID) {
	ctx, cancel := context.WithTimeout(h.c.ctx, powerLimit)
	defer cancel()
	select {
	case h.mail <- struct{}{}:
		defer func() { <-h.mail }()
	case <-ctx.Done():
		h.c.ops.end(id, ctx.Err(), "")
		return
	}
	if op, ok := h.c.ops.get(id); !ok || !op.Ended.IsZero() {
		return // withdrawn while it waited
	}
	if err := h.beginAsked(); err != nil {
		h.c.ops.end(id, err, "")
		return
	}
	defer h.endAsked()
	domain := h.domainOf(p)
	h.c.ops.phase(id, v.String()+" of domain "+domain)
	h.c.touch()
	var err error
	switch v {
	case model.VerbStart:
		err = h.via().prov.Start(ctx, domain)
	case model.VerbStop:
		err = h.via().prov.Stop(ctx, domain)
	case model.VerbRestart:
		err = h.via().prov.Restart(ctx, domain)
	default:
		return
	}
	h.c.ops.end(id, err, v.String()+" done")
	h.readNow(p)
	h.c.touch()
}

func (h *host) domainOf(p *proxy) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return p.spec.Domain
}

// setWish keeps what an operator wants of a managed VM. It does nothing to
// others.
func (h *host) setWish(p *proxy, w wish, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.m == nil {
		return
	}
	p.m.wish = w
	p.m.latched, p.m.retryAt, p.m.fails = false, time.Time{}, 0
	h.refresh(p, now)
	h.c.kickManage()
}
