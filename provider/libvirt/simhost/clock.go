package simhost

import "time"

// instant is one moment by two clocks: that of the guests, which goes on
// steadily, and that of the daemon's host, which may have been set.
type instant struct{ guests, daemon time.Time }

// now is the present moment. The caller holds h.mu.
func (h *Host) now() instant {
	t := time.Now()
	return instant{guests: t, daemon: t.Add(h.clock)}
}

// ShiftClock sets the clock of the daemon's host ahead, or back when by is
// negative. What hangs on it are leases: the daemon lists none that has ended by
// its clock, so after a jump ahead by more than their life they are gone until
// their guests renew them, which these do by their own clocks.
func (h *Host) ShiftClock(by time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	for _, n := range h.nets {
		n.current("", now) // what was renewed until now was so by the old clock
	}
	h.clock += by
}

// Clock returns the time by the clock of the daemon's host.
func (h *Host) Clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now().daemon
}
