package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	xterm "github.com/charmbracelet/x/term"
)

// How long Run waits for the program to put the terminal back after it was
// asked to end. A terminal that takes no output (a hung connection, a stopped
// pager) must not keep the process alive.
const quitGrace = 2 * time.Second

// Run shows the console on the process's terminal until the operator quits, ctx
// ends, the terminal goes away, or the process is asked to end (SIGHUP, SIGINT,
// SIGTERM). All of these are clean ends: the terminal is put back and the error is
// nil. A panic puts the terminal back too and is returned as an error.
//
// Nothing else may write to the terminal while Run runs.
func Run(ctx context.Context, opts Options) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	in := os.Stdin
	if !xterm.IsTerminal(in.Fd()) {
		tty, _, err := tea.OpenTTY()
		if err != nil {
			return fmt.Errorf("console: %w", err)
		}
		in = tty
	}
	return runOn(ctx, opts, os.Environ(), in, os.Stdout)
}

// runOn is Run on a terminal.
func runOn(ctx context.Context, opts Options, env []string, in, out *os.File) error {
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	p := tea.NewProgram(New(opts), append(programOptions(env), tea.WithInput(keyboard{in, gone}), tea.WithOutput(out))...)
	return runProgram(ctx, p, quitGrace)
}

// keyboard is the terminal that keys come from. It tells when nothing comes any
// more: the library takes that for a pause, and SIGHUP goes to a terminal's own
// session alone, and not to those in it who were started with it ignored.
type keyboard struct {
	*os.File
	gone func()
}

func (k keyboard) Read(b []byte) (int, error) {
	n, err := k.File.Read(b)
	if err != nil {
		k.gone()
	}
	return n, err
}

// programOptions are those of a program in a terminal with this environment. Any
// value of NO_COLOR but the empty one turns colours off (no-color.org); the
// library takes only those that read as true.
func programOptions(env []string) []tea.ProgramOption {
	out := []tea.ProgramOption{tea.WithoutSignalHandler(), tea.WithEnvironment(env)}
	if noColor(env) {
		out = append(out, tea.WithColorProfile(colorprofile.ASCII))
	}
	return out
}

func noColor(env []string) bool {
	return slices.ContainsFunc(env, func(e string) bool {
		v, ok := strings.CutPrefix(e, "NO_COLOR=")
		return ok && v != ""
	})
}

// runProgram runs p until it ends by itself or ctx does.
func runProgram(ctx context.Context, p *tea.Program, grace time.Duration) error {
	done := make(chan error, 1)
	go func() {
		_, err := p.Run()
		done <- err
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		// Quit waits for the program's loop, which may wait for the terminal.
		go p.Quit()
		select {
		case err = <-done:
		case <-time.After(grace):
			return nil
		}
	}
	if err == nil || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(err, tea.ErrProgramPanic) {
		return nil // the terminal went away under the last frame
	}
	return fmt.Errorf("console: %w", err)
}
