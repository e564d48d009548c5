//go:build lab

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"virdeck/model"
)

// settings are what a test changes in the configuration.
type settings struct {
	h2   string // more lines in the second host's table
	more string // more tables
}

// configure writes a configuration for the lab with a state directory of its
// own, and returns its path. The defaults stay: they are what is promised.
func configure(t *testing.T, s settings) string {
	t.Helper()
	state, err := os.ReadFile("/run/vlab/state")
	if err != nil {
		t.Fatal(err)
	}
	dir := shortDir(t)
	var b strings.Builder
	fmt.Fprintf(&b, "[fleet]\nname = \"lab\"\nstate_dir = %q\n", filepath.Join(dir, "state"))
	fmt.Fprintf(&b, "[log]\nlevel = \"debug\"\nfile = %q\n", filepath.Join(dir, "virdeck.log"))
	fmt.Fprintf(&b, "[[health.target]]\nurl = %q\necho_ip = true\n", target)
	fmt.Fprintf(&b, "[[host]]\nname = \"h1\"\nuri = \"qemu:///system?socket=%s/h1/run/libvirt-sock\"\n", strings.TrimSpace(string(state)))
	fmt.Fprintf(&b, "[[host]]\nname = \"h2\"\nuri = \"qemu+tcp://10.77.2.2/system\"\n%s\n", s.h2)
	for _, name := range all() {
		fmt.Fprintf(&b, "[[proxy]]\nname = %q\nhost = %q\nport = 3128\n", name, hostOf(name))
	}
	b.WriteString(s.more)
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// engine is a running virdeck under watch.
type engine struct {
	t       *testing.T
	start   time.Time
	signal  func(os.Signal) error // to the process; nil where it is not ours
	end     func()                // ends the process, which must do so cleanly; once
	kill    func()                // SIGKILL; nil where it is not ours
	unwatch func()                // ends the watch
	*Timeline
}

// serve starts `virdeck serve`, which must end cleanly: by end, or when the test
// does.
func serve(t *testing.T, config string, flags ...string) *engine {
	t.Helper()
	cmd := exec.Command(binary(), append([]string{"serve", "-c", config}, flags...)...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	e := &engine{t: t, start: start, signal: cmd.Process.Signal, unwatch: func() {}}
	var once sync.Once
	e.end = func() {
		once.Do(func() {
			e.unwatch()
			terminate(t, cmd, ended, &out)
		})
	}
	e.kill = func() {
		once.Do(func() {
			e.unwatch()
			if err := cmd.Process.Kill(); err != nil {
				t.Errorf("virdeck serve was gone before it was killed: %v\n%s", err, out.String())
			}
			if err := <-ended; err == nil {
				t.Error("virdeck serve ended well, and was to be killed")
			}
		})
	}
	t.Cleanup(e.end)
	e.watch(config)
	return e
}

func terminate(t *testing.T, cmd *exec.Cmd, ended chan error, out fmt.Stringer) {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("virdeck serve was gone before its end: %v\n%s", err, out)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("virdeck serve ended with %v:\n%s", err, out)
		}
	case <-time.After(5 * time.Second):
		t.Error("virdeck serve did not end within 5 s of SIGTERM")
		_ = cmd.Process.Kill() // it may have ended just now
		t.Logf("it was killed: %v", <-ended)
	}
}

// watch is an engine for a virdeck that somebody else runs.
func watch(t *testing.T, config string, start time.Time) *engine {
	t.Helper()
	e := &engine{t: t, start: start}
	e.watch(config)
	return e
}

// watch samples the virdeck that runs with the configuration, five times a
// second, until the test ends or unwatch is called. At the test's end it tells
// what it saw, if the test failed or LAB_STORY is set. It waits for the socket
// first, to be answered: with none running, `virdeck status` would have a look of
// its own, and what is there may be left from one that was killed.
func (e *engine) watch(config string) {
	t := e.t
	t.Helper()
	e.Timeline = NewTimeline()
	socket := filepath.Join(filepath.Dir(config), "state", "virdeck.sock")
	for deadline := time.After(5 * time.Second); ; {
		if c, err := net.Dial("unix", socket); err == nil {
			_ = c.Close() // it was only tried
			break
		}
		select {
		case <-deadline:
			t.Fatalf("nobody answers on the socket %s after 5 s", socket)
		case <-time.After(20 * time.Millisecond):
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			s, err := look(ctx, config)
			if ctx.Err() != nil {
				return
			}
			e.Add(Sample{At: time.Now(), Status: s, Err: err})
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	e.unwatch = func() {
		cancel()
		<-done
	}
	t.Cleanup(func() {
		e.unwatch()
		if t.Failed() || os.Getenv("LAB_STORY") != "" {
			t.Logf("what was seen:\n%s", e.Story(e.start))
			if log, err := os.ReadFile(filepath.Join(filepath.Dir(config), "virdeck.log")); err == nil {
				t.Logf("the end of the log:\n%s", log[max(0, len(log)-8000):])
			}
		}
	})
}

// look is one `virdeck status --json` of the running one, held to the schema.
func look(ctx context.Context, config string) (*model.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(), "status", "--json", "-c", config)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("virdeck status: %w: %s", err, errOut.String())
	}
	var s model.Status
	d := json.NewDecoder(strings.NewReader(out.String()))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("virdeck status: %w", err)
	}
	switch {
	case s.Version != model.StatusVersion:
		return nil, fmt.Errorf("virdeck status has version %d", s.Version)
	case s.Observer:
		return nil, errors.New("virdeck status had a look of its own")
	}
	return &s, nil
}

// await wants the condition within the time from the instant on, and ends the
// test otherwise.
func (e *engine) await(from time.Time, within time.Duration, what string, c Condition) time.Time {
	e.t.Helper()
	at, err := e.Await(e.t.Context(), from, within, c)
	if err != nil {
		e.t.Fatalf("%s, within %v: %v", what, within, err)
	}
	e.t.Logf("%s: after %.1f s (at most %v)", what, at.Sub(from).Seconds(), within)
	return at
}

// always wants the condition in every sample from the instant until now.
func (e *engine) always(from time.Time, what string, c Condition) {
	e.t.Helper()
	if err := e.Always(from, time.Now(), c); err != nil {
		e.t.Errorf("%s, always: %v", what, err)
	}
}

// ever wants the condition in some sample from the instant until now.
func (e *engine) ever(from time.Time, what string, c Condition) {
	e.t.Helper()
	if _, err := e.Ever(from, time.Now(), c); err != nil {
		e.t.Errorf("%s, at some time: %v", what, err)
	}
}

// ready waits for the whole fleet after the start.
func (e *engine) ready(names ...string) {
	e.t.Helper()
	e.await(e.start, 30*time.Second, "all ready", All(Ready(names...), InRotation(names...)))
}
