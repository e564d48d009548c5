package libvirt

import (
	"fmt"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// An agent that hung, on a host whose libvirt waits for it for ever, holds one
// of the daemon's workers until it thaws. Asking it again would hold another one
// of our slots for nothing. So it is left alone for a while, longer each time,
// until its VM starts anew, the daemon answers after all or tells that it has
// connected, or another daemon answers. An agent that is left alone is one that
// was not asked: nothing is concluded from its silence.
const (
	quarantineFirst   = time.Minute
	quarantineLongest = 10 * time.Minute
	// Where libvirt has been told how long to wait, it does not wait much longer
	// than we do, and there is little to spare.
	quarantineBounded        = 5 * time.Second
	quarantineBoundedLongest = 30 * time.Second
	// quarantineMany hung agents are a threat to the daemon itself, which has 20
	// workers: no further agent is then asked without a limit.
	quarantineMany = 6
)

// quarantine is one hung agent.
type quarantine struct {
	incarnation model.Incarnation
	since       time.Time
	pause       time.Duration
	until       time.Time
	try         *agentTry // the call that got no answer
}

// mayAsk returns nil if a guest's agent may be asked now, else ErrNotAsked with
// the reason.
func (h *Host) mayAsk(in *model.Instance, now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	q, hung := h.hung[in.UUID]
	switch {
	case hung && q.incarnation != in.Incarnation:
		delete(h.hung, in.UUID)
		return nil
	case hung && now.Before(q.until):
		return fmt.Errorf("%w: it hangs since %s; it is asked again at %s",
			provider.ErrNotAsked, q.since.Format(time.TimeOnly), q.until.Format(time.TimeOnly))
	case hung || h.infos[in.UUID].timeoutSet:
		return nil
	}
	if n := h.unbounded(); n >= quarantineMany {
		return fmt.Errorf("%w: %d agents hang on this host, and libvirt would wait for this one without a limit too", provider.ErrNotAsked, n)
	}
	return nil
}

// unbounded counts the hung agents for which libvirt waits without a limit.
// h.mu is held.
func (h *Host) unbounded() int {
	n := 0
	for _, q := range h.hung {
		if !q.try.bounded {
			n++
		}
	}
	return n
}

// agentHangs notes that an agent gave no answer in time.
func (h *Host) agentHangs(try *agentTry, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if try.answered.Load() {
		return // just now
	}
	first, longest := quarantineFirst, quarantineLongest
	if try.bounded {
		first, longest = quarantineBounded, quarantineBoundedLongest
	}
	q, again := h.hung[try.guest.UUID]
	if !again || q.incarnation != try.guest.Incarnation {
		q = quarantine{incarnation: try.guest.Incarnation, since: now, pause: first / 2}
	}
	q.pause = min(2*q.pause, longest)
	q.until = now.Add(q.pause)
	q.try = try
	h.hung[try.guest.UUID] = q
}

// agentAnswers notes that the daemon has answered a call, and holds no worker
// for it any more. That ends the quarantine that came of this call; addresses end
// any.
func (h *Host) agentAnswers(try *agentTry, err error) {
	try.answered.Store(true)
	h.mu.Lock()
	defer h.mu.Unlock()
	if q, hung := h.hung[try.guest.UUID]; hung && (q.try == try || err == nil) {
		delete(h.hung, try.guest.UUID)
	}
}

// newConnection ends all quarantines, unless the connection before it lives yet
// and was only replaced: an agent that hung through a daemon that has not gone
// away hangs still, and to ask for it again on each new connection would take
// the daemon's workers one by one.
func (h *Host) newConnection(s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen != nil && h.seen.ctx.Err() != nil {
		clear(h.hung)
	}
	h.seen = s
}

// agentNews makes older answers of an agent void, and ends its quarantine if it
// has connected anew.
func (h *Host) agentNews(uuid string, connected bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.agents[uuid]; a != nil {
		a.invalidate()
	}
	if connected {
		delete(h.hung, uuid)
	}
}
