package model

import "time"

// LinkState is the state of the one pooled connection to a host.
type LinkState int

const (
	// LinkConnecting means: no generation is up, and one is being dialled.
	LinkConnecting LinkState = iota
	// LinkUp means: a generation is up.
	LinkUp
	// LinkDown means: no generation is up; the next dial waits for NextRetry.
	LinkDown
	// LinkDraining means: the link has been closed for good and finishes its calls.
	LinkDraining
)

// String returns the word used on screens and in JSON.
func (s LinkState) String() string {
	switch s {
	case LinkConnecting:
		return "connecting"
	case LinkUp:
		return "up"
	case LinkDown:
		return "down"
	case LinkDraining:
		return "draining"
	}
	return unknown("link-state", int(s))
}

// LinkStatus is what is known of a link at one instant.
type LinkStatus struct {
	State      LinkState
	Generation uint64 // counts connections that came up, from 1
	Since      time.Time
	LastError  string    // verbatim, of the last failure; kept while up, as history
	LastErrAt  time.Time // zero if there was none
	NextRetry  time.Time // when down; zero otherwise
	Phase      string    // of a running dial or reconnect: "dial", "handshake", "verify"
	InFlight   int       // calls that hold a slot, abandoned ones included
	Abandoned  int       // of these, calls whose caller has left
	Slots      int
	RoundTrip  time.Duration // of the last keepalive; zero if none yet
	ClockDiff  time.Duration // host clock minus ours
	ClockError time.Duration // ClockDiff is right to so much, either way
	ClockKnown bool
	Endpoint   string       // what was dialled, without secrets
	Suspect    bool         // silent, and a second opinion is being asked
	EventsOff  string       // which events this generation does not tell, and why, with the host's words; empty: it tells all
	Calls      [3]CallCount // by CallClass, since the process started
}

// CallClass says how long a call to a host may block there.
type CallClass int

// The classes of calls.
const (
	CallRead  CallClass = iota // waits for no guest
	CallAgent                  // waits for a guest's agent
	CallWrite                  // changes a domain, and may wait for its lock
)

// String returns a word for screens.
func (c CallClass) String() string {
	switch c {
	case CallRead:
		return "read"
	case CallAgent:
		return "agent"
	case CallWrite:
		return "write"
	}
	return unknown("call-class", int(c))
}

// CallCount counts the calls of a class.
type CallCount struct {
	Done     uint64 // answered by the host, errors included
	Failed   uint64 // of these, with an error
	NotAsked uint64 // never sent: no slot, the domain had such a call under way, or no time was left
	Down     uint64 // there was no link, or it died before the answer
	Left     uint64 // their caller left before the answer
}
