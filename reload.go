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
	e        *engine

	mu  sync.Mutex // one reload at a time
	now *config.Config
}

// reload applies the file as it is now. A bad file changes nothing; the error
// says what is wrong with it. It returns what was done, in a line.
func (r *reloader) reload(by string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.loader.Load(r.path)
	if err != nil {
		r.announceBad(err)
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
	kept := *r.now // what takes effect at the next start only stays as it is
	kept.Hosts, kept.Proxies, kept.Pools, kept.Templates = c.Hosts, c.Proxies, c.Pools, c.Templates
	kept.Controller, kept.Budget, kept.Health = c.Controller, c.Budget, c.Health
	err = r.e.Apply(declared(&kept, r.observer), settings(&kept))
	r.e.health.Reconfigure(hc)
	r.now = &kept
	r.announce(config.Diff(r.now, c))
	said := "nothing has changed"
	if n := len(plan.All()) - len(plan.Restart); n > 0 {
		said = "applied: " + plural(n, "change", "changes")
	}
	if n := len(plan.Restart); n > 0 {
		said += "; " + plural(n, "setting waits", "settings wait") + " for a restart"
	}
	r.log.Info("reloaded", "by", by, "result", said)
	return said, err
}

// look reads the file and says what applying it would do.
func (r *reloader) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.loader.Load(r.path)
	if err != nil {
		r.announceBad(err)
		return
	}
	r.announce(config.Diff(r.now, c))
}

func (r *reloader) announceBad(err error) {
	first, _, more := strings.Cut(err.Error(), "\n")
	if more {
		first += " (and more; see virdeck check)"
	}
	r.e.SetReloadNote(&model.Notice{Level: model.NoticeWarn, Since: time.Now(), Text: "the configuration file is not good, and nothing of it is applied: " + first})
	r.log.Error("configuration", "error", err.Error())
}

// announce tells what the file has that is not applied.
func (r *reloader) announce(c config.Changes) {
	lines := c.Lines()
	if len(lines) == 0 {
		r.e.SetReloadNote(nil)
		return
	}
	text := "the configuration file has " + plural(len(lines), "change that is", "changes that are") + " not applied: " + lines[0]
	if len(lines) > 1 {
		text += fmt.Sprintf(" (and %d more)", len(lines)-1)
	}
	switch {
	case len(c.Restart) == len(lines):
		text += "; at the next start"
	default:
		text += "; reload to apply"
	}
	for _, l := range lines {
		r.log.Info("configuration changed, not applied", "plan", l)
	}
	r.e.SetReloadNote(&model.Notice{Level: model.NoticeInfo, Since: time.Now(), Text: text, Plan: lines})
}

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
