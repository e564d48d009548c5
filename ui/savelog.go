package ui

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	tea "charm.land/bubbletea/v2"
)

// savedMsg says what became of a log that was to be saved.
type savedMsg struct {
	path  string
	lines int
	err   error
}

// saveLog writes what the log shows to a file of its own in the current directory.
func (m *Model) saveLog() tea.Cmd {
	if m.mayOnlyLook() {
		return nil
	}
	text, n := m.logText(m.logHere())
	if n == 0 {
		m.hint("nothing is shown that could be saved")
		return nil
	}
	now := m.opts.Now()
	return func() tea.Msg {
		path, err := writeNew(text, now)
		return savedMsg{path, n, err}
	}
}

// saved tells it.
func (m *Model) saved(r savedMsg) {
	if r.err != nil {
		m.warn("the log was not saved: " + r.err.Error())
		return
	}
	m.say("saved " + count(r.lines, "line", "lines") + " of the log to " + r.path)
}

// writeNew writes a file that only its owner may read and returns its path. It
// never writes over one that is there.
func writeNew(text string, now time.Time) (path string, err error) {
	for i := range 100 {
		name := now.Format("virdeck-log-20060102-150405")
		if i > 0 {
			name += fmt.Sprintf("-%d", i+1)
		}
		path, err = filepath.Abs(name + ".txt")
		if err != nil {
			return "", err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.WriteString(text)
		return path, errors.Join(err, f.Close())
	}
	return "", fmt.Errorf("%s: %w, and so are its successors", path, fs.ErrExist)
}
