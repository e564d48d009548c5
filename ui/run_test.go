package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/vt"
	"go.uber.org/goleak"

	"virdeck/model"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The library's reader sends keys without looking whether the program
		// still runs: one that ends with keys unread leaves its reader behind.
		goleak.IgnoreTopFunction("github.com/charmbracelet/ultraviolet.(*TerminalReader).sendEvents"))
}

// terminal is a terminal in the process with a program on it: both ends of the
// line, so that queries are answered as on a real one.
type terminal struct {
	mu      sync.Mutex
	em      *vt.Emulator
	raw     bytes.Buffer  // every byte written, for what a screen cannot show
	stalled chan struct{} // closed when output is to be taken again; nil: not stalled
	changed chan struct{}
	prog    *tea.Program
	done    chan error
	cancel  context.CancelFunc
}

func (t *terminal) Read(b []byte) (int, error) { return t.em.Read(b) }

// Write takes one frame; a terminal that is no tty needs the carriage returns.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	stalled := t.stalled
	t.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.raw.Write(b)
	_, err := t.em.Write(bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")))
	select {
	case t.changed <- struct{}{}:
	default:
	}
	return len(b), err
}

func (t *terminal) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return shown(t.em)
}

func (t *terminal) written() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.raw.String()
}

// start runs a console on a terminal of w times h cells.
func start(t *testing.T, opts Options, w, h int) *terminal {
	t.Helper()
	tm := &terminal{em: vt.NewEmulator(w, h), changed: make(chan struct{}, 1), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	tm.cancel = cancel
	tm.prog = tea.NewProgram(New(opts), tea.WithInput(tm), tea.WithOutput(tm), tea.WithWindowSize(w, h), tea.WithoutSignalHandler(),
		tea.WithColorProfile(colorprofile.TrueColor), tea.WithEnvironment([]string{"TERM=xterm-256color"}), tea.WithFPS(120))
	go func() { tm.done <- runProgram(ctx, tm.prog, 300*time.Millisecond) }()
	t.Cleanup(func() {
		cancel()
		if c, ok := tm.em.InputPipe().(io.Closer); ok {
			_ = c.Close() // ends the reader that the program leaves behind
		}
	})
	return tm
}

// wait waits until the screen has all words.
func (t *terminal) wait(tb testing.TB, words ...string) {
	tb.Helper()
	limit := time.After(10 * time.Second)
	for lineOf(t.text(), words...) < 0 {
		select {
		case <-t.changed:
		case <-limit:
			tb.Fatalf("no %q in\n%s", words, t.text())
		}
	}
}

func (t *terminal) end(tb testing.TB) error {
	tb.Helper()
	select {
	case err := <-t.done:
		return err
	case <-time.After(10 * time.Second):
		tb.Fatal("the console did not end")
		return nil
	}
}

func TestProgramShowsMovesAndQuits(t *testing.T) {
	eng := &fakeEngine{snap: fleet()}
	tm := start(t, Options{Engine: eng, Ring: crafted(), User: "alice", Now: clock}, 120, 30)
	tm.wait(t, "> p-04", "demoted")
	tm.em.SendText("j")
	tm.wait(t, "> p-05", "unproven")
	tm.em.SendText("r")
	tm.wait(t, "reconcile p-05: asked")
	eng.finish(model.OpDone, "agent names 10.0.0.25")
	tm.wait(t, "reconcile p-05: agent names 10.0.0.25")
	tm.em.SendText("2c")
	tm.wait(t, "reconnect kvm2: asked")
	golden(t, "program-120x30.txt", tm.text())
	tm.em.SendText("q")
	if err := tm.end(t); err != nil {
		t.Fatal(err)
	}
	if w := tm.written(); !strings.Contains(w, "\x1b[?1049h") || !strings.HasSuffix(strings.TrimRight(w, "\r\n"), "h") && !strings.Contains(w, "\x1b[?1049l") {
		t.Errorf("the alternate screen was not left: %q", w[max(0, len(w)-80):])
	}
}

// Two ticks without a change write no byte; with a clock that stands, nothing
// ever is written.
func TestUX22_idleWritesNoByte(t *testing.T) {
	tm := start(t, Options{Engine: &fakeEngine{snap: fleet()}, Ring: crafted(), Now: clock}, 120, 30)
	tm.wait(t, "> p-04", "demoted")
	tm.em.SendText("j")
	tm.wait(t, "> p-05")
	settled := len(tm.written())
	for range 20 { // what the start still had to say
		select {
		case <-tm.changed:
			settled = len(tm.written())
		case <-time.After(100 * time.Millisecond):
		}
	}
	if n := len(tm.written()) - settled; n != 0 {
		t.Errorf("%d bytes while nothing changed: %q", n, tm.written()[settled:])
	}
	tm.cancel()
	if err := tm.end(t); err != nil {
		t.Error(err)
	}
}

// The end of the context is a clean end: the terminal is put back.
func TestProgramEndsWithItsContext(t *testing.T) {
	tm := start(t, Options{Engine: &fakeEngine{snap: fleet()}, Now: clock}, 80, 24)
	tm.wait(t, "> p-04")
	tm.cancel()
	if err := tm.end(t); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(tm.written(), "\x1b[?1049l") {
		t.Error("the alternate screen was not left")
	}
}

// A terminal that takes no output delays neither the engine nor the end.
func TestStalledTerminalDelaysNobody(t *testing.T) {
	eng := &fakeEngine{snap: fleet()}
	tm := start(t, Options{Engine: eng, Now: clock}, 80, 24)
	tm.wait(t, "> p-04")
	release := make(chan struct{})
	tm.mu.Lock()
	tm.stalled = release
	tm.mu.Unlock()
	tm.em.SendText("jjj")
	published := make(chan struct{})
	go func() {
		defer close(published)
		for range 200 {
			eng.publish(func(s *model.Snapshot) { s.Fleet += "x" })
			_, _ = eng.Submit(model.Command{}) // this engine refuses nothing
		}
	}()
	select {
	case <-published:
	case <-time.After(5 * time.Second):
		t.Error("the engine waits for a terminal")
	}
	tm.cancel()
	if err := tm.end(t); err != nil {
		t.Error(err)
	}
	close(release)
	tm.prog.Wait()
}

func TestNoColor(t *testing.T) {
	for env, want := range map[string]bool{"NO_COLOR=1": true, "NO_COLOR=yes": true, "NO_COLOR=0": true, "NO_COLOR=": false, "COLOR=1": false} {
		if got := noColor([]string{"TERM=xterm", env}); got != want {
			t.Errorf("%s: %v", env, got)
		}
	}
}

type panicking struct{ fakeEngine }

func (*panicking) Submit(model.Command) (model.OpID, error) { panic("broken engine") }

// A panic puts the terminal back and is an error.
func TestPanicRestoresTheTerminal(t *testing.T) {
	tm := start(t, Options{Engine: &panicking{fakeEngine{snap: fleet()}}, Now: clock}, 80, 24)
	tm.wait(t, "> p-04")
	tm.em.SendText("r")
	if err := tm.end(t); !errors.Is(err, tea.ErrProgramPanic) {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(tm.written(), "\x1b[?1049l") {
		t.Error("the alternate screen was not left")
	}
}

// Ten thousand rows cost what fifty do: the same number of allocations for a
// cursor key and a frame.
func TestTenThousandRowsCostWhatFiftyDo(t *testing.T) {
	cost := func(n int) float64 {
		c := newConsole(t, big(n), 120, 40)
		c.press("G")
		return testing.AllocsPerRun(20, func() {
			c.Update(keyPress("k"))
			c.View()
		})
	}
	few, many := cost(50), cost(10_000)
	if many > few*1.3 {
		t.Errorf("%.0f allocations with 10,000 rows, %.0f with 50", many, few)
	}
}
