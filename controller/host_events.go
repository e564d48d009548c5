package controller

import (
	"fmt"
	"time"

	"virdeck/health"
	"virdeck/model"
	"virdeck/provider"
)

// onLink is the provider's callback for the link's state.
func (h *host) onLink(ls model.LinkStatus) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dirty = true
	defer h.c.touch()
	if ls.State == h.link && ls.State != model.LinkUp {
		return
	}
	from := h.link
	h.link = ls.State
	switch {
	case ls.State == model.LinkUp:
		h.downSince = time.Time{}
	case h.downSince.IsZero():
		h.downSince = now
	}
	switch ls.State {
	case model.LinkDown:
		h.tellHost(from.String(), ls.State.String(), "link down: "+ls.LastError, now)
		// At once, and not at the next poll: the screen must not show as known
		// what cannot be known any more.
		h.failAll(fmt.Errorf("%w: %s", provider.ErrLinkDown, ls.LastError), now)
	case model.LinkUp:
		h.tellHost(from.String(), ls.State.String(), "link up, generation "+itoa(ls.Generation), now)
	case model.LinkConnecting, model.LinkDraining:
		h.tellHost(from.String(), ls.State.String(), "link "+ls.State.String(), now)
	}
}

// onEvent is the provider's callback for what the host tells.
func (h *host) onEvent(ev provider.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ev.Domain == "" { // a new generation: look at everything
		h.nextPoll = time.Time{}
		for _, p := range h.proxies {
			if ev.What == provider.EventIdentified && p.st.failed.IsZero() {
				continue // read since the link came up, and believed
			}
			h.via().queue.Forget(p.spec.Name)
			h.via().queue.Add(p.spec.Name)
		}
		h.kickLoop()
		return
	}
	for _, p := range h.proxies {
		if p.spec.Domain == ev.Domain {
			h.c.log.Debug("host event", "host", string(h.name), "proxy", string(p.spec.Name), "what", ev.What)
			p.fresh = true
			h.via().queue.Add(p.spec.Name)
			// An agent that has just connected may answer before its guest has
			// an address: look once more.
			h.via().queue.AddAfter(p.spec.Name, eventAgain)
		}
	}
}

// eventAgain is when an event's second look follows.
const eventAgain = 2 * time.Second

// onHealth takes in that health knows something new about one of our proxies.
func (h *host) onHealth(k health.Key) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.byName[k.Proxy]
	if p == nil {
		return
	}
	h.promote(p, now)
	h.doubt(p, now)
	h.refresh(p, now)
}

// doubt asks the sources as soon as the hop to the address fails: perhaps the
// guest has another one by now. The lock is held.
func (h *host) doubt(p *proxy, now time.Time) {
	hl := h.healthOf(p)
	if h.external() || hl.Fails == 0 || hl.Last.Culprit != model.CulpritHop || now.Sub(p.doubted) < h.c.settings().AddressRetry {
		return
	}
	p.doubted = now
	h.via().queue.Add(p.spec.Name)
}

// promote lets a candidate take its place: when it is proven, or at once when
// the old address fails at the hop.
func (h *host) promote(p *proxy, now time.Time) {
	if !p.st.candidate.IsValid() {
		return
	}
	cand, _ := h.c.health.Health(health.Key{Proxy: p.spec.Name, Address: p.st.candidate})
	old := h.healthOf(p)
	why := ""
	switch {
	case cand.Proven:
		why = "the new address has passed its probes"
	case old.Fails > 0 && old.Last.Culprit == model.CulpritHop:
		why = "the old address fails at the hop: " + old.Last.Reason
	default:
		return
	}
	var n note
	p.st, n = p.st.replaceBy(why, now)
	h.tellSame(p, n, now)
	h.settle(p, now)
}

func (h *host) tellHost(from, to, what string, now time.Time) {
	ev := model.Event{Seq: h.c.seq.Add(1), At: now, Host: h.name, From: from, To: to, What: what}
	h.events = keep(h.events, ev)
	attrs := []any{"host", string(h.name), "what", what}
	if to == model.LinkDown.String() {
		h.c.log.Warn("host changed", attrs...)
		return
	}
	h.c.log.Info("host changed", attrs...)
}
