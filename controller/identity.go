package controller

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
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
	h.shows = uuid
	if uuid == h.pinned {
		h.identGen = l.Generation
	}
	h.twin = ""
	h.c.machines.pin(h.name, h.pinned)
	if other := h.c.machines.first(h.name, h.c.hosts()); other != h.name {
		h.twin = fmt.Sprintf("%s and %s show one host UUID, %s: they are one machine, or clones that need a host_uuid of their own in libvirtd.conf. Nothing is written through %[1]s",
			h.name, other, h.pinned)
	}
	was := h.misconfig
	h.misconfig = ""
	if uuid != h.pinned {
		h.misconfig = "this is another machine: host UUID " + uuid + ", pinned is " + h.pinned + "; repin takes it for " + string(h.name)
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

// unfit returns why nothing may be written to the host: it is another machine, or
// another name of one. Empty if nothing is known against it. The lock is held.
func (h *host) unfit() string { return cmp.Or(h.misconfig, h.twin) }

// refuseUnfit refuses what would be written to another machine, or through a
// second name.
func (h *host) refuseUnfit() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if why := h.unfit(); why != "" {
		return model.Refuse("%s", why)
	}
	return nil
}

// stranger returns the UUID of the machine that answers, if it is not the pinned
// one; empty if it is, or none has answered. The lock is held.
func (h *host) stranger() string {
	if h.shows == h.pinned {
		return ""
	}
	return h.shows
}

// refuseRepin returns why a host's pin stays, or nil.
func (h *host) refuseRepin() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stranger() == "" {
		return model.Refuse("%s is the machine that it always was, as far as is known", h.name)
	}
	return nil
}

// repin takes the machine that answers for this host from now on, on an
// operator's word. What it lists counts from the next look on. What cannot be
// remembered does not hold.
func (c *Controller) repin(h *host, by string) (string, error) {
	was, now := h.pin("")
	if err := c.save(); err != nil {
		h.pin(was)
		return "", err
	}
	what := fmt.Sprintf("host UUID %s is pinned, before it was %s", now, was)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tellHost("", "", what+", by "+by, time.Now())
	return what, nil
}

// pin pins a host UUID, or that of the machine that answers if it is empty.
func (h *host) pin(uuid string) (was, now string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was = h.pinned
	h.pinned = cmp.Or(uuid, h.shows)
	h.nextPoll, h.dirty = time.Time{}, true
	h.kickLoop()
	return was, h.pinned
}

// machines is which host is pinned to which UUID. Two names for one machine
// would do everything to it twice.
type machines struct {
	mu sync.Mutex
	by map[model.HostName]string
}

// pin notes a host's UUID.
func (m *machines) pin(h model.HostName, uuid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = map[model.HostName]string{}
	}
	m.by[h] = uuid
}

func (m *machines) drop(h model.HostName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, h)
}

// first returns who has a host's machine: of several names the one that is
// declared first, whichever has answered first.
func (m *machines) first(h model.HostName, declared []*host) model.HostName {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range declared {
		if m.by[other.name] == m.by[h] {
			return other.name
		}
	}
	return h
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
