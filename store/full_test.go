package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"virdeck/model"
)

// untilFull writes until the file may not grow any more, which is a full disk
// to everyone above the kernel, and looks at what is left of the store. Run in a
// process of its own, since the limit is one of the process.
func untilFull(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	limit := unix.Rlimit{Cur: 300 << 10, Max: 300 << 10}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	f, err := Open(path, "test", Options{})
	if err != nil {
		return err
	}
	ctx, big := context.Background(), strings.Repeat("x", 5000)
	n := 0
	for ; n < 1000 && err == nil; n++ {
		err = f.Apply(ctx, PutProxy(Proxy{Name: crashName(n), Domain: big}))
	}
	fmt.Println(err)
	if !errors.Is(f.broken, nil) {
		return fmt.Errorf("not to be used any more: %w", f.broken)
	}
	s, err := f.Load(ctx)
	if err != nil || len(s.Proxies) != n-1 {
		return fmt.Errorf("%d proxies, want %d: %w", len(s.Proxies), n-1, err)
	}
	// Room is made, and it goes on.
	for i := range n / 2 {
		if err := f.Apply(ctx, DeleteProxy(crashName(i))); err != nil {
			return err
		}
	}
	if err := f.Apply(ctx, PutProxy(Proxy{Name: "after", Domain: big})); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if f, err = Open(path, "test", Options{}); err != nil {
		return err
	}
	s, err = f.Load(ctx)
	if _, ok := s.Proxies["after"]; err != nil || !ok || len(s.Proxies) != n-1-n/2+1 {
		return fmt.Errorf("%d proxies after the disk was full, %w", len(s.Proxies), err)
	}
	return f.Close()
}

func TestApply_diskFull(t *testing.T) {
	path := at(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"=full", envPath+"="+path)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	got := strings.TrimSpace(string(out))
	if !strings.HasPrefix(got, "store "+path+": nothing was written: ") || !strings.HasSuffix(got, ": file too large") {
		t.Errorf("error %q", got)
	}
}

func TestApply_writeFails(t *testing.T) {
	path := at(t)
	mustClose(t, mustOpen(t, path))
	// bbolt gets a file that cannot be written.
	f, err := Open(path, "test", Options{openFile: func(name string, _ int, mode os.FileMode) (*os.File, error) {
		return os.OpenFile(name, os.O_RDONLY, mode)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // it may be tried again, and locks nobody out
		wantError(t, f.Apply(t.Context(), PinHost(model.HostName(strconv.Itoa(i)), "u")),
			"store "+path+": nothing was written: write "+path+": bad file descriptor")
	}
	if s := mustLoad(t, f); len(s.Hosts) != 0 {
		t.Errorf("hosts %v", s.Hosts)
	}
	mustClose(t, f)
}

func TestHarmless(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&os.PathError{Op: "write", Err: syscall.ENOSPC}, true},
		{errors.New("file resize error: truncate x: no space left on device"), true},
		{&os.PathError{Op: "write", Err: syscall.EIO}, false},
		{syscall.EIO, false},    // of fdatasync
		{syscall.ENOSPC, false}, // the same
		{errors.New("file sync error: sync x: input/output error"), false},
	} {
		if got := harmless(tt.err); got != tt.want {
			t.Errorf("%v: %t", tt.err, got)
		}
	}
}

// The file is cut under a running virdeck: a fault in the mapping.
func TestFile_cutWhileOpen(t *testing.T) {
	path := at(t)
	f := mustOpen(t, path)
	for i := range 100 {
		mustApply(t, f, PutProxy(Proxy{Name: crashName(i), Domain: strings.Repeat("x", 2000)}))
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	want := "store " + path + ": the file has been changed under virdeck: fault: "
	_, err := f.Load(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("error %v", err)
	}
	wantError(t, f.Apply(t.Context(), PinHost("h", "u")), err.Error())
	wantError(t, f.Heartbeat(t.Context(), time.Now()), err.Error())
	mustClose(t, f)
	mustClose(t, f)
}
