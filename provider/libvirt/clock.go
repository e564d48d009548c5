package libvirt

import (
	"slices"
	"time"
)

// clock is what the leases of a host tell of its clock. libvirt has no call for
// it; but a lease that was given or renewed between two looks ran for exactly
// its network's lease time when the host's clock showed "expiry less lease
// time", and that was between our two looks.
type clock struct {
	diff, err time.Duration // host's minus ours, right to err either way
	known     bool
}

// defaultLease is how long a lease of a libvirt network runs if its XML says
// nothing (libvirt's network/bridge_driver.c leaves it to dnsmasq: one hour).
const defaultLease = time.Hour

// clockError is the most that two looks may be apart to be worth comparing.
const clockError = 30 * time.Second

// clockMost is the largest difference that is believed. What is beyond it is a
// lease with a lifetime of its own, or a mistake in the leases' file, and not a
// host that nobody has noticed to live on another day.
const clockMost = 24 * time.Hour

// learn compares two readings of one network's leases, the earlier one begun at
// before, the later one ended at after. It is pure.
func (c clock) learn(was, is []lease, leaseTime time.Duration, before, after time.Time) clock {
	err := after.Sub(before)/2 + time.Second/2 // expiry is in whole seconds
	if before.IsZero() || err > clockError {
		return c
	}
	for _, l := range is {
		if l.expiry == 0 || slices.ContainsFunc(was, func(o lease) bool { return o.addr == l.addr && o.expiry == l.expiry }) {
			continue
		}
		given := time.Unix(l.expiry, 0).Add(-leaseTime)
		diff := given.Sub(before.Add(after.Sub(before) / 2))
		if diff.Abs() > clockMost {
			continue
		}
		c = clock{diff: diff, err: err, known: true}
	}
	return c
}
