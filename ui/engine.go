package ui

import (
	"fmt"
	"time"

	"virdeck/logbuf"
	"virdeck/model"
)

// Engine is all that the console knows of the fleet. Its methods may be called
// from any goroutine.
type Engine interface {
	// Snapshot returns the newest snapshot: immutable, never nil, without
	// waiting for anybody. An equal pointer means that nothing has changed.
	Snapshot() *model.Snapshot
	// Submit hands a command over without waiting for it. Progress and result
	// appear as an Op in the snapshots. An error means that the command was
	// refused; its text is the reason, for the operator.
	Submit(model.Command) (model.OpID, error)
	// Refuse returns the error with which Submit would refuse a command now, or
	// nil. It does not wait either.
	Refuse(model.Command) error
}

// Background says which palette to use.
type Background int

// The backgrounds.
const (
	BackgroundAuto  Background = iota // ask the terminal; dark until it answers
	BackgroundDark                    // whatever the terminal says
	BackgroundLight                   // whatever the terminal says
)

// String returns the word of the configuration.
func (b Background) String() string {
	switch b {
	case BackgroundAuto:
		return "auto"
	case BackgroundDark:
		return "dark"
	case BackgroundLight:
		return "light"
	}
	return fmt.Sprintf("unknown-background-%d", int(b))
}

// Options are what a console is made from.
type Options struct {
	Engine     Engine           // required
	Ring       *logbuf.Ring     // log shown in the log pane; nil: none
	User       string           // who sits here, for Ops and the audit
	Demo       bool             // badge DEMO, even if the snapshot does not say so
	ReadOnly   bool             // badge READ ONLY; keys that change something say why not
	Now        func() time.Time // clock; nil: time.Now
	Background Background       // at the start; `B` changes it
	ASCII      bool             // only ASCII signs and lines
	Mouse      bool             // mouse reporting on from the start; `m` toggles it
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Ring == nil {
		o.Ring = logbuf.NewRing(1)
	}
	if o.User == "" {
		o.User = "operator"
	}
	return o
}
