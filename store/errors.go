package store

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by everything that is asked of a closed store.
var ErrClosed = errors.New("store: closed")

// ErrHeld means: another process has the store.
type ErrHeld struct {
	Path   string
	PID    int    // 0 if it did not say
	Socket string // of its dashboard; empty if it did not say
}

// Error says who has it and how to reach that one, in one line.
func (e ErrHeld) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = fmt.Sprintf("process %d", e.PID)
	}
	reach := `ask it with "virdeck status"`
	if e.Socket != "" {
		reach += " (its socket is " + e.Socket + ")"
	}
	return fmt.Sprintf("store %s: held by %s, and one store has one owner; %s, or stop it first", e.Path, by, reach)
}

// Reason says why a file is not opened as a store.
type Reason int

// The reasons.
const (
	Damaged Reason = iota + 1
	NotStore
	OtherFleet
	NewerSchema
	OlderSchema // and there is no way from it to this one
)

// String returns the reason in words.
func (r Reason) String() string {
	switch r {
	case Damaged:
		return "damaged"
	case NotStore:
		return "not a store of virdeck"
	case OtherFleet:
		return "another fleet's"
	case NewerSchema:
		return "written by a newer virdeck"
	case OlderSchema:
		return "written by an older virdeck"
	}
	return fmt.Sprintf("reason(%d)", int(r))
}

// ErrRefused means: there is a file, it cannot be used, and it is as it was.
type ErrRefused struct {
	Path   string
	Reason Reason
	Detail string
}

// Error says what is wrong and names the way out, in one line.
func (e ErrRefused) Error() string {
	return fmt.Sprintf("store %s: %s: %s; it is left as it is. %s", e.Path, e.Reason, e.Detail, e.wayOut())
}

func (e ErrRefused) wayOut() string {
	const anew = "started with --takeover, virdeck takes uids and passwords of managed proxies back from the hosts; " +
		"drains, the rotation and the budget are lost"
	switch e.Reason {
	case Damaged:
		return fmt.Sprintf("Put back a copy, or move it away (mv %s %s.bad): %s", e.Path, e.Path, anew)
	case NotStore:
		return "Move it away, or set fleet.state_dir to another directory; " + anew
	case OtherFleet:
		return "Set fleet.name to that name, or fleet.state_dir to a directory of this fleet's own"
	case NewerSchema:
		return fmt.Sprintf("Start that version, or move it away (mv %s %s.newer): %s", e.Path, e.Path, anew)
	case OlderSchema:
		return fmt.Sprintf("Start a version between that one and this, or move it away (mv %s %s.old): %s", e.Path, e.Path, anew)
	}
	return "Move it away"
}
