package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"virdeck/config"
	"virdeck/model"
	"virdeck/rotation"
	"virdeck/ui"
)

// fetchLimit is how long a running virdeck may take to answer.
const fetchLimit = 3 * time.Second

// lookLimit is how long a status of our own looks at the hosts.
const lookLimit = 6 * time.Second

// status prints one snapshot: of the running virdeck, or of a short look of our
// own that writes to no host.
func status(ctx context.Context, f flags, asJSON bool, w, stderr io.Writer) error {
	st, err := current(ctx, f, stderr)
	if err != nil {
		return err
	}
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(st)
	}
	return printStatus(w, st)
}

// current is what the running virdeck knows, or with none running, what a look of
// our own has found. The running one is asked first: it answers, whatever has
// become of the configuration file since it was started. stderr gets what is to be
// said beside the answer.
func current(ctx context.Context, f flags, stderr io.Writer) (model.Status, error) {
	if dir, err := stateDir(f); err == nil {
		fctx, cancel := context.WithTimeout(ctx, fetchLimit)
		defer cancel()
		st, err := rotation.Fetch(fctx, dir)
		switch {
		case err == nil:
			beside(f, stderr)
			return st, nil
		case !errors.Is(err, rotation.ErrNotRunning):
			return st, err
		}
	}
	c, err := load(f)
	if err != nil {
		return model.Status{}, err
	}
	return look(ctx, c, f)
}

// beside says in what an answer of the running virdeck is not what was asked for.
func beside(f flags, stderr io.Writer) {
	if f.scenario != "" {
		say(stderr, "virdeck: this is what the running demo says; "+f.scenario+" is not played")
	}
	if _, err := load(f); err != nil {
		say(stderr, "virdeck: this is what the running virdeck says; the configuration file is not good:")
		say(stderr, err)
	}
}

// look runs an engine that only observes until every proxy has been read and
// probed, or time is up.
func look(ctx context.Context, c *config.Config, f flags) (model.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	k, err := peek(ctx, c, f)
	if err != nil {
		return model.Status{}, err
	}
	e, err := newEngine(ctx, c, f, slog.New(slog.DiscardHandler), k, true)
	if err != nil {
		return model.Status{}, err
	}
	done := make(chan struct{})
	go func() {
		e.run(ctx)
		close(done)
	}()
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for !settled(e.Snapshot()) && ctx.Err() == nil {
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	st := model.NewStatus(e.Snapshot())
	st.Observer = true
	cancel()
	<-done
	return st, nil
}

// settled reports whether a first look has nothing more to learn soon.
func settled(s *model.Snapshot) bool {
	if s.Pools == nil {
		return false // the fleet has not been looked over yet
	}
	for _, h := range s.Hosts {
		if !h.External && (h.Link.State == model.LinkConnecting && h.Link.LastError == "" || h.Link.State == model.LinkUp && h.LastGood.IsZero()) {
			return false // its first answer is on its way
		}
		for _, p := range h.Proxies {
			switch p.State {
			case model.StateUnproven:
				if p.Health.Fails < p.Health.Fall {
					return false
				}
			case model.StatePending:
				if p.LastRead.IsZero() && !h.External {
					return false
				}
			default:
			}
		}
	}
	return true
}

func printStatus(w io.Writer, st model.Status) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	hosts := 0
	for _, h := range st.Hosts {
		if h.Link != nil { // the group of external proxies is none
			hosts++
		}
	}
	_, _ = fmt.Fprintf(tw, "fleet %s, %s, %s, at %s\n", ui.Clean(st.Fleet), plural(hosts, "host", "hosts"), plural(len(st.Proxies), "proxy", "proxies"), st.At.Local().Format(time.DateTime))
	for _, n := range st.Notices {
		_, _ = fmt.Fprintln(tw, "!", ui.Clean(n))
	}
	for _, p := range st.Pools {
		_, _ = fmt.Fprintf(tw, "pool %s\t%d declared\t%d there\t%d in rotation\n", ui.Clean(p.Name), p.Declared, p.Members, p.InRotation)
	}
	if n := len(st.Plan); n > 0 {
		_, _ = fmt.Fprintf(tw, "plan: %s; see virdeck plan\n", plural(n, "thing to do or to wait for", "things to do or to wait for"))
	}
	for _, h := range st.Hosts {
		if h.Link == nil {
			_, _ = fmt.Fprintf(tw, "\n%s\n", ui.Clean(h.Name))
		} else {
			_, _ = fmt.Fprintf(tw, "\n%s\tlink %s\tgeneration %d\t%s\n", ui.Clean(h.Name), h.Link.State, h.Link.Generation, ui.Clean(h.Link.Error))
		}
		for _, p := range st.Proxies {
			if p.Host != h.Name {
				continue
			}
			in := "out"
			if p.Rotation.In {
				in = "in"
			}
			_, _ = fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t%s\n", ui.Clean(p.Name), ui.Clean(p.State), orDash(ui.Clean(p.IP)), in, ui.Clean(p.Reason))
		}
	}
	return tw.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
