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
	with := func(f vmFacts, change func(*vmFacts)) vmFacts { change(&f); return f }
	for name, tt := range map[string]struct {
		f    vmFacts
		want decision
	}{
		"as it should be": {running, decision{}},
		"busy":            {with(absent, func(f *vmFacts) { f.busy = true }), decision{}},

		"declared and not there": {absent, decision{job: jobCreate, why: "it is declared, and has no VM yet"}},
		"not there, the link down": {with(absent, func(f *vmFacts) { f.unreachable = "the link to a is down" }),
			decision{why: "it is declared, and has no VM yet", wait: "the link to a is down"}},
		"not there, first to be looked for elsewhere": {with(absent, func(f *vmFacts) { f.hold = "marks of b unread" }),
			decision{why: "it is declared, and has no VM yet", wait: "marks of b unread"}},
		"refused for good": {with(absent, func(f *vmFacts) { f.latched = "code 8: no" }),
			decision{why: "it is declared, and has no VM yet", wait: "failed, until its spec changes or an operator reconciles it: code 8: no"}},
		"failed a moment ago": {with(absent, func(f *vmFacts) { f.retryAt, f.lastErr = now.Add(4*time.Second), "code 1: no" }),
			decision{why: "it is declared, and has no VM yet", wait: "tried again in 4s: code 1: no"}},

		"missing once": {with(absent, func(f *vmFacts) { f.built, f.missing = true, 1 }), decision{}},
		"missing twice": {with(absent, func(f *vmFacts) { f.built, f.missing = true, 2 }),
			decision{job: jobCreate, why: "its domain is missing", counted: true}},
		"missing, and its address passes": {with(absent, func(f *vmFacts) { f.built, f.missing, f.serving = true, 2, true }),
			decision{wait: "its domain is not listed; kept, since its address passes probes"}},
		"missing, no budget": {with(absent, func(f *vmFacts) { f.built, f.missing, f.budget = true, 2, "the budget is used up" }),
			decision{why: "its domain is missing", wait: "the budget is used up", counted: true}},
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
		"another uid": {with(running, func(f *vmFacts) { f.owner = mark(func(o *model.Owner) { o.UID = "u2" }); f.wish = wishGone }),
			decision{gone: true, why: "a domain of its name has another uid, u2: it is left alone"}},

		"not wanted, serves": {with(running, func(f *vmFacts) { f.wish = wishGone }),
			decision{job: jobDrain, why: "it is not wanted any more"}},
		"an operator had it deleted": {with(running, func(f *vmFacts) { f.wish, f.declared, f.serving = wishGone, true, false }),
			decision{job: jobDelete, why: "an operator had it deleted"}},
		"not wanted, drains": {with(running, func(f *vmFacts) { f.wish, f.leaving, f.drainUntil = wishGone, true, now.Add(7*time.Second) }),
			decision{why: "it is not wanted any more", wait: "drains for another 7s"}},
		"not wanted, drained": {with(running, func(f *vmFacts) { f.wish, f.leaving = wishGone, true }),
			decision{job: jobDelete, why: "it is not wanted any more"}},
		"not wanted, in its grace": {with(running, func(f *vmFacts) { f.wish, f.leaving, f.grace = wishGone, true, now.Add(time.Minute) }),
			decision{why: "it is not wanted any more", wait: "removed in 1m0s, after the grace for what is not declared any more"}},
		"not wanted, does not serve": {with(running, func(f *vmFacts) { f.wish, f.serving = wishGone, false }),
			decision{job: jobDelete, why: "it is not wanted any more"}},
		"not wanted, not listed once": {with(absent, func(f *vmFacts) { f.wish, f.missing = wishGone, 1 }),
			decision{why: "it is not wanted any more", wait: "a second look at the host"}},
		"not wanted, gone": {with(absent, func(f *vmFacts) { f.wish, f.missing = wishGone, 2 }),
			decision{gone: true, why: "it is not wanted any more"}},
		"not wanted, not listed, the link down": {with(absent, func(f *vmFacts) { f.wish, f.missing, f.unreachable = wishGone, 2, "the link to a is down" }),
			decision{why: "it is not wanted any more", wait: "the link to a is down"}},
		"not wanted, no budget": {with(running, func(f *vmFacts) { f.wish, f.leaving, f.budget = wishGone, true, "used up" }),
			decision{job: jobDelete, why: "it is not wanted any more"}},
		"removal begun by an earlier process": {with(running, func(f *vmFacts) {
			f.owner = mark(func(o *model.Owner) { o.Phase = model.PhaseDeleting })
			f.serving = false
		}),
			decision{job: jobDelete, why: "its removal was begun"}},

		"to be replaced": {with(running, func(f *vmFacts) { f.replace = "no use" }),
			decision{job: jobDrain, why: "no use", counted: true}},
		"to be replaced, no budget": {with(running, func(f *vmFacts) { f.replace, f.budget = "no use", "used up" }),
			decision{why: "no use", wait: "used up", counted: true}},
		"to be replaced, an operator's word": {with(running, func(f *vmFacts) { f.replace, f.budget, f.operator = "asked for", "used up", true }),
			decision{job: jobDrain, why: "asked for", counted: true}},
		"to be replaced, counted when it began": {with(running, func(f *vmFacts) { f.replace, f.budget, f.leaving = "no use", "used up", true }),
			decision{job: jobDelete, why: "no use"}},
		"to be replaced, removed": {with(absent, func(f *vmFacts) { f.replace, f.removed = "no use", true }),
			decision{gone: true, why: "removed"}},
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
