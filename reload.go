package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"virdeck/config"
	"virdeck/controller"
	"virdeck/health"
	"virdeck/model"
)

// reloader applies the configuration file again, when it is asked to. A file
// that has changed is read, checked and announced, and nothing more: what an
// editor has half saved is often a good file.
type reloader struct {
	loader   *config.Loader
	path     string
	observer bool
	log      *slog.Logger
	e        reloaded

	mu   sync.Mutex     // one reload at a time
	now  *config.Config // what was last handed to the engine
	left error          // what of it the engine has not applied
	bad  string         // what is wrong with the file; empty: nothing
}

// reloaded is the engine as a reload sees it.
type reloaded interface {
	Apply(controller.Declared, controller.Settings) error
	Reconfigure(health.Config)
	SetReloadNote(*model.Notice)
}

var _ reloaded = (*engine)(nil)

// reload applies the file as it is now. A bad file changes nothing; the error
// says what is wrong with it. It returns what was done, in a line. What the engine
// could not apply is an error too, and is tried again by the next reload, whether
// the file is another by then or not.
func (r *reloader) reload(by string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.read()
	if err != nil {
		r.log.Error("not reloaded, nothing is changed", "by", by, "error", err.Error())
		return "", fmt.Errorf("nothing is changed: %w", err)
	}
	plan := config.Diff(r.now, c)
	for _, line := range plan.Lines() {
		r.log.Info("reload", "by", by, "plan", line)
	}
	hc, err := healthConfig(c, c.Health.Targets)
	if err != nil {
		return "", err
	}
	again := r.left != nil
	r.now = config.Applied(r.now, c)
	r.left = r.e.Apply(declared(r.now, r.observer), settings(r.now))
	r.e.Reconfigure(hc)
	r.announce(config.Diff(r.now, c))
	if r.left != nil {
		r.log.Error("reload", "by", by, "error", r.left.Error())
		return "", fmt.Errorf("not all of it is applied, reload again: %w", r.left)
	}
	said := "nothing has changed"
	switch n := len(plan.All()) - len(plan.Restart); {
	case n > 0:
		said = "applied: " + plural(n, "change", "changes")
	case again:
		said = "applied: what the last reload had left"
	}
	if n := len(plan.Restart); n > 0 {
		said += "; " + plural(n, "setting waits", "settings wait") + " for a restart"
	}
	r.log.Info("reloaded", "by", by, "result", said)
	return said, nil
}

// look reads the file and says what applying it would do.
func (r *reloader) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, err := r.read(); err == nil {
		r.announce(config.Diff(r.now, c))
	}
}

// read reads the file, and tells when it has become bad or good.
func (r *reloader) read() (*config.Config, error) {
	c, err := r.loader.Load(r.path)
	switch {
	case err != nil:
		first, _, more := strings.Cut(err.Error(), "\n")
		if more {
			first += " (and more; see virdeck check)"
		}
		r.note(model.NoticeWarn, "the configuration file is not good, and nothing of it is applied: "+first, nil)
		if r.bad != err.Error() {
			r.bad = err.Error()
			r.log.Error("configuration", "error", r.bad)
		}
	case r.bad != "":
		r.bad = ""
		r.log.Info("the configuration file is good again")
	}
	return c, err
}

// announce tells what the file has that is not applied.
func (r *reloader) announce(c config.Changes) {
	lines := c.Lines()
	for _, l := range lines {
		r.log.Info("configuration changed, not applied", "plan", l)
	}
	if r.left != nil {
		r.note(model.NoticeWarn, "the configuration file is not applied yet: "+oneLine(r.left)+"; reload again", lines)
		return
	}
	if len(lines) == 0 {
		r.e.SetReloadNote(nil)
		return
	}
	text := "the configuration file has " + plural(len(lines), "change that is", "changes that are") + " not applied: " + lines[0]
	if len(lines) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(lines)-1)
	}
	if len(c.Restart) == len(lines) {
		text += "; at the next start"
	} else {
		text += "; reload to apply"
	}
	r.note(model.NoticeInfo, text, lines)
}

func (r *reloader) note(l model.NoticeLevel, text string, plan []string) {
	r.e.SetReloadNote(&model.Notice{Level: l, Since: time.Now(), Text: text, Plan: plan})
}

// oneLine is an error that may be several, each a line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// settleTime is how long a file must be at rest before it is read.
const settleTime = 500 * time.Millisecond

// watch looks at the file whenever it changes, until ctx ends. It watches the
// directory, since editors replace files. Where it cannot watch, it says so, and
// reloading by hand works as before.
func (r *reloader) watch(ctx context.Context) {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer func() { _ = w.Close() }() // nothing was written
		err = w.Add(filepath.Dir(r.path))
	}
	if err != nil {
		r.log.Warn("the configuration file is not watched", "error", err.Error())
		return
	}
	t := time.NewTimer(0) // it may have changed since it was loaded
	for {
		select {
		case <-ctx.Done():
			return
		case ev, ok := <-w.Events:
			if !ok {
				return
			}
			if filepath.Base(ev.Name) == filepath.Base(r.path) && !ev.Has(fsnotify.Chmod) {
				t.Reset(settleTime)
			}
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			if errors.Is(err, fsnotify.ErrEventOverflow) {
				t.Reset(settleTime)
			}
		case <-t.C:
			r.look()
		}
	}
}
