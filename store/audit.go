package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"virdeck/model"
)

// Phase is how far a command had come when a line of the audit log was written.
type Phase string

// The phases.
const (
	PhaseAccepted Phase = "accepted"
	PhaseRefused  Phase = "refused"
	PhaseDone     Phase = "done"
	PhaseFailed   Phase = "failed"
	// PhaseUnreadable is a line that was not written whole: never written as a
	// phase, and only ever read.
	PhaseUnreadable Phase = "unreadable"
)

// maxResult bounds one text of an entry, which may come from a host, in bytes.
const maxResult = 4096

// Entry is one line of the audit log.
type Entry struct {
	At      time.Time       `json:"at"`
	By      string          `json:"by"`
	Key     string          `json:"key,omitempty"`     // fingerprint of the public key, over SSH
	Address string          `json:"address,omitempty"` // from where, over SSH
	Verb    string          `json:"verb"`
	Host    model.HostName  `json:"host,omitempty"`
	Proxy   model.ProxyName `json:"proxy,omitempty"`
	Phase   Phase           `json:"phase"`
	Result  string          `json:"result,omitempty"` // cut to 4096 bytes
}

// Audit is the audit log: a file of JSON lines to which is only ever added.
type Audit struct {
	path string

	mu     sync.Mutex
	f      *os.File
	torn   bool // the last line has no end
	closed bool
}

// OpenAudit opens the audit log, or makes it, with mode 0600.
func OpenAudit(path string) (*Audit, error) {
	if _, err := makeDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("audit %s: directory: %w", path, err)
	}
	a := &Audit{path: path}
	if err := a.open(); err != nil {
		return nil, fmt.Errorf("audit %s: %w", path, err)
	}
	return a, nil
}

// Append writes one line, and returns when it is on the disk. After an error
// the line may be there in part, or whole.
func (a *Audit) Append(e Entry) error {
	e.At = e.At.UTC()
	e.Result = cut(e.Result, maxResult)
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit %s: %w", a.path, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return ErrClosed
	}
	if err := a.append(line); err != nil {
		return fmt.Errorf("audit %s: %w", a.path, err)
	}
	return nil
}

// Last returns the newest n entries, oldest first.
func (a *Audit) Last(n int) ([]Entry, error) { return ReadAudit(a.path, n) }

// Close closes the log. Another Close does nothing.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	if err := a.f.Close(); err != nil {
		return fmt.Errorf("audit %s: %w", a.path, err)
	}
	return nil
}

func (a *Audit) append(line []byte) error {
	if !isAt(a.f, a.path) { // rotated away: follow the name
		old := a.f
		if err := a.open(); err != nil {
			return err
		}
		_ = old.Close() // all of it is synced
	}
	line = append(line, '\n')
	if a.torn {
		line = append([]byte{'\n'}, line...)
	}
	if _, err := a.f.Write(line); err != nil {
		a.torn = a.torn || !a.wholeLines()
		return err
	}
	a.torn = false
	return a.f.Sync()
}

// open opens what has the name now, and looks whether its last line has an end.
func (a *Audit) open() error {
	f, err := os.OpenFile(a.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err == nil && fi.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600)
	}
	if err == nil {
		err = syncDir(filepath.Dir(a.path)) // its name, if it is new
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	a.f = f
	a.torn = !a.wholeLines()
	return nil
}

// wholeLines reports whether the file ends with a line. When in doubt it does
// not: an empty line hurts nobody.
func (a *Audit) wholeLines() bool {
	fi, err := a.f.Stat()
	if err != nil {
		return false
	}
	if fi.Size() == 0 {
		return true
	}
	var last [1]byte
	_, err = a.f.ReadAt(last[:], fi.Size()-1)
	return err == nil && last[0] == '\n'
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
