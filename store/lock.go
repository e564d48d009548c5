package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockRetry is how often a held lock is tried again until the timeout.
const lockRetry = 20 * time.Millisecond

// holder is what a lock file says of who holds it.
type holder struct {
	PID    int    `json:"pid"`
	Socket string `json:"socket,omitempty"`
}

// lock is a held lock file. The lock is the flock, which ends with the process;
// the text is for others to read. The file stays when the lock is released: one
// that is removed could be locked by two.
type lock struct{ f *os.File }

// acquire takes the lock beside a store, or returns ErrHeld after a timeout.
func acquire(store string, timeout time.Duration, me holder) (*lock, error) {
	path := store + ".lock"
	for deadline := time.Now().Add(timeout); ; {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && isAt(f, path) {
			l := &lock{f}
			if err := l.write(me); err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", path, err), l.release())
			}
			return l, nil
		}
		held := readHolder(f)
		_ = f.Close() // nothing was written
		switch {
		case err == nil || errors.Is(err, unix.EINTR): // removed under us: the next one is another file
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !time.Now().Before(deadline) {
			return nil, ErrHeld{Path: store, PID: held.PID, Socket: held.Socket}
		}
		time.Sleep(lockRetry)
	}
}

func (l *lock) write(me holder) error {
	text, err := json.Marshal(me)
	if err != nil {
		return err
	}
	if err := l.f.Chmod(0o600); err != nil {
		return err
	}
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err = l.f.WriteAt(append(text, '\n'), 0)
	return err
}

func (l *lock) release() error {
	err := l.f.Truncate(0)
	return errors.Join(err, l.f.Close())
}

// readHolder returns what the file says; zero if it cannot be understood, which
// the flock makes no less held.
func readHolder(f *os.File) holder {
	var h holder
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if err != nil || json.Unmarshal(text, &h) != nil {
		return holder{}
	}
	return h
}

// isAt reports whether an open file is still the one at a path.
func isAt(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
