//go:build lab

package e2e

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// terminal is a real terminal of a given size, with a shell in it: a tmux server
// of its own.
type terminal struct {
	t          *testing.T
	socket     string
	cols, rows int
	close      func() // ends it; once
}

func newTerminal(t *testing.T, cols, rows int) *terminal {
	t.Helper()
	term := &terminal{t: t, socket: fmt.Sprintf("%s/tmux-%d", shortDir(t), cols), cols: cols, rows: rows}
	term.tmux("-f", "/dev/null", "new-session", "-d", "-s", "lab", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows),
		"env", "LC_ALL=C.UTF-8", "PS1=$ ", "TERM=tmux-256color", "bash", "--norc", "--noprofile")
	term.close = sync.OnceFunc(func() {
		if t.Failed() {
			t.Logf("%dx%d at the end:\n%s", cols, rows, term.screen())
		}
		term.tmux("kill-server")
	})
	t.Cleanup(term.close)
	term.await(5*time.Second, `\$ *$`)
	return term
}

func (m *terminal) tmux(args ...string) string {
	m.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-u", "-S", m.socket}, args...)...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// run types a command line into the shell.
func (m *terminal) run(line string) {
	m.t.Helper()
	m.tmux("send-keys", "-l", line)
	m.keys("Enter")
}

// keys presses keys, by tmux's names.
func (m *terminal) keys(names ...string) {
	m.t.Helper()
	m.tmux(append([]string{"send-keys"}, names...)...)
}

// screen is what is on the screen, without trailing blanks.
func (m *terminal) screen() string {
	m.t.Helper()
	return strings.TrimRight(m.tmux("capture-pane", "-p"), "\n ")
}

func (m *terminal) mode(name string) string {
	m.t.Helper()
	return strings.TrimSpace(m.tmux("display-message", "-p", "#{"+name+"}"))
}

// await wants each of the patterns somewhere on one screen.
func (m *terminal) await(within time.Duration, patterns ...string) {
	m.t.Helper()
	deadline := time.Now().Add(within)
	for {
		screen, missing := m.screen(), ""
		for _, p := range patterns {
			if !regexp.MustCompile(`(?m)` + p).MatchString(screen) {
				missing = p
				break
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("%dx%d: no %q on the screen within %v:\n%s", m.cols, m.rows, missing, within, screen)
		}
		pause(m.t, 100*time.Millisecond)
	}
}

// quit presses q and wants the terminal back as it was.
func (m *terminal) quit() {
	m.t.Helper()
	m.keys("q")
	m.await(5*time.Second, `\$ *$`)
	for _, mode := range []string{"alternate_on", "mouse_any_flag", "keypad_cursor_flag", "keypad_flag"} {
		if got := m.mode(mode); got != "0" {
			m.t.Errorf("%dx%d: after q %s is %s", m.cols, m.rows, mode, got)
		}
	}
	if got := m.mode("cursor_flag"); got != "1" {
		m.t.Errorf("%dx%d: after q the cursor is hidden", m.cols, m.rows)
	}
	m.run("echo exit=$?; stty -a | tr ' ' '\\n' | grep -xE -- '-?(icanon|echo|isig);?' | tr '\\n' ' '; echo END")
	m.await(5*time.Second, `^exit=0$`, `^isig icanon echo END$`)
}

// frame wants a whole frame, down to the last row, which has keys or an answer.
func (m *terminal) frame() {
	m.t.Helper()
	lines := strings.Split(m.screen(), "\n")
	if len(lines) != m.rows {
		m.t.Errorf("%dx%d: the frame has %d rows:\n%s", m.cols, m.rows, len(lines), strings.Join(lines, "\n"))
	}
}
