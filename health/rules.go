package health

import (
	"time"

	"virdeck/model"
)

// Config is the health engine's settings. All durations are positive.
type Config struct {
	Interval  time.Duration // between two probes of a settled proxy
	Fast      time.Duration // the same in transition
	Slow      time.Duration // the same for one that is long out
	SlowAfter time.Duration // how long out is long
	Timeout   time.Duration // of one probe, over everything
	Rise      int           // passes in a row that bring a proxy in
	Fall      int           // failures in a row that make its demotion due
	Brake     time.Duration // how long demotions that come together wait for witnesses at most
	Control   bool          // ask the targets without a proxy, too
	Targets   []Target
}

// Defaults returns the settings of the design's table, without targets.
func Defaults() Config {
	return Config{
		Interval: 5 * time.Second, Fast: time.Second, Slow: 30 * time.Second, SlowAfter: 5 * time.Minute,
		Timeout: 2 * time.Second, Rise: 2, Fall: 3, Brake: 10 * time.Second, Control: true,
	}
}

// counters is the memory of the rules for one proxy at one address.
type counters struct {
	passes, fails int
	in            bool // in rotation on the evidence of probes
	proven        bool // has passed rise in a row at this address
	demoted       bool // was in, and went out on evidence
	firstFail     time.Time
	lastFail      time.Time // start of the last probe that counted against it
	witnessed     time.Time // start of the first witness that passed after firstFail
	last          model.ProbeResult
}

// change is what one result did to the membership.
type change int

const (
	unchanged change = iota
	entered
)

// next applies one result. It is pure. Leaving the rotation is not its to
// decide: it only counts; see decide.
func next(c counters, r model.ProbeResult, rise int) (counters, change) {
	c.last = r
	switch {
	case r.Passed:
		c.passes++
		c.fails, c.firstFail, c.lastFail, c.witnessed = 0, time.Time{}, time.Time{}, time.Time{}
		if c.passes >= rise {
			c.proven = true
			if !c.in {
				c.in, c.demoted = true, false
				return c, entered
			}
		}
	case r.Culprit.ProxysFault():
		if c.fails == 0 {
			c.firstFail = r.Started
		}
		c.fails++
		c.passes = 0
		c.lastFail = r.Started
	default:
		// Ours or the target's fault: it says nothing of the proxy, so it
		// neither counts nor breaks a row.
	}
	return c, unchanged
}

// void forgets failures that turned out to be explained by the target or by us.
// Failures that only the proxy can explain stay.
func void(c counters) counters {
	if c.last.SelfSeen {
		return c
	}
	c.fails, c.firstFail, c.lastFail, c.witnessed = 0, time.Time{}, time.Time{}, time.Time{}
	return c
}

// demote commits a demotion.
func demote(c counters) counters {
	c.in, c.demoted, c.proven = false, true, false
	return c
}

// pace returns how long after the start of one probe the next one begins. It is
// pure; out is when the proxy was last in, or first tracked.
func pace(c counters, cfg Config, lastIn, now time.Time) time.Duration {
	switch {
	case c.in && c.fails == 0:
		return cfg.Interval
	case c.in:
		return cfg.Fast // between in and out
	case c.passes > 0:
		return cfg.Fast // between out and in
	case now.Sub(lastIn) >= cfg.SlowAfter:
		return cfg.Slow
	case c.demoted:
		return cfg.Interval
	default:
		return cfg.Fast // new: nothing known yet
	}
}
