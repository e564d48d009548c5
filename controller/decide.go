package controller

import (
	"fmt"
	"time"

	"virdeck/model"
)

// wish is what is wanted of a managed VM.
type wish int

const (
	wishRun  wish = iota // is there, and runs
	wishStop             // is there, and stands still: an operator stopped it
	wishGone             // is to be removed
)

// job is what a managed VM needs.
type job int

const (
	jobNone   job = iota
	jobCreate     // make it, or finish making it
	jobStart      // it is complete, and does not run
	jobDrain      // take it out of rotation, before it is removed
	jobDelete     // remove it, or finish removing it
)

// vmFacts is everything that decide looks at.
type vmFacts struct {
	now      time.Time
	wish     wish
	declared bool // the configuration has it
	busy     bool // a write is under way already
	// unreachable is why the host's last listing may not be acted upon; empty
	// if it came through a live link of the pinned machine.
	unreachable string
	hold        string // why the proxy's first VM must not be made yet

	listed     bool           // the newest listing has its domain
	elsewhere  model.HostName // where else a domain has the mark with our uid; empty: nowhere
	owner      model.Owner    // the domain's mark
	ownerKnown bool
	uid        string // of our record
	fleet, id  string // ours
	takeover   bool   // another controller's mark of this fleet is rewritten
	adopted    bool   // its VM was not made by virdeck, and cannot be made again
	built      bool   // Create has once succeeded for this uid
	removed    bool   // Delete has succeeded for this uid

	missing, off int  // looks that found it so
	leaveOff     bool // one that is off is not started
	serving      bool // it has an address that probes have not condemned

	replace    string    // why another VM is to take its place
	operator   bool      // an operator asked for it: counted, but never held by the budget
	grace      time.Time // until when its VM is kept though it is not wanted
	leaving    bool      // it drains
	drainUntil time.Time

	latched string // a permanent error, in the host's words
	lastErr string // of the last try
	retryAt time.Time
	budget  string // why the budget holds a counted write now; empty if it does not
}

// decision is what to do with a managed VM now, and why.
type decision struct {
	job     job
	why     string // empty: nothing is wanted
	wait    string // why nothing is done although something is wanted
	counted bool   // against the replacement budget
	gone    bool   // nothing of it is left
}

// decide is the whole judgement about a managed VM: level-based, and pure. The
// first rule that matches wins.
func decide(f vmFacts) decision {
	if f.busy {
		return decision{}
	}
	d := wanted(f)
	if d.job == jobNone {
		return d
	}
	hold := func(why string) decision { return decision{why: d.why, wait: why, counted: d.counted} }
	switch {
	case f.unreachable != "":
		return hold(f.unreachable)
	case f.latched != "":
		return hold("failed, until its spec changes or an operator reconciles it: " + f.latched)
	case f.now.Before(f.retryAt):
		return hold(fmt.Sprintf("tried again in %s: %s", f.retryAt.Sub(f.now).Round(time.Second), f.lastErr))
	case d.counted && !f.operator && f.budget != "":
		return hold(f.budget)
	case d.job == jobDelete && !f.leaving && f.serving:
		d.job = jobDrain
	case d.job == jobDelete && f.leaving && f.serving && f.now.Before(f.drainUntil):
		return hold(fmt.Sprintf("drains for another %s", f.drainUntil.Sub(f.now).Round(time.Second)))
	case d.job == jobDelete && f.wish == wishGone && f.now.Before(f.grace):
		return hold(fmt.Sprintf("removed in %s, after the grace for what is not declared any more", f.grace.Sub(f.now).Round(time.Second)))
	}
	return d
}

// wanted is what would be done if everything allowed it.
func wanted(f vmFacts) decision {
	switch {
	case f.removed:
		return decision{gone: true, why: "removed"}
	case f.listed && !f.ownerKnown:
		return decision{wait: "the mark of its domain has not been read yet"}
	case f.listed && notOurs(f) != "":
		if f.wish == wishGone {
			return decision{gone: true, why: notOurs(f)}
		}
		return decision{wait: notOurs(f)}
	case f.wish == wishGone && f.declared:
		return removal(f, "an operator had it deleted")
	case f.wish == wishGone:
		return removal(f, "it is not wanted any more")
	case f.listed && f.owner.Phase == model.PhaseDeleting:
		return decision{job: jobDelete, why: "its removal was begun"}
	case f.replace != "":
		d := removal(f, f.replace)
		d.counted = !d.gone && !f.leaving // once: when it begins
		return d
	case !f.listed && !f.built && f.hold != "":
		return decision{why: "it is declared, and has no VM yet", wait: f.hold}
	case !f.listed && !f.built:
		return decision{job: jobCreate, why: "it is declared, and has no VM yet"}
	case !f.listed && f.missing < 2:
		return decision{}
	case !f.listed && f.elsewhere != "":
		return decision{wait: fmt.Sprintf("its VM is on %s now, moved there by somebody: declare it there, or move it back", f.elsewhere)}
	case !f.listed && f.serving:
		return decision{wait: "its domain is not listed; kept, since its address passes probes"}
	case !f.listed && f.adopted:
		return decision{wait: "its domain is missing, and virdeck did not make it"}
	case !f.listed:
		return decision{job: jobCreate, why: "its domain is missing", counted: true}
	case !f.built || f.owner.Phase == model.PhaseNew:
		return decision{job: jobCreate, why: "its making was not finished"}
	case f.off >= 2 && f.wish == wishRun && f.leaveOff:
		return decision{wait: "its domain does not run, and start_stopped is off: start it by key"}
	case f.off >= 2 && f.wish == wishRun:
		return decision{job: jobStart, why: "its domain does not run", counted: true}
	}
	return decision{}
}

// removal is over when two looks found nothing.
func removal(f vmFacts, why string) decision {
	switch {
	case !f.listed && f.missing >= 2 && f.unreachable == "":
		return decision{gone: true, why: why}
	case !f.listed && f.unreachable == "":
		return decision{why: why, wait: "a second look at the host"}
	}
	return decision{job: jobDelete, why: why}
}

// notOurs returns why the domain of the proxy's name may not be touched.
func notOurs(f vmFacts) string {
	switch {
	case f.owner.Zero():
		return "a domain of its name is there, without virdeck's mark: it is left alone"
	case f.owner.Fleet != f.fleet:
		return fmt.Sprintf("a domain of its name is marked by the fleet %q: it is left alone", f.owner.Fleet)
	case f.owner.Controller != f.id && !f.takeover:
		return fmt.Sprintf("its domain is marked by another controller, %s: start with --takeover if that one is gone for good", f.owner.Controller)
	case f.owner.UID != f.uid:
		return fmt.Sprintf("a domain of its name has another uid, %s: it is left alone", f.owner.UID)
	}
	return ""
}
