package controller

import (
	"context"
	"time"

	"virdeck/model"
)

// powerLimit bounds an operator's start, stop or restart.
const powerLimit = 60 * time.Second

// powerAtOnce is how many of them one host is asked for at a time, beside its
// other writes; others queue, for as long as it takes.
const powerAtOnce = 4

// power starts, stops or restarts the VM of an adopted proxy on an operator's
// word. Those of managed ones are orders.
func (h *host) power(p *proxy, v model.Verb, id model.OpID) {
	select {
	case h.mail <- struct{}{}:
		defer func() { <-h.mail }()
	case <-h.c.ctx.Done():
		h.c.ops.end(id, h.c.ctx.Err(), "")
		return
	}
	if err := h.beginAsked(p); err != nil {
		h.c.ops.end(id, err, "")
		return
	}
	defer h.endAsked()
	ctx, cancel := context.WithTimeout(h.c.ctx, powerLimit)
	defer cancel()
	domain := h.domainOf(p)
	if !h.c.ops.phase(id, v.String()+" of domain "+domain) {
		return // withdrawn while it waited
	}
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
		err = model.Refuse("it is not managed any more")
	}
	h.c.ops.end(id, err, v.String()+" done")
	_ = h.readNow(p) // one that has left is nobody's to read
	h.c.touch()
}

func (h *host) domainOf(p *proxy) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return p.spec.Domain
}
