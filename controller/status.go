package controller

import (
	"net/netip"
	"time"

	"virdeck/model"
)

// status is what the controller remembers of one proxy. It is a value: apply
// and its parts return changed copies.
type status struct {
	ip        netip.Addr // status.IP; held addresses included
	ipSource  model.Source
	ipAt      time.Time  // when a source last confirmed it
	candidate netip.Addr // another address, being proven beside ip
	hint      netip.Addr // of an earlier incarnation; chooses among several, no more

	incarnation model.Incarnation
	uuid        string
	domain      model.DomainState
	domainNote  string
	seen        time.Time // when the newest look at the domain began
	lastRead    time.Time // last read that said something

	provisioning bool // runs, and has no address
	outcomes     [3]model.Outcome
	hold         model.Hold

	readErr  string    // why the last read said nothing
	notAsked bool      // because no source could be asked
	failed   time.Time // since when; zero after a good read

	missing looks
	off     looks
	out     string // why the VM, and not a probe, took it out of rotation
}

// looks counts looks that found the same bad news, so that one look alone
// changes nothing.
type looks struct {
	n           int
	first, last time.Time
}

// lookApart is how far apart two looks must begin to count as two.
const lookApart = 500 * time.Millisecond

func (l looks) again(at time.Time) looks {
	switch {
	case l.n == 0:
		return looks{n: 1, first: at, last: at}
	case at.Sub(l.last) >= lookApart:
		return looks{n: l.n + 1, first: l.first, last: at}
	}
	return l
}

// doubtful reports whether the address wants looking at soon.
func (s status) doubtful() bool {
	return !s.ip.IsValid() || s.hold.Active || s.candidate.IsValid() || !s.failed.IsZero() ||
		s.missing.n > 0 || s.off.n > 0
}

// note is something that apply has to tell: one line, and what led to it.
type note struct {
	what     string
	evidence []string
}

// voidAddress forgets the address and everything proven about it.
func (s status) voidAddress() status {
	if s.ip.IsValid() {
		s.hint = s.ip
	}
	s.ip, s.candidate, s.ipAt = netip.Addr{}, netip.Addr{}, time.Time{}
	s.hold = model.Hold{}
	return s
}

// outcomeList returns what each source last said, in display order.
func (s status) outcomeList() []model.Outcome {
	out := make([]model.Outcome, 0, len(s.outcomes))
	for i, o := range s.outcomes {
		o.Source = model.Source(i)
		out = append(out, o)
	}
	return out
}
