package health

import (
	"slices"
	"time"

	"virdeck/model"
)

// Health returns what is known of a subject, and whether it is tracked.
func (e *Engine) Health(k Key) (model.Health, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.subs[k]
	if s == nil {
		return model.Health{PassPercent: -1}, false
	}
	return e.view(s), true
}

func (e *Engine) view(s *subject) model.Health {
	h := model.Health{
		Address: s.Address, Proven: s.c.proven, InRotation: s.c.in, Demoted: s.c.demoted,
		Passes: s.c.passes, Fails: s.c.fails, Rise: e.cfg.Rise, Fall: e.cfg.Fall, Last: s.c.last,
		LastPass: s.lastPass, LastFault: s.lastFault, Waiting: s.waiting, Reason: s.reason,
		Evidence: slices.Clone(s.evidence), Since: s.since, Unverified: s.unverified,
		Samples: slices.Clone(s.samples), PassPercent: -1,
	}
	if n := len(s.samples); n > 0 {
		passed := 0
		for _, x := range s.samples {
			if x.Passed {
				passed++
			}
		}
		h.PassPercent = passed * 100 / n
	}
	return h
}

// Fleet returns what the witnesses say.
func (e *Engine) Fleet() model.FleetHealth {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := model.FleetHealth{BrakeOn: !e.brake.IsZero(), BrakeSince: e.brake, BrakeNote: e.note}
	failing, since, why := 0, time.Time{}, ""
	for i, c := range e.controls {
		// The best word of any target: one that answers is enough to go on.
		if i == 0 || better(c.state, f.Control) {
			f.Control, f.ControlNote = c.state, c.why
		}
		if c.explains() {
			failing++
			since = later(since, c.since) // frozen since the last of them failed
			why = c.target.URL.Host + " does not answer without a proxy either: " + c.why
		}
	}
	switch {
	case len(e.controls) > 0 && failing == len(e.controls):
		f.Frozen, f.FrozenSince, f.FrozenWhy = true, since, why
	case e.stuck != "":
		f.Frozen, f.FrozenSince, f.FrozenWhy = true, e.stuckAt, e.stuck
	}
	return f
}

// better orders the witnesses' words.
func better(a, b model.WitnessState) bool {
	rank := func(w model.WitnessState) int {
		switch w {
		case model.WitnessPassing:
			return 3
		case model.WitnessUnknown:
			return 2
		case model.WitnessNone:
			return 1
		case model.WitnessFailing:
			return 0
		}
		return 0
	}
	return rank(a) > rank(b)
}
