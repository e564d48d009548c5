package rotation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const lockName = "virdeck.lock"

// Lock makes the state directory (0700) and takes it for this process. One
// engine at a time may have it; the error of a second one says who does. The
// returned function gives it back; the kernel does so at the end of the process,
// however that comes.
func Lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := ours(dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another virdeck (%s) has the state directory %s; look at it with: virdeck status",
				holder(dir), dir)
		}
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(f, "pid %d, since %s\n", os.Getpid(), time.Now().Format(time.DateTime))
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", f.Name(), errors.Join(err, f.Close()))
	}
	return func() { _ = f.Close() }, nil
}

// holder says who has the state directory, for a message.
func holder(dir string) string {
	f, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		return "unknown"
	}
	defer func() { _ = f.Close() }()             // it was only read
	who, _ := io.ReadAll(io.LimitReader(f, 200)) // what there is
	return strings.TrimSpace(string(who))
}

// ours refuses a directory in which somebody else could put a socket of theirs
// in our socket's place.
func ours(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return fmt.Errorf("state directory %s: %w", dir, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("state directory %s: not a directory", dir)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("state directory %s: it belongs to another user (uid %d)", dir, st.Uid)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("state directory %s: group or others may write to it; allowed: mode 0755 or stricter", dir)
	}
	return nil
}
