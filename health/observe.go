package health

import (
	"fmt"
	"strings"
	"time"

	"virdeck/model"
)

// apply puts one result into the counters of its subject and lets it bear
// witness for others. e.mu is held.
func (e *Engine) apply(s *subject, r model.ProbeResult, now time.Time) []Key {
	wasIn := s.c.in
	c := e.controlOf(r.Target)
	if !r.Passed && !r.SelfSeen && c.explains() {
		r.Culprit = model.CulpritTarget // neither counts nor breaks a row
	}
	var ch change
	s.c, ch = next(s.c, r, e.cfg.Rise)
	s.unverified = false
	s.samples = append(s.samples, model.Sample{At: r.Started, Took: r.Took, Passed: r.Passed, Culprit: r.Culprit})
	if n := len(s.samples) - samplesKept; n > 0 {
		s.samples = append([]model.Sample(nil), s.samples[n:]...)
	}
	switch {
	case r.Passed:
		s.lastPass, s.waiting = r.Started, ""
		c.note(s.Proxy, r.Started)
		e.testify(c, r.Started, s.Proxy)
	case r.Culprit.ProxysFault():
		s.lastFault = r.Started
	}
	if ch == entered {
		s.since, s.reason = now, fmt.Sprintf("passed %d in a row", s.c.passes)
		s.evidence = []string{
			fmt.Sprintf("last probe passed in %s", r.Took.Round(100*time.Microsecond)), "asked " + r.Target,
		}
	}
	if s.c.in {
		s.lastIn = now
	}
	k := s.Key()
	if wasIn && s.c.fails > 0 {
		e.failing[k] = s
		if s.c.fails == 1 {
			e.seekWitness(k, now)
		}
	} else {
		delete(e.failing, k)
	}
	return []Key{k}
}

// controlOf returns the control of a target. Every probe asks one of them.
func (e *Engine) controlOf(target string) *controlState {
	for _, c := range e.controls {
		if c.url == target {
			return c
		}
	}
	return &controlState{}
}

// testify notes a pass at start, by a proxy or by the control, as the first
// witness for everyone who failed at the same target before it. e.mu is held.
func (e *Engine) testify(c *controlState, start time.Time, by model.ProxyName) {
	for _, f := range e.failing {
		if f.Proxy != by && f.c.last.Target == c.url && f.c.witnessed.IsZero() && !start.Before(f.c.firstFail) {
			f.c.witnessed = start
		}
	}
}

// seekWitness asks the controls, and two peers that are not failing, at once;
// not more often than the fast pace, however many accuse. e.mu is held.
func (e *Engine) seekWitness(accused Key, now time.Time) {
	if now.Sub(e.sought) < e.cfg.Fast {
		return
	}
	e.sought = now
	for _, c := range e.controls {
		poke(c.kick)
	}
	asked := 0
	for k, s := range e.subs {
		if asked == 2 {
			return
		}
		if k.Proxy != accused.Proxy && s.c.in && s.c.fails == 0 {
			poke(s.kick)
			asked++
		}
	}
}

// settle looks at every due demotion. e.mu is held; it returns what changed.
func (e *Engine) settle(now time.Time) []Key {
	var due []*subject
	for _, s := range e.failing {
		if s.c.in && s.c.fails >= e.cfg.Fall {
			due = append(due, s)
		}
	}
	dirty := e.setBrake(now, len(due))
	stuck := ""
	for _, s := range due {
		v := decide(e.scene(s, now))
		k := s.Key()
		if v.stuck {
			stuck = v.wait
		}
		if v.void {
			s.c = void(s.c)
			delete(e.failing, k)
		}
		if v.commit {
			s.evidence = []string{
				fmt.Sprintf("%d of %d probes in a row failed: %s", s.c.fails, e.cfg.Fall, s.c.last.Reason),
				"culprit: " + s.c.last.Culprit.String(), "witness: " + v.proof,
			}
			if s.c.last.Detail != "" {
				s.evidence = append(s.evidence, s.c.last.Detail)
			}
			s.c = demote(s.c)
			s.since, s.reason, s.waiting = now, s.c.last.Reason, ""
			delete(e.failing, k)
			dirty = append(dirty, k)
		} else if s.waiting != v.wait {
			s.waiting = v.wait
			dirty = append(dirty, k)
		}
	}
	if (stuck == "") != (e.stuck == "") {
		e.stuckAt = now
		dirty = append(dirty, Key{})
	}
	e.stuck = stuck
	return dirty
}

// setBrake engages and releases the brake.
func (e *Engine) setBrake(now time.Time, due int) []Key {
	on := due > 0 && len(e.failing) >= brakeAt
	switch {
	case on && e.brake.IsZero():
		e.brake = now
		for _, s := range e.failing {
			s.c.witnessed = time.Time{} // older witnesses do not speak of what is common
		}
		e.seekWitness(Key{}, now)
	case !on && !e.brake.IsZero():
		e.brake, e.note = time.Time{}, ""
		return []Key{{}}
	}
	if was := e.note; on {
		if e.note = e.commonCause(); e.note != was {
			return []Key{{}}
		}
	}
	return nil
}

// commonCause puts into words what the failing proxies share.
func (e *Engine) commonCause() string {
	hosts, reasons := map[model.HostName]int{}, map[string]int{}
	for _, s := range e.failing {
		hosts[s.Host]++
		reasons[s.c.last.Reason]++
	}
	out := []string{fmt.Sprintf("%d proxies fail together", len(e.failing))}
	if len(hosts) == 1 {
		for h := range hosts {
			out = append(out, "all of host "+string(h))
		}
	}
	if len(reasons) == 1 {
		for r := range reasons {
			out = append(out, "all with: "+r)
		}
	}
	return strings.Join(out, ", ")
}

func (e *Engine) scene(s *subject, now time.Time) scene {
	c := e.controlOf(s.c.last.Target)
	return scene{
		c: s.c, fall: e.cfg.Fall, now: now, failing: len(e.failing), brake: e.brake, limit: e.cfg.Brake,
		control: c.control, explains: c.explains(), peerPass: c.otherPass(s.Proxy), others: e.others(s.Proxy),
	}
}

// others counts the proxies but one.
func (e *Engine) others(p model.ProxyName) int {
	n := len(e.proxies)
	if e.proxies[p] > 0 {
		n--
	}
	return n
}
