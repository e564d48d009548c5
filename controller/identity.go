package controller

import (
	"errors"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// checkIdentity pins the host's UUID at first contact. Another one under the
// same URI is another machine: what it lists says nothing about our proxies.
func (h *host) checkIdentity(l provider.Listing, now time.Time) bool {
	uuid := l.HostUUID
	if uuid == "" {
		return h.misconfig == ""
	}
	if h.pinned == "" {
		h.pinned = uuid
	}
	if uuid == h.pinned {
		h.identGen = l.Generation
	}
	was := h.misconfig
	h.misconfig = ""
	if uuid != h.pinned {
		h.misconfig = "this is another machine: host UUID " + uuid + ", pinned is " + h.pinned
	}
	if h.misconfig != was {
		what := h.misconfig
		if what == "" {
			what = "the pinned machine answers again"
		}
		h.tellHost("", "", what, now)
		for _, p := range h.proxies {
			h.settle(p, now)
		}
	}
	return h.misconfig == ""
}

// errUnidentified: the link is new, and what it shows differs from what was
// known; that counts only once the host has said which machine it is.
var errUnidentified = provider.Transient("the host has not said yet which machine it is, and shows something else than before", nil)

// trusted turns a read that would take something away into one that says
// nothing, as long as it came through a link whose host has not shown its
// identity. What only confirms is taken at once.
func (h *host) trusted(p *proxy, r read) read {
	if h.pinned == "" || p.st.uuid == "" || r.inst.Generation == 0 || r.inst.Generation <= h.identGen {
		return r
	}
	same := r.inst.UUID == p.st.uuid && r.inst.Incarnation == p.st.incarnation
	switch r.inst.State {
	case model.InstanceRunning:
		same = same && r.inst.Address == p.st.ip
	case model.InstanceProvisioning, model.InstanceStopped:
		same = false
	case model.InstancePaused, model.InstanceUnknown:
	}
	if !same && (r.err == nil || errors.Is(r.err, provider.ErrNotFound)) {
		return read{err: errUnidentified, bulk: r.bulk, now: r.now, health: r.health, hold: r.hold}
	}
	if !same {
		r.inst = model.Instance{Outcomes: r.inst.Outcomes}
	}
	return r
}
