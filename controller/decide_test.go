package controller

import (
	"testing"
	"time"

	"virdeck/model"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ours := model.Owner{Fleet: "home", Controller: "c1", UID: "u1", Phase: model.PhaseReady}
	mark := func(f func(*model.Owner)) model.Owner { o := ours; f(&o); return o }
	running := vmFacts{now: now, listed: true, owner: ours, ownerKnown: true, uid: "u1", fleet: "home", id: "c1", built: true, serving: true}
	absent := vmFacts{now: now, uid: "u1", fleet: "home", id: "c1"}
	ordered := func(v model.Verb) vmFacts {
		f := running
		f.order, f.by, f.asked, f.domain = v, "ann", v.String()+", asked for by ann", model.DomainRunning
		return f
	}
	with := func(f vmFacts, change func(*vmFacts)) vmFacts { change(&f); return f }
	for name, tt := range map[string]struct {
		f    vmFacts
		want decision
	}{
		"as it should be": {running, decision{}},

		"declared and not there": {absent, decision{job: jobCreate, why: "it is declared, and has no VM yet"}},
		"not there, the link down": {with(absent, func(f *vmFacts) { f.unreachable = "the link to a is down" }),
			decision{job: jobCreate, why: "it is declared, and has no VM yet", wait: "the link to a is down"}},
		"not there, first to be looked for elsewhere": {with(absent, func(f *vmFacts) { f.hold = "marks of b unread" }),
			decision{job: jobCreate, why: "it is declared, and has no VM yet", wait: "marks of b unread"}},
		"refused for good": {with(absent, func(f *vmFacts) { f.failure = failure{failed: jobCreate, latched: true, lastErr: "code 8: no"} }),
			decision{job: jobCreate, why: "it is declared, and has no VM yet", wait: "failed, until its spec changes or an operator reconciles it: code 8: no"}},
		"failed a moment ago": {with(absent, func(f *vmFacts) {
			f.failure = failure{failed: jobCreate, retryAt: now.Add(4 * time.Second), lastErr: "code 1: no"}
		}),
			decision{job: jobCreate, why: "it is declared, and has no VM yet", wait: "tried again in 4s: code 1: no"}},

		"missing once": {with(absent, func(f *vmFacts) { f.built, f.missing = true, 1 }), decision{}},
		"missing twice": {with(absent, func(f *vmFacts) { f.built, f.missing = true, 2 }),
			decision{job: jobCreate, why: "its domain is missing", counted: true}},
		"missing, and its address passes": {with(absent, func(f *vmFacts) { f.built, f.missing, f.serving = true, 2, true }),
			decision{wait: "its domain is not listed; kept, since its address passes probes"}},
		"missing, no budget": {with(absent, func(f *vmFacts) { f.built, f.missing, f.budget = true, 2, "the budget is used up" }),
			decision{job: jobCreate, why: "its domain is missing", wait: "the budget is used up", counted: true, held: true}},
		"missing, and not made by us": {with(absent, func(f *vmFacts) { f.built, f.missing, f.adopted = true, 2, true }),
			decision{wait: "its domain is missing, and virdeck did not make it"}},

		"half made": {with(running, func(f *vmFacts) { f.owner = mark(func(o *model.Owner) { o.Phase = model.PhaseNew }) }),
			decision{job: jobCreate, why: "its making was not finished"}},
		"made, and nobody was told": {with(running, func(f *vmFacts) { f.built = false }),
			decision{job: jobCreate, why: "its making was not finished"}},
		"off once": {with(running, func(f *vmFacts) { f.off = 1 }), decision{}},
		"off twice": {with(running, func(f *vmFacts) { f.off = 2 }),
			decision{job: jobStart, why: "its domain does not run", counted: true}},
		"off, and start_stopped too": {with(running, func(f *vmFacts) { f.off, f.leaveOff = 2, true }),
			decision{wait: "its domain does not run, and start_stopped is off: start it by key"}},
		"off, as an operator wants it": {with(running, func(f *vmFacts) { f.off, f.wish = 2, wishStop }), decision{}},

		"mark not read": {with(running, func(f *vmFacts) { f.owner, f.ownerKnown, f.off = model.Owner{}, false, 2 }),
			decision{wait: "the mark of its domain has not been read yet"}},
		"no mark": {with(running, func(f *vmFacts) { f.owner, f.off = model.Owner{}, 2 }),
			decision{wait: "a domain of its name is there, without virdeck's mark: it is left alone"}},
		"another fleet's": {with(running, func(f *vmFacts) { f.owner = mark(func(o *model.Owner) { o.Fleet = "lab" }); f.wish = wishGone }),
			decision{gone: true, why: `a domain of its name is marked by the fleet "lab": it is left alone`}},
		"another controller's": {with(running, func(f *vmFacts) { f.owner = mark(func(o *model.Owner) { o.Controller = "c2" }) }),
			decision{wait: "its domain is marked by another controller, c2: start with --takeover if that one is gone for good"}},
		"another controller's, taken over": {with(running, func(f *vmFacts) { f.owner = mark(func(o *model.Owner) { o.Controller = "c2" }); f.takeover = true }), decision{}},
		"its mark is lost, the link down": {with(running, func(f *vmFacts) { f.owner, f.wish, f.unreachable = model.Owner{}, wishGone, "the link to a is down" }),
			decision{why: "a domain of its name is there, without virdeck's mark: it is left alone", wait: "the link to a is down"}},
		"its mark is lost, and an operator has it deleted": {with(ordered(model.VerbDelete), func(f *vmFacts) { f.owner, f.wish = model.Owner{}, wishGone }),
			decision{wait: "a domain of its name is there, without virdeck's mark: it is left alone", refused: true}},
		"another uid": {with(running, func(f *vmFacts) { f.owner = mark(func(o *model.Owner) { o.UID = "u2" }); f.wish = wishGone }),
			decision{gone: true, why: "a domain of its name has another uid, u2: it is left alone"}},

		"not wanted, serves": {with(running, func(f *vmFacts) { f.retired = true }),
			decision{job: jobDrain, why: "it is not wanted any more"}},
		"an operator had it deleted": {with(running, func(f *vmFacts) { f.wish, f.serving = wishGone, false }),
			decision{job: jobDelete, why: "an operator had it deleted"}},
		"not wanted, drains": {with(running, func(f *vmFacts) { f.retired, f.leaving, f.drainUntil = true, true, now.Add(7*time.Second) }),
			decision{job: jobDelete, why: "it is not wanted any more", wait: "drains for another 7s"}},
		"not wanted, drained": {with(running, func(f *vmFacts) { f.retired, f.leaving = true, true }),
			decision{job: jobDelete, why: "it is not wanted any more"}},
		"not wanted, in its grace": {with(running, func(f *vmFacts) { f.retired, f.leaving, f.grace = true, true, now.Add(time.Minute) }),
			decision{job: jobDelete, why: "it is not wanted any more", wait: "removed in 1m0s, after the grace for what is not declared any more"}},
		"not wanted, does not serve": {with(running, func(f *vmFacts) { f.retired, f.serving = true, false }),
			decision{job: jobDelete, why: "it is not wanted any more"}},
		"not wanted, not listed once": {with(absent, func(f *vmFacts) { f.retired, f.missing = true, 1 }),
			decision{job: jobDelete, why: "it is not wanted any more", wait: "a second look at the host"}},
		"not wanted, gone": {with(absent, func(f *vmFacts) { f.retired, f.missing = true, 2 }),
			decision{gone: true, why: "it is not wanted any more"}},
		"not wanted, not listed, the link down": {with(absent, func(f *vmFacts) { f.retired, f.missing, f.unreachable = true, 2, "the link to a is down" }),
			decision{job: jobDelete, why: "it is not wanted any more", wait: "the link to a is down"}},
		"not wanted, no budget": {with(running, func(f *vmFacts) { f.retired, f.leaving, f.budget = true, true, "used up" }),
			decision{job: jobDelete, why: "it is not wanted any more"}},
		"removal begun by an earlier process": {with(running, func(f *vmFacts) {
			f.owner = mark(func(o *model.Owner) { o.Phase = model.PhaseDeleting })
			f.serving = false
		}),
			decision{job: jobDelete, why: "its removal was begun"}},

		"to be replaced": {with(running, func(f *vmFacts) { f.remake.why = "no use" }),
			decision{job: jobDrain, why: "no use", counted: true, remake: true}},
		"to be replaced, no budget": {with(running, func(f *vmFacts) { f.remake.why, f.budget = "no use", "used up" }),
			decision{job: jobDelete, why: "no use", wait: "used up", counted: true, held: true, remake: true}},
		"to be replaced, no budget, on somebody's word": {with(running, func(f *vmFacts) {
			f.remake, f.budget = remake{"its template has changed", "the configuration"}, "used up"
		}),
			decision{job: jobDrain, why: "its template has changed", by: "the configuration", counted: true, remake: true}},
		"to be replaced, no budget, reconciled": {with(running, func(f *vmFacts) { f.remake.why, f.budget, f.allowed = "no use", "used up", "ann" }),
			decision{job: jobDrain, why: "no use; beyond the budget, reconciled by ann", by: "ann", counted: true, remake: true}},
		"to be replaced, counted when it began": {with(running, func(f *vmFacts) { f.remake.why, f.budget, f.leaving, f.paid = "no use", "used up", true, true }),
			decision{job: jobDelete, why: "no use", remake: true}},
		"to be replaced, and stopped": {with(running, func(f *vmFacts) { f.remake.why, f.wish, f.off = "its template has changed", wishStop, 2 }),
			decision{wait: "its template has changed: another VM takes its place when it is started"}},
		"to be replaced, removed": {with(absent, func(f *vmFacts) { f.remake.why, f.removed = "no use", true }),
			decision{gone: true, why: "removed"}},
		"drained by its pool": {with(running, func(f *vmFacts) { f.pooled, f.leaving, f.drainUntil = "surplus", true, now.Add(4*time.Second) }),
			decision{why: "surplus", wait: "drains for another 4s"}},
		"drained by its pool, and drained": {with(running, func(f *vmFacts) { f.pooled, f.leaving, f.drainUntil = "surplus", true, now }),
			decision{why: "surplus", wait: "its pool removes it next"}},

		"stopped, and missing":         {with(absent, func(f *vmFacts) { f.wish, f.built, f.missing = wishStop, true, 2 }), decision{}},
		"stopped, and half made":       {with(running, func(f *vmFacts) { f.wish, f.built = wishStop, false }), decision{}},
		"stopped, and started by hand": {with(running, func(f *vmFacts) { f.wish = wishStop }), decision{}},
		"a stop": {with(ordered(model.VerbStop), func(f *vmFacts) { f.wish = wishStop }),
			decision{job: jobStop, why: "stop, asked for by ann", by: "ann"}},
		"a stop, the link down": {with(ordered(model.VerbStop), func(f *vmFacts) { f.wish, f.unreachable = wishStop, "the link to a is down" }),
			decision{job: jobStop, why: "stop, asked for by ann", by: "ann", wait: "the link to a is down"}},
		"a stop, done":           {with(ordered(model.VerbStop), func(f *vmFacts) { f.wish, f.off, f.domain = wishStop, 1, model.DomainShutoff }), decision{met: "its domain is shut off"}},
		"a stop of what is gone": {with(ordered(model.VerbStop), func(f *vmFacts) { f.wish, f.listed, f.missing = wishStop, false, 2 }), decision{met: "it has no VM, and gets none before it is started"}},
		"a start":                {with(ordered(model.VerbStart), func(f *vmFacts) { f.off, f.leaveOff, f.budget = 1, true, "used up" }), decision{job: jobStart, why: "start, asked for by ann", by: "ann", counted: true}},
		"a start of what runs":   {ordered(model.VerbStart), decision{met: "its domain is running"}},
		"a start of another's": {with(ordered(model.VerbStart), func(f *vmFacts) { f.owner = model.Owner{} }),
			decision{wait: "a domain of its name is there, without virdeck's mark: it is left alone", refused: true}},
		"a restart":                {with(ordered(model.VerbRestart), func(f *vmFacts) { f.budget = "used up" }), decision{job: jobRestart, why: "restart, asked for by ann", by: "ann", counted: true}},
		"a restart, once more":     {with(ordered(model.VerbRestart), func(f *vmFacts) { f.paid = true }), decision{job: jobRestart, why: "restart, asked for by ann", by: "ann"}},
		"a restart, done":          {with(ordered(model.VerbRestart), func(f *vmFacts) { f.anew = true }), decision{met: "its domain is running"}},
		"a restart of what is off": {with(ordered(model.VerbRestart), func(f *vmFacts) { f.off = 1 }), decision{job: jobStart, why: "restart, asked for by ann", by: "ann", counted: true}},
		"a create failed, and it is deleted": {with(running, func(f *vmFacts) {
			f.wish, f.built, f.serving, f.failure = wishGone, false, false, failure{failed: jobCreate, latched: true}
		}),
			decision{job: jobDelete, why: "an operator had it deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(tt.f); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestOrphan_hold(t *testing.T) {
	made := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	grace := 10 * time.Minute
	o := orphan{owner: model.Owner{CreatedAt: made}}
	at := func(m int) time.Time { return made.Add(time.Duration(m) * time.Minute) }
	if got := o.looked(at(5)).hold(at(60), grace, ""); got != "a second look at the host" {
		t.Errorf("after one look: %q", got)
	}
	same := o.looked(at(5)).looked(at(5))
	if got := same.hold(at(60), grace, ""); got != "a second look at the host" {
		t.Errorf("after one look that was told twice: %q", got)
	}
	two := o.looked(at(5)).looked(at(6))
	for now, want := range map[time.Time]string{
		at(7):  "removed in 8m0s, after the grace for orphans",
		at(15): "",
	} {
		if got := two.hold(now, grace, ""); got != want {
			t.Errorf("%s: %q, want %q", now.Format(time.TimeOnly), got, want)
		}
	}
	if got := two.hold(at(15), grace, "used up"); got != "used up" {
		t.Errorf("without budget: %q", got)
	}
	young := two
	young.owner.CreatedAt = at(14) // a define that came through late
	if got := young.hold(at(16), grace, ""); got != "removed in 8m0s, after the grace for orphans" {
		t.Errorf("made after it was first seen: %q", got)
	}
}
