package health

import (
	"fmt"
	"time"

	"virdeck/model"
)

// scene is everything that decide looks at for one due demotion.
type scene struct {
	c       counters
	fall    int
	now     time.Time
	control control
	// explains: the target's own failure explains the accused's.
	explains bool
	peerPass time.Time // start of the newest pass through another proxy to the same target
	others   int       // all other tracked proxies, failing or not
	failing  int       // proxies in rotation that fail just now, this one included
	brake    time.Time // since when the brake holds; zero if it does not
	limit    time.Duration
}

// control is what is known of the targets, asked without a proxy.
type control struct {
	state    model.WitnessState
	lastPass time.Time // start of the last control probe that passed
	lastFail time.Time
	why      string // of the last failure
}

// verdict is decide's answer.
type verdict struct {
	commit bool
	void   bool   // the failures are explained otherwise: forget them
	wait   string // why not yet; for the screen
	stuck  bool   // nobody can tell, and waiting will not help
	proof  string // the witness; for the evidence
}

// brakeAt is how many failing proxies together make the brake hold.
const brakeAt = 3

// decide says whether a due demotion is committed now. It is pure.
//
// The idea: fall failures in a row are an accusation. The proxy is convicted
// only when something else shows that a proxy in working order would have
// passed: the control probe, a peer, or a failure that proves the VM reached
// and itself at fault (refused, 407, a foreign banner). That witness must have
// spoken after the first failure and, unless the failure speaks for itself,
// before the last one, so that a target that has just come back condemns nobody
// who was not asked since.
func decide(s scene) verdict {
	if s.c.fails < s.fall {
		return verdict{wait: ""}
	}
	braked := s.failing >= brakeAt
	fresh := s.c.firstFail
	if braked {
		fresh = later(fresh, s.brake)
	}
	witness, who := s.witness(fresh)
	switch {
	case s.explains && (braked || !s.c.last.SelfSeen):
		return verdict{void: !s.c.last.SelfSeen, wait: "the target fails without a proxy, too: " + s.control.why}
	case !braked && s.c.last.SelfSeen:
		return verdict{commit: true, proof: "the VM itself answered: " + s.c.last.Reason}
	case who != "" && (s.c.last.SelfSeen || !s.c.lastFail.Before(witness)):
		return verdict{commit: true, proof: who}
	case who != "":
		return verdict{wait: "failed again since " + who + "? asking"}
	case braked && s.now.Sub(s.brake) < s.limit:
		return verdict{wait: fmt.Sprintf("%d proxies fail together; waiting for a witness", s.failing)}
	case braked && s.c.last.SelfSeen:
		return verdict{commit: true, proof: fmt.Sprintf("no witness within %s, but the VM itself answered: %s", s.limit, s.c.last.Reason)}
	case !braked && s.others == 0 && s.control.state != model.WitnessPassing && s.c.last.Culprit == model.CulpritHop:
		return verdict{commit: true, proof: "no control and no other proxy to ask; the hop itself fails: " + s.c.last.Reason}
	default:
		return verdict{stuck: true, wait: "cannot tell whose fault it is: no control passes, and no other proxy"}
	}
}

// witness returns the witness that passed at or after fresh, and its
// description; the earliest known one, which is the one that most failures
// follow.
func (s scene) witness(fresh time.Time) (time.Time, string) {
	switch {
	case !s.c.witnessed.IsZero() && !s.c.witnessed.Before(fresh):
		return s.c.witnessed, "another way to the target passed in the meantime"
	case s.control.state == model.WitnessPassing && !s.control.lastPass.Before(fresh):
		return s.control.lastPass, "the target answers without a proxy"
	case !s.peerPass.IsZero() && !s.peerPass.Before(fresh):
		return s.peerPass, "the target answers through another proxy"
	}
	return time.Time{}, ""
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
