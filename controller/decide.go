package controller

import (
	"fmt"
	"time"

	"virdeck/model"
)

// wish is what an operator wants of a managed VM. It outlasts the VM, and
// whatever the configuration says meanwhile.
type wish int

const (
	wishRun  wish = iota // is there, and runs
	wishStop             // stands still: nothing is made, started or replaced
	wishGone             // is not there; it stays declared
)

// job is what a managed VM needs.
type job int

const (
	jobNone    job = iota
	jobCreate      // make it, or finish making it
	jobStart       // it is complete, and does not run
	jobStop        // an operator wants it off
	jobRestart     // an operator wants another run of it
	jobDrain       // take it out of rotation, before it is removed
	jobDelete      // remove it, or finish removing it
)

// vmFacts is everything that decide looks at. Of the VM no write is under way.
type vmFacts struct {
	now     time.Time
	wish    wish
	retired bool       // the configuration does not have it any more
	order   model.Verb // what an operator has asked for and is not so yet; 0: nothing
	by      string     // who
	asked   string     // the same in words
	unseen  bool       // no look at it has begun since then
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

	domain       model.DomainState // as it was last seen
	missing, off int               // looks that found it so
	leaveOff     bool              // one that is off is not started
	serving      bool              // it has an address that probes have not condemned
	anew         bool              // the VM, or its run, is not the one that the order is about

	remake     remake
	pooled     string    // why its pool has it drained; empty: it has not
	grace      time.Time // until when the VM of a retired one is kept
	leaving    bool      // it drains
	drainUntil time.Time

	failure
	budget  string // why the budget holds a counted write now; empty if it does not
	paid    bool   // what is wanted has been counted already
	allowed string // who lets the budget hold nothing of it
}

// remake is why another VM is to take the place of the one that is there.
type remake struct {
	why string // empty: none is
	by  string // on whose word: counted, and never held by the budget; empty: virdeck's own
}

// decision is what to do with a managed VM now, and why.
type decision struct {
	job     job
	why     string // empty: nothing is wanted
	wait    string // why nothing is done although something is wanted
	by      string // on whose word; empty: virdeck's own
	counted bool   // against the replacement budget
	held    bool   // by the budget, and by nothing else
	remake  bool   // another VM takes its place
	gone    bool   // nothing of it is left
	met     string // what an operator has asked for is so, in these words
	refused bool   // what an operator has asked for cannot be: wait says why
}

// removes reports whether it leads to the VM's removal.
func (d decision) removes() bool { return d.job == jobDelete || d.job == jobDrain || d.gone }

// decide is the whole judgement about a managed VM: level-based, and pure. The
// first rule that matches wins.
func decide(f vmFacts) decision {
	d := wanted(f)
	switch {
	case d.job == jobNone && !d.gone && !d.refused && f.order != 0 && !f.unseen && f.unreachable == "":
		d.met = met(f)
	case d.job == jobNone:
	case d.wait != "":
	case f.unreachable != "":
		d.wait = f.unreachable
	case d.job == jobCreate && !f.listed && !f.built && f.hold != "":
		d.wait = f.hold
	case f.failed == d.job && f.latched:
		d.wait = "failed, until its spec changes or an operator reconciles it: " + f.lastErr
	case f.failed == d.job && f.now.Before(f.retryAt):
		d.wait = fmt.Sprintf("tried again in %s: %s", f.retryAt.Sub(f.now).Round(time.Second), f.lastErr)
	case d.counted && d.by == "" && f.budget != "":
		d.wait, d.held = f.budget, true
	case d.job == jobDelete && !f.leaving && f.serving:
		d.job = jobDrain
	case d.job == jobDelete && f.leaving && f.serving && f.now.Before(f.drainUntil):
		d.wait = fmt.Sprintf("drains for another %s", f.drainUntil.Sub(f.now).Round(time.Second))
	case d.job == jobDelete && f.retired && f.now.Before(f.grace):
		d.wait = fmt.Sprintf("removed in %s, after the grace for what is not declared any more", f.grace.Sub(f.now).Round(time.Second))
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
		return leftAlone(f)
	case f.retired:
		return removal(f, "it is not wanted any more")
	case f.wish == wishGone:
		return removal(f, "an operator had it deleted")
	case f.listed && f.owner.Phase == model.PhaseDeleting:
		return decision{job: jobDelete, why: "its removal was begun"}
	case f.wish == wishStop && f.order == model.VerbStop && f.listed && f.off == 0:
		return decision{job: jobStop, why: f.asked, by: f.by}
	case f.wish == wishStop && f.remake.why != "":
		return decision{wait: f.remake.why + ": another VM takes its place when it is started"}
	case f.wish == wishStop:
		return decision{}
	case f.remake.why != "":
		d := removal(f, f.remake.why)
		d.remake = true
		return d.charged(f, f.remake.by)
	case f.pooled != "":
		return decision{why: f.pooled, wait: pooledWait(f)}
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
		return decision{job: jobCreate, why: "its domain is missing"}.charged(f, f.by)
	case !f.built || f.owner.Phase == model.PhaseNew:
		return decision{job: jobCreate, why: "its making was not finished"}
	case f.off >= 1 && f.order != 0:
		return decision{job: jobStart, why: f.asked}.charged(f, f.by)
	case f.order == model.VerbRestart && !f.anew:
		return decision{job: jobRestart, why: f.asked}.charged(f, f.by)
	case f.off >= 2 && f.leaveOff:
		return decision{wait: "its domain does not run, and start_stopped is off: start it by key"}
	case f.off >= 2:
		return decision{job: jobStart, why: "its domain does not run"}.charged(f, "")
	}
	return decision{}
}

// leftAlone is what becomes of one whose domain may not be touched. Who has asked
// for something is told so; where nothing was wanted but its end, that is all.
func leftAlone(f vmFacts) decision {
	switch {
	case f.unreachable != "":
		return decision{why: notOurs(f), wait: f.unreachable}
	case f.order == 0 && (f.wish == wishGone || f.retired):
		return decision{gone: true, why: notOurs(f)}
	}
	return decision{wait: notOurs(f), refused: f.order != 0}
}

// charged counts it against the budget, once for however many tries, and on
// whose word.
func (d decision) charged(f vmFacts, by string) decision {
	d.counted, d.by = !d.gone && !f.paid, by
	if d.by == "" && f.allowed != "" {
		d.by = f.allowed
		d.why += "; beyond the budget, reconciled by " + f.allowed
	}
	return d
}

// met tells that what an operator has asked for is so; empty: it is not yet.
func met(f vmFacts) string {
	up := f.listed && f.built && f.off == 0 && f.domain != model.DomainUnknown
	switch f.order { //nolint:exhaustive // the others are no orders, or end with the removal
	case model.VerbStart:
		if up {
			return "its domain is " + f.domain.String()
		}
	case model.VerbRestart, model.VerbRecreate:
		if up && f.anew {
			return "its domain is " + f.domain.String()
		}
	case model.VerbStop:
		switch {
		case f.listed && f.off > 0:
			return "its domain is " + f.domain.String()
		case !f.listed && f.missing >= 2:
			return "it has no VM, and gets none before it is started"
		}
	}
	return ""
}

// pooledWait is what one waits for that its pool has drained: its pool removes
// it, or takes it back.
func pooledWait(f vmFacts) string {
	if f.now.Before(f.drainUntil) {
		return fmt.Sprintf("drains for another %s", f.drainUntil.Sub(f.now).Round(time.Second))
	}
	return "its pool removes it next"
}

// removal is over when two looks found nothing. Who has asked for it is not told so
// while its VM may be there under a mark that has not been read.
func removal(f vmFacts, why string) decision {
	switch {
	case f.order != 0 && !f.listed && !f.built && f.hold != "":
		return decision{job: jobDelete, why: why, wait: f.hold}
	case !f.listed && f.missing >= 2 && f.unreachable == "":
		return decision{gone: true, why: why}
	case !f.listed && f.unreachable == "":
		return decision{job: jobDelete, why: why, wait: "a second look at the host"}
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
