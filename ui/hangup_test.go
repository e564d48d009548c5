package ui

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty returns both ends of a terminal that is nobody's controlling one.
func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd()) //nolint:gosec // a descriptor
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// A terminal that goes away ends the console, though no signal tells of it: an ssh
// connection or a tmux that is killed must not leave an engine behind.
func TestConsoleEndsWithItsTerminal(t *testing.T) {
	master, slave := pty(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	opts := Options{Engine: &fakeEngine{snap: fleet()}, Ring: crafted(), User: "alice", Now: clock}
	go func() { done <- runOn(ctx, opts, []string{"TERM=xterm-256color"}, slave, slave) }()
	defer cancel()
	var seen bytes.Buffer
	b := make([]byte, 1<<16)
	for !bytes.Contains(seen.Bytes(), []byte("beelink")) {
		n, err := master.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		seen.Write(b[:n])
	}
	if err := master.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on without a terminal")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := slave.Close(); err != nil {
		t.Error(err)
	}
}
