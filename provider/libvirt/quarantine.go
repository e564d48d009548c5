package libvirt

import (
	"fmt"
	"time"

	"virdeck/model"
)

// An agent that hung, on a host whose libvirt waits for it for ever, holds one
// of the daemon's workers until it thaws. Asking it again would hold another one
// of our slots for nothing. So it is left alone for a while, longer each time,
// until its VM starts anew or the daemon tells that it has connected.
const (
	quarantineFirst   = time.Minute
	quarantineLongest = 10 * time.Minute
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
}

// mayAsk returns nil if a guest's agent may be asked now, else why not.
func (h *Host) mayAsk(in *model.Instance, now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	q, hung := h.hung[in.UUID]
	switch {
	case hung && q.incarnation != in.Incarnation:
		delete(h.hung, in.UUID)
		return nil
	case hung && now.Before(q.until):
		return fmt.Errorf("it hangs since %s, and libvirt waits for it; not asked again before %s",
			q.since.Format(time.TimeOnly), q.until.Format(time.TimeOnly))
	case !hung && len(h.hung) >= quarantineMany && !h.infos[in.UUID].timeoutSet:
		return fmt.Errorf("%d agents hang on this host, and libvirt would wait for this one without a limit too", len(h.hung))
	}
	return nil
}

// agentHangs notes that an agent gave no answer in time.
func (h *Host) agentHangs(in *model.Instance, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q, again := h.hung[in.UUID]
	if !again || q.incarnation != in.Incarnation {
		q = quarantine{incarnation: in.Incarnation, since: now, pause: quarantineFirst / 2}
	}
	q.pause = min(2*q.pause, quarantineLongest)
	q.until = now.Add(q.pause)
	h.hung[in.UUID] = q
}

// agentLives ends the quarantine of an agent that has answered.
func (h *Host) agentLives(uuid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.hung, uuid)
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
