package model

import (
	"net/netip"
	"time"
)

// Culprit is who is at fault for a failed probe.
type Culprit int

const (
	// CulpritNone means: the probe passed.
	CulpritNone Culprit = iota
	// CulpritUs means: this process or machine (no descriptor, no route of our own).
	CulpritUs
	// CulpritTarget means: what the probe asked for does not answer, with or without
	// the proxy.
	CulpritTarget
	// CulpritHop means: the way from here to the VM (refused, unreachable, timeout).
	CulpritHop
	// CulpritCredentials means: the proxy wants other credentials (407).
	CulpritCredentials
	// CulpritWayOut means: the proxy is there and cannot get out (502, silence after
	// the request).
	CulpritWayOut
	// CulpritSlow means: an answer came too late.
	CulpritSlow
	// CulpritAnswer means: something answers, and it is not what a proxy would say.
	CulpritAnswer
)

// String returns the words used on screens and in JSON.
func (c Culprit) String() string {
	switch c {
	case CulpritNone:
		return "none"
	case CulpritUs:
		return "us"
	case CulpritTarget:
		return "target"
	case CulpritHop:
		return "hop"
	case CulpritCredentials:
		return "credentials"
	case CulpritWayOut:
		return "way out"
	case CulpritSlow:
		return "slow"
	case CulpritAnswer:
		return "wrong answer"
	}
	return unknown("culprit", int(c))
}

// ProxysFault reports whether a failure with this culprit speaks against the
// proxy itself or the hop to it.
func (c Culprit) ProxysFault() bool {
	switch c {
	case CulpritHop, CulpritCredentials, CulpritWayOut, CulpritSlow, CulpritAnswer:
		return true
	case CulpritNone, CulpritUs, CulpritTarget:
		return false
	}
	return false
}

// ProbeResult is one probe through one proxy at one address.
type ProbeResult struct {
	Address  netip.Addr
	Target   string // URL
	Passed   bool
	Culprit  Culprit
	SelfSeen bool   // the failure itself proves that the hop is reached and at fault (refused, 407, foreign banner)
	Reason   string // short: "407 credentials", "refused", "timeout after CONNECT"
	Detail   string // longer; may hold hostile bytes
	Status   int    // HTTP status, 0 if none
	ExitIP   netip.Addr
	Started  time.Time
	Took     time.Duration
}

// Sample is one probe in the history that the chart draws.
type Sample struct {
	At      time.Time
	Took    time.Duration
	Passed  bool
	Culprit Culprit
}

// Health is what probes say of one proxy at one address.
type Health struct {
	Address     netip.Addr
	Proven      bool // has passed rise in a row at this address in this incarnation
	InRotation  bool
	Demoted     bool
	Passes      int // consecutive
	Fails       int // consecutive, by the proxy's or the hop's fault
	Rise, Fall  int
	Last        ProbeResult
	LastPass    time.Time
	LastFault   time.Time // start of the last probe that failed by the proxy's or the hop's fault
	Waiting     string    // why a due demotion is not committed yet; empty if none is due
	Reason      string    // why it is out, or in
	Evidence    []string  // of the last change of membership
	Since       time.Time // of the last change of membership
	Unverified  bool
	Samples     []Sample // oldest first, bounded
	PassPercent int      // of Samples; -1 when there are none
}

// FleetHealth is what the witnesses say.
type FleetHealth struct {
	Control     WitnessState // the targets, asked without a proxy
	ControlNote string
	Frozen      bool // control or targets fail: the rotation stays as it is
	FrozenSince time.Time
	FrozenWhy   string
	BrakeOn     bool // several would be demoted together and wait for witnesses
	BrakeSince  time.Time
	BrakeNote   string
}

// WitnessState is the last word of the control probe.
type WitnessState int

const (
	// WitnessUnknown means: not asked yet.
	WitnessUnknown WitnessState = iota
	// WitnessPassing means: the target answers without a proxy.
	WitnessPassing
	// WitnessFailing means: it has answered before, and does not now.
	WitnessFailing
	// WitnessNone means: it has never answered: there is no direct way out from here.
	WitnessNone
)

// String returns the word used on screens and in JSON.
func (w WitnessState) String() string {
	switch w {
	case WitnessUnknown:
		return "unknown"
	case WitnessPassing:
		return "passing"
	case WitnessFailing:
		return "failing"
	case WitnessNone:
		return "no control"
	}
	return unknown("witness", int(w))
}
