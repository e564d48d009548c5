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
	VerbRecreate // another VM in place of a managed one
	VerbDelete   // remove a managed VM; it stays declared, and start makes it again
	VerbAdopt    // take an undeclared domain as a proxy
	VerbRelease  // forget an adopted or promoted one, without touching its VM
	VerbManage   // mark the domain of an adopted proxy as ours
	VerbCancel   // withdraw a queued command
	VerbReload   // apply the configuration file
	VerbRepin    // take the machine that answers under a host's URI for that host
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
	case VerbRecreate:
		return "recreate"
	case VerbDelete:
		return "delete"
	case VerbAdopt:
		return "adopt"
	case VerbRelease:
		return "release"
	case VerbManage:
		return "manage"
	case VerbCancel:
		return "cancel"
	case VerbRepin:
		return "repin"
	case VerbReload:
		return "reload"
	}
	return unknown("verb", int(v))
}

// Command is an operator's request. Commands are routed by Host, which is set
// for all but reload and cancel. Proxy is empty for those about a host.
type Command struct {
	Verb    Verb
	Host    HostName
	Proxy   ProxyName
	By      string     // who asks, for Ops and the audit
	SeenGen uint64     // link generation on the operator's screen when the key was pressed; 0 if it does not matter
	Adopt   *ProxySpec // adopt: the proxy that the domain is to be
	Op      OpID       // cancel: which
}

// Target returns the object of the command in words.
func (c Command) Target() string {
	switch {
	case c.Verb == VerbReload:
		return "configuration"
	case c.Proxy != "":
		return string(c.Proxy)
	case c.Adopt != nil:
		return string(c.Adopt.Name)
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
	OpCanceled
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
	case OpCanceled:
		return "canceled"
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
