package model

import (
	"fmt"
	"time"
)

// Verb is what an operator can ask for.
type Verb int

// The verbs.
const (
	VerbReconcile Verb = iota + 1 // look at a proxy now, whatever its schedule
	VerbReconcileHost
	VerbReconnect // replace the link of a host
	VerbDrain
	VerbUndrain
	VerbStart
	VerbStop
	VerbRestart
)

// String returns the word used in logs, Ops and the audit.
func (v Verb) String() string {
	switch v {
	case VerbReconcile:
		return "reconcile"
	case VerbReconcileHost:
		return "reconcile host"
	case VerbReconnect:
		return "reconnect"
	case VerbDrain:
		return "drain"
	case VerbUndrain:
		return "undrain"
	case VerbStart:
		return "start"
	case VerbStop:
		return "stop"
	case VerbRestart:
		return "restart"
	}
	return unknown("verb", int(v))
}

// Command is an operator's request. Host is always set: commands are routed by
// it. Proxy is empty for those about a host.
type Command struct {
	Verb    Verb
	Host    HostName
	Proxy   ProxyName
	By      string // who asks, for Ops and the audit
	SeenGen uint64 // link generation on the operator's screen when the key was pressed; 0 if it does not matter
}

// Target returns the object of the command in words.
func (c Command) Target() string {
	if c.Proxy != "" {
		return string(c.Proxy)
	}
	return string(c.Host)
}

// OpID identifies an accepted command.
type OpID uint64

// OpState is how far an Op has come.
type OpState int

// The states of an Op.
const (
	OpQueued OpState = iota
	OpRunning
	OpDone
	OpFailed
)

// String returns the word used on screens.
func (s OpState) String() string {
	switch s {
	case OpQueued:
		return "queued"
	case OpRunning:
		return "running"
	case OpDone:
		return "done"
	case OpFailed:
		return "failed"
	}
	return unknown("op-state", int(s))
}

// Op is an accepted command with its progress, visible in every session.
type Op struct {
	ID      OpID
	Command Command
	State   OpState
	Phase   string // what it does just now
	Result  string // one line, when finished
	Created time.Time
	Ended   time.Time // zero while it runs
	Joined  int       // equal requests that were folded into this one
}

// Refusal is the error of a command that was not accepted. Its text is for the
// operator.
type Refusal struct{ Why string }

// Error implements error.
func (r Refusal) Error() string { return r.Why }

// Refuse returns a Refusal as an error.
func Refuse(format string, args ...any) error { return Refusal{Why: fmt.Sprintf(format, args...)} }
