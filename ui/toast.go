package ui

import (
	"log/slog"
	"time"

	"virdeck/logbuf"
)

const (
	toastFor   = 5 * time.Second // how long a toast stays
	toastSolid = time.Second     // how long keys cannot dismiss an error: fast fingers must not lose it
)

// toast is one line in the footer's place, so that it never moves the layout.
type toast struct {
	text  string
	err   bool // stays until a key
	since time.Time
}

func (t *toast) over(now time.Time) bool { return !t.err && now.Sub(t.since) >= toastFor }

// say shows a toast and keeps it in the log, so that nothing is lost by being
// overwritten.
func (m *Model) say(msg string) { m.showToast(msg, false) }

// warn shows a toast that stays until a key is pressed.
func (m *Model) warn(msg string) { m.showToast(msg, true) }

func (m *Model) showToast(msg string, isErr bool) {
	msg = clean(msg)
	m.toast = &toast{text: msg, err: isErr, since: m.opts.Now()}
	m.dirty = true
	level := slog.LevelInfo
	if isErr {
		level = slog.LevelWarn
	}
	m.opts.Ring.Append(logbuf.Record{
		At: m.opts.Now(), Level: level, Message: msg,
		Attrs: []logbuf.Attr{{Key: "console", Value: m.opts.User}},
	})
	m.log.poll()
}

// hint shows a toast that is not worth a line in the log: a key that does
// nothing here.
func (m *Model) hint(msg string) {
	m.toast = &toast{text: clean(msg), since: m.opts.Now()}
	m.dirty = true
}

// dismiss clears an error that has been on screen long enough to be read.
func (m *Model) dismiss() {
	if m.toast != nil && m.opts.Now().Sub(m.toast.since) >= toastSolid {
		m.toast = nil
	}
}
