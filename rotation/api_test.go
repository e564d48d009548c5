package rotation

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"virdeck/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fixed struct{ s *model.Snapshot }

func (f fixed) Snapshot() *model.Snapshot { return f.s }

func TestAPI(t *testing.T) {
	dir := t.TempDir()
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	l, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(filepath.Join(dir, SocketName)); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("socket mode %v, %v; want 0600", fi.Mode(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, fixed{&model.Snapshot{Fleet: "home"}}) }()
	for range 5 {
		st, err := Fetch(t.Context(), dir)
		if err != nil || st.Fleet != "home" || st.Version != model.StatusVersion {
			t.Fatalf("Fetch: %+v, %v", st, err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := Fetch(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the end: %v, want ErrNotRunning", err)
	}
}

func TestFetch_nobodyThere(t *testing.T) {
	if _, err := Fetch(t.Context(), t.TempDir()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("no socket: %v, want ErrNotRunning", err)
	}
	// A socket that a dead process left behind.
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, SocketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Fetch(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("stale socket: %v, want ErrNotRunning", err)
	}
	l2, err := Listen(dir)
	if err != nil {
		t.Fatalf("a stale socket stands in the way: %v", err)
	}
	_ = l2.Close()
}

// One that accepts and never answers is not waited for beyond the context.
func TestFetch_silentServer(t *testing.T) {
	dir := t.TempDir()
	l, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Fetch(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the context's own error", err)
	}
}

func TestLock_secondOneSaysWho(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("directory %v, %v; want 0700", fi.Mode(), err)
	}
	_, err = Lock(dir)
	if err == nil || !strings.HasPrefix(err.Error(), "another virdeck (pid ") || !strings.HasSuffix(err.Error(), " has the state directory "+dir+"; look at it with: virdeck status") {
		t.Errorf("second: %v", err)
	}
	unlock()
	again, err := Lock(dir)
	if err != nil {
		t.Fatalf("after it was given back: %v", err)
	}
	again()
}

func TestLock_refusesADirectoryThatIsNotOurs(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		open: "state directory " + open + ": group or others may write to it; allowed: mode 0755 or stricter",
		link: "state directory " + link + ": not a directory",
	} {
		if _, err := Lock(dir); err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
