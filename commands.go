package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"os/user"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"virdeck/config"
	"virdeck/model"
	"virdeck/rotation"
	"virdeck/ui"
)

// console opens the console with the engine in this process.
func console(ctx context.Context, f flags) error {
	c, err := load(f)
	if err != nil {
		return err
	}
	log, ring, done, err := logs(c, nil)
	if err != nil {
		return err
	}
	defer done()
	slog.SetDefault(log) // whatever a library says must not reach the screen
	who := "operator"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	return withEngine(ctx, c, f, log, func(ctx context.Context, e *engine) error {
		return ui.Run(ctx, ui.Options{Engine: e, Ring: ring, User: who, Demo: f.demo, Background: background(c), ASCII: c.UI.ASCII})
	})
}

func background(c *config.Config) ui.Background {
	switch c.UI.Background {
	case "dark":
		return ui.BackgroundDark
	case "light":
		return ui.BackgroundLight
	}
	return ui.BackgroundAuto
}

// serve runs the engine until a signal ends it.
func serve(ctx context.Context, f flags, stderr io.Writer) error {
	c, err := load(f)
	if err != nil {
		return err
	}
	log, _, done, err := logs(c, stderr)
	if err != nil {
		return err
	}
	defer done()
	return withEngine(ctx, c, f, log, func(ctx context.Context, e *engine) error {
		log.Info("serving", "fleet", c.Fleet.Name, "state_dir", e.dir, "version", version)
		// A hangup is the end of somebody's terminal or a wish to reload, never
		// the end of the fleet.
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
		for {
			select {
			case <-hup:
				if e.reloader == nil {
					log.Warn("hangup: the demo has no configuration to reload")
					continue
				}
				if _, err := e.Submit(model.Command{Verb: model.VerbReload, By: "SIGHUP"}); err != nil {
					log.Error("reload", "error", err.Error())
				}
			case <-ctx.Done():
				log.Info("stopping")
				return nil
			}
		}
	})
}

// stopLimit is how long a stop may take before it is given up as unclean.
const stopLimit = 5 * time.Second

// withEngine takes the state directory, runs the engine and the local API
// beside f, and stops everything when f returns.
func withEngine(ctx context.Context, c *config.Config, fl flags, log *slog.Logger, f func(context.Context, *engine) error) error {
	l, unlock, err := claim(c.Fleet.StateDir)
	switch {
	case err != nil && fl.demo:
		// Nothing is kept and no host is touched: a second demo harms nobody.
		log.Warn("this demo has no socket", "why", err.Error())
	case err != nil:
		return err
	default:
		defer unlock()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k, err := openKept(ctx, c, fl, log)
	if err != nil {
		return closeAfter(err, l)
	}
	defer func() {
		if cerr := k.close(); cerr != nil {
			log.Error("store", "error", cerr.Error())
		}
	}()
	e, err := newEngine(ctx, c, fl, log, k, false)
	if err != nil {
		return closeAfter(err, l)
	}
	for _, w := range c.Warnings() {
		log.Warn("configuration", "warning", w.Error())
	}
	var wg sync.WaitGroup
	wg.Go(func() { e.run(ctx) })
	if e.reloader != nil {
		wg.Go(func() { e.watch(ctx) })
	}
	if l != nil {
		wg.Go(func() {
			if err := rotation.Serve(ctx, l, e); err != nil {
				log.Error("local api ended", "error", err.Error())
			}
		})
	}
	err = f(ctx, e)
	cancel()
	stopped := make(chan struct{})
	go func() {
		wg.Wait()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(stopLimit):
		err = errors.Join(err, fmt.Errorf("not everything stopped within %s", stopLimit))
	}
	return err
}

// closeAfter closes a listener that is not served after all.
func closeAfter(err error, l net.Listener) error {
	if l != nil {
		err = errors.Join(err, l.Close())
	}
	return err
}

// claim takes the state directory and opens the socket in it.
func claim(dir string) (net.Listener, func(), error) {
	unlock, err := rotation.Lock(dir)
	if err != nil {
		return nil, nil, err
	}
	l, err := rotation.Listen(dir)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return l, unlock, nil
}

// check prints what would be managed.
func check(f flags, w io.Writer) error {
	c, err := load(f)
	if err != nil {
		return err
	}
	for _, p := range c.Warnings() {
		if _, err := fmt.Fprintln(w, "warning:", p.Error()); err != nil {
			return err
		}
	}
	d, name := declared(c, true), c.File
	if f.demo {
		name = "the demo"
		s, err := story(f)
		if err != nil {
			return err
		}
		if f.scenario != "" {
			name = f.scenario
		}
		st := s.Build()
		d = demoFleet(st, c, true)
		defer func() { _ = st.Close() }() // in memory
	}
	hosts, proxies := d.Hosts, d.Proxies
	for _, m := range d.Managed {
		m.Domain = "(template " + m.Template + ")"
		proxies = append(proxies, m.ProxySpec)
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintf(tw, "%s is good: fleet %s, %s, %s\n", name, c.Fleet.Name, plural(len(hosts), "host", "hosts"), plural(len(proxies), "proxy", "proxies"))
	for _, h := range hosts {
		_, _ = fmt.Fprintf(tw, "\nhost %s\t%s\tsources %v\n", h.Name, h.URI, h.Sources)
		for _, p := range proxies {
			if p.Host == h.Name {
				_, _ = fmt.Fprintf(tw, "  %s\t%s domain %s\tport %d\tprobe %s\tpool %s\tcredentials %s\n",
					p.Name, p.Backing, p.Domain, p.Port, p.Probe, p.Pool, p.Creds)
			}
		}
	}
	for _, p := range d.Pools {
		_, _ = fmt.Fprintf(tw, "\npool %s\t%s of template %s\tport %d\thosts %v\tsurge %d\tmin_available %d\n",
			p.Name, plural(p.Count, "proxy", "proxies"), p.Template, p.Port, p.Hosts, p.Surge, p.MinAvailable)
	}
	first := true
	for _, p := range proxies {
		if p.Backing != model.BackingExternal {
			continue
		}
		if first {
			_, _ = fmt.Fprint(tw, "\nexternal\n")
			first = false
		}
		_, _ = fmt.Fprintf(tw, "  %s\taddress %s\tport %d\tprobe %s\tpool %s\tcredentials %s\n", p.Name, p.Address, p.Port, p.Probe, p.Pool, p.Creds)
	}
	return tw.Flush()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
