package controller

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// read is one look at a proxy's VM, with what is needed to judge it.
type read struct {
	inst      model.Instance
	err       error
	bulk      bool // a listing: it knows states and leases, and has asked nobody else
	scheduled bool // a regular address poll; only those count against a held address
	now       time.Time
	health    model.Health // of the present address
	hold      int          // address_hold
}

// apply is the table "what a read says, and what changes". It is pure.
func (s status) apply(r read) (status, []note) {
	var notes []note
	s = s.keepOutcomes(r.inst.Outcomes)
	if known(r) {
		var n []note
		s, n = s.identify(r)
		notes = append(notes, n...)
	}
	switch {
	case errors.Is(r.err, provider.ErrNotFound):
		s, n := s.applyMissing(r)
		return s, append(notes, n...)
	case r.err != nil:
		return s.applyFailed(r), notes
	case r.inst.At.Before(s.seen) && !s.overtaken(r):
		return s, notes // an older look, come late
	}
	s.missing = looks{}
	if !r.bulk {
		s = s.readGood(r.now)
	}
	var n []note
	switch r.inst.State {
	case model.InstanceStopped:
		s, n = s.applyStopped(r)
	case model.InstancePaused:
		s.off = looks{}
	case model.InstanceProvisioning:
		s, n = s.applyProvisioning(r)
	case model.InstanceRunning:
		s, n = s.applyRunning(r)
	case model.InstanceUnknown:
		s.off = looks{}
		if r.bulk {
			s, n = s.applyLease(r)
		}
	}
	return s, append(notes, n...)
}

// known reports whether the look saw the domain itself, whatever became of its
// address.
func known(r read) bool {
	return r.inst.UUID != "" && !errors.Is(r.err, provider.ErrNotFound)
}

// overtaken reports whether a bulk look merely overtook this read of the
// sources: it began from an older listing, took its time, and both saw the same
// run of the domain. What the sources said is then news, and the newest there
// is, since reads of one proxy come one after another.
func (s status) overtaken(r read) bool {
	asked := r.inst.State == model.InstanceRunning || r.inst.State == model.InstanceProvisioning
	return !r.bulk && asked && r.inst.Incarnation == s.incarnation && s.off.n == 0 && s.missing.n == 0
}

// keepOutcomes replaces what was asked, and leaves the rest as it was, with its
// age.
func (s status) keepOutcomes(outs []model.Outcome) status {
	for _, o := range outs {
		if o.Kind != model.OutcomeNone && int(o.Source) < len(s.outcomes) && !o.At.Before(s.outcomes[o.Source].At) || o.Kind == model.OutcomeNotApplicable {
			s.outcomes[o.Source] = o
		}
	}
	return s
}

func (s status) readGood(now time.Time) status {
	s.readErr, s.notAsked, s.failed, s.lastRead = "", false, time.Time{}, now
	return s
}

// identify takes in which run of the domain was seen. A new incarnation voids
// the address and its proof.
func (s status) identify(r read) (status, []note) {
	in := r.inst
	if in.At.Before(s.seen) {
		return s, nil
	}
	s.seen, s.uuid, s.domain, s.domainNote = in.At, in.UUID, in.Domain, in.Reason
	if in.Incarnation == "" || in.Incarnation == s.incarnation {
		return s, nil
	}
	was := s.incarnation
	s.incarnation = in.Incarnation
	if was == "" {
		if s.out != "" { // it had been found off or gone, and runs again
			s.out = ""
			s.provisioning = !s.ip.IsValid()
			return s, []note{{what: "the domain runs again", evidence: []string{"incarnation " + string(in.Incarnation)}}}
		}
		return s, nil
	}
	s = s.voidAddress()
	s.out, s.provisioning = "", true
	return s, []note{{
		what:     "the domain was started anew: its address and its proof are void",
		evidence: []string{fmt.Sprintf("incarnation %s, before %s", in.Incarnation, was)},
	}}
}

// applyFailed: nothing is cleared, nothing counted.
func (s status) applyFailed(r read) status {
	s.readErr = words(r.err)
	s.notAsked = errors.Is(r.err, provider.ErrNotAsked)
	if s.failed.IsZero() {
		s.failed = r.now
	}
	return s
}

// applyMissing: absence is not death. Two looks through a live link, and then
// only if the address does not pass probes.
func (s status) applyMissing(r read) (status, []note) {
	at := r.inst.At
	if at.IsZero() {
		at = r.now
	}
	if at.Before(s.seen) {
		return s, nil
	}
	was := s.missing.n
	s.missing = s.missing.again(at)
	s = s.readGood(r.now)
	s.domain, s.domainNote = model.DomainMissing, ""
	if s.missing.n < 2 {
		return s, nil
	}
	if s.ip.IsValid() && !condemned(r.health, s.missing.first) {
		if was < 2 {
			return s, []note{{
				what:     fmt.Sprintf("the domain is not listed on this host any more; kept, since %s still passes probes or has not failed them", s.ip),
				evidence: []string{"two looks through a live link"},
			}}
		}
		return s, nil
	}
	had := s.ip.IsValid() || s.incarnation != ""
	s = s.voidAddress()
	s.incarnation, s.provisioning = "", false
	if had && s.out == "" {
		s.out = "domain missing"
		return s, []note{{what: "the domain is missing", evidence: []string{"two looks through a live link", probeWord(r.health)}}}
	}
	return s, nil
}

// applyStopped: seen twice, the address is void.
func (s status) applyStopped(r read) (status, []note) {
	s.off = s.off.again(r.inst.At)
	if s.off.n < 2 {
		return s, nil
	}
	had := s.ip.IsValid() || s.incarnation != ""
	s = s.voidAddress()
	s.incarnation, s.provisioning = "", false
	if !had {
		return s, nil
	}
	s.out = "domain is " + r.inst.Domain.String()
	if r.inst.Reason != "" {
		s.out += " (" + r.inst.Reason + ")"
	}
	return s, []note{{what: s.out, evidence: []string{"seen twice"}}}
}

// applyProvisioning: the discriminator between a guest that boots and one whose
// agent restarts is whether this run of it had an address before.
func (s status) applyProvisioning(r read) (status, []note) {
	s.off = looks{}
	if !s.ip.IsValid() {
		s.provisioning = true
		return s, nil
	}
	var notes []note
	if !s.hold.Active {
		s.hold = model.Hold{Active: true, Of: r.hold, Since: r.now}
		notes = append(notes, note{
			what:     fmt.Sprintf("no source names an address now: %s is held", s.ip),
			evidence: append(outcomeLines(r.inst.Outcomes), probeWord(r.health)),
		})
	}
	if r.scheduled {
		s.hold.Polls++
	}
	s.hold.Probe = probeWord(r.health)
	if s.hold.Polls < s.hold.Of || !condemned(r.health, s.hold.Since) {
		return s, notes
	}
	old, polls := s.ip, s.hold.Polls
	s = s.voidAddress()
	s.provisioning = true
	return s, append(notes, note{
		what:     fmt.Sprintf("the held address %s is given up", old),
		evidence: append([]string{fmt.Sprintf("%d polls without an address", polls), probeWord(r.health)}, outcomeLines(r.inst.Outcomes)...),
	})
}

// condemned reports whether probes through the address have shown since t that
// it does not serve. A single lost probe is not enough: it must have been
// demoted before a witness or, having no place to lose, have failed as often.
func condemned(h model.Health, since time.Time) bool {
	if !h.LastFault.After(since) || h.Last.Passed || !h.Last.Culprit.ProxysFault() {
		return false
	}
	return h.Demoted || (!h.InRotation && h.Fall > 0 && h.Fails >= h.Fall)
}

func probeWord(h model.Health) string {
	switch {
	case h.Last.Started.IsZero():
		return "no probe yet"
	case h.Last.Passed:
		return "last probe passed"
	}
	return "last probe failed: " + h.Last.Reason
}

func outcomeLines(outs []model.Outcome) []string {
	var lines []string
	for _, o := range outs {
		switch o.Kind {
		case model.OutcomeNone, model.OutcomeNotApplicable:
			continue
		case model.OutcomeAddresses:
			lines = append(lines, fmt.Sprintf("%s: %s", o.Source, joinAddrs(o.Addresses)))
		case model.OutcomeEmpty:
			lines = append(lines, fmt.Sprintf("%s: answered, no address", o.Source))
		case model.OutcomeFailed:
			lines = append(lines, fmt.Sprintf("%s: failed, %s", o.Source, codeWord(o)))
		case model.OutcomeNotAsked:
			lines = append(lines, fmt.Sprintf("%s: not asked, %s", o.Source, o.Message))
		}
	}
	return lines
}

func codeWord(o model.Outcome) string {
	if o.Code == 0 {
		return o.Message
	}
	return fmt.Sprintf("code %d: %s", o.Code, o.Message)
}

func joinAddrs(as []netip.Addr) string {
	words := make([]string, len(as))
	for i, a := range as {
		words[i] = a.String()
	}
	return strings.Join(words, ", ")
}

// applyRunning: confirmed, first seen, or another address.
func (s status) applyRunning(r read) (status, []note) {
	s.off, s.provisioning, s.out = looks{}, false, ""
	in := r.inst
	switch {
	case !s.ip.IsValid():
		s.ip, s.ipSource, s.ipAt, s.hold = in.Address, in.Won, r.now, model.Hold{}
		return s, []note{{what: fmt.Sprintf("address %s, named by %s", in.Address, in.Won), evidence: outcomeLines(in.Outcomes)}}
	case in.Address == s.ip || slices.Contains(in.Candidates, s.ip) && in.Address == s.candidate:
		return s.confirm(in.Won, r.now)
	case in.Address == s.candidate:
		return s, nil // already being proven
	}
	s.candidate = in.Address
	return s, []note{{
		what:     fmt.Sprintf("another address, %s: %s stays while it passes, and the new one is proven beside it", in.Address, s.ip),
		evidence: outcomeLines(in.Outcomes),
	}}
}

// confirm: the known address is named again.
func (s status) confirm(src model.Source, now time.Time) (status, []note) {
	was := s.hold
	s.ipAt, s.ipSource, s.hold, s.candidate = now, src, model.Hold{}, netip.Addr{}
	if !was.Active {
		return s, nil
	}
	return s, []note{{
		what:     fmt.Sprintf("address %s confirmed again by %s", s.ip, src),
		evidence: []string{fmt.Sprintf("held for %s", now.Sub(was.Since).Round(time.Second))},
	}}
}

// applyLease takes a confirmation from a listing, and no more than that: a
// lease that names another address is the next full look's to judge.
func (s status) applyLease(r read) (status, []note) {
	for _, o := range r.inst.Outcomes {
		if o.Source == model.SourceLease && o.Kind == model.OutcomeAddresses && s.ip.IsValid() && slices.Contains(o.Addresses, s.ip) {
			candidate := s.candidate
			s, n := s.confirm(model.SourceLease, r.now)
			s.candidate = candidate
			return s, n
		}
	}
	return s, nil
}

// replaceBy makes the candidate the address. The reason goes into the note.
func (s status) replaceBy(why string, now time.Time) (status, note) {
	old := s.ip
	s.ip, s.ipAt, s.candidate, s.hold = s.candidate, now, netip.Addr{}, model.Hold{}
	return s, note{what: fmt.Sprintf("the address is now %s, before %s", s.ip, old), evidence: []string{why}}
}
