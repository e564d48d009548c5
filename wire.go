package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"virdeck/config"
	"virdeck/controller"
	"virdeck/health"
	"virdeck/logbuf"
	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt"
	"virdeck/provider/libvirt/simhost/demo"
	"virdeck/provider/libvirt/simhost/scenario"
)

func placesText() string { return strings.Join(config.Places(os.Getenv), ", ") }

// load reads the configuration that the flags name.
func load(f flags) (*config.Config, error) {
	if f.demo {
		c := config.Default()
		c.Fleet.Name, c.Fleet.StateDir = "demo", demoDir()
		return c, nil
	}
	path, err := file(f)
	if err != nil {
		return nil, err
	}
	return loader().Load(path)
}

// stateDir is where the engine of the configuration that the flags name would be;
// that it is known does not mean that the configuration is good.
func stateDir(f flags) (string, error) {
	if f.demo {
		return demoDir(), nil
	}
	path, err := file(f)
	if err != nil {
		return "", err
	}
	return loader().StateDir(path)
}

// demoDir is the demo's own: nothing of it is kept, so it leaves the real state
// directory alone.
func demoDir() string {
	return filepath.Join(os.TempDir(), "virdeck-demo-"+strconv.Itoa(os.Getuid()))
}

// file is the configuration file that the flags name, or one of the usual ones.
func file(f flags) (string, error) {
	if f.scenario != "" {
		return "", usageError{errors.New("--scenario goes with --demo")}
	}
	path, err := config.Find(f.config, nil, nil)
	if errors.Is(err, config.ErrNoConfig) {
		return "", usageError{fmt.Errorf("no configuration file; looked for %s.\n"+
			"Try virdeck --demo for a fleet of simulated hosts, or copy config.toml.example and name it with -c", placesText())}
	}
	return path, err
}

// loader reads configurations; one that is held remembers the hashes of base
// images.
func loader() *config.Loader { return &config.Loader{CheckTexts: libvirt.CheckTexts} }

// story is the scenario that the demo plays.
func story(f flags) (*scenario.Scenario, error) {
	if f.scenario == "" {
		return demo.Story(), nil
	}
	return scenario.Load(f.scenario, demo.Story())
}

// engine is a controller with everything that hangs on it.
type engine struct {
	*controller.Controller
	health    *health.Engine
	demo      *demo.Fleet // nil without --demo
	dir       string
	*reloader // nil in the demo
}

// newEngine builds the engine on what is kept; observer makes one that writes to
// no host.
func newEngine(ctx context.Context, c *config.Config, f flags, log *slog.Logger, k kept, observer bool) (*engine, error) {
	e := &engine{dir: c.Fleet.StateDir}
	var d net.Dialer
	hd := health.Deps{Dial: d.DialContext, Control: d.DialContext}
	set := settings(c)
	set.Version, set.Demo, set.Observer, set.Takeover, set.DryRun = version, f.demo, observer, f.takeover, f.dryRun
	deps := controller.Deps{Log: log, State: k.state, Store: k.store, Audit: k.audit}
	targets := c.Health.Targets
	if f.demo {
		s, err := story(f)
		if err != nil {
			return nil, err
		}
		e.demo = demo.New(ctx, demo.Options{Scenario: s, Log: log})
		hd.Dial, hd.Control = e.demo.DialProxy, e.demo.DialOrigin
		targets = []config.Target{{URL: e.demo.OriginURL(), Status: []int{200}, EchoIP: true}}
		deps.Declared = demoFleet(e.demo.Stage, c, observer)
	} else {
		deps.Declared = declared(c, observer)
		r := &reloader{e: e, loader: loader(), path: c.File, now: c, observer: observer, log: log}
		deps.Reload = r.reload
		e.reloader = r
	}
	hc, err := healthConfig(c, targets)
	if err != nil {
		return nil, err
	}
	deps.Health = func(dirty func(health.Key)) controller.Health {
		hd.Dirty = dirty
		e.health = health.New(hc, hd)
		return e.health
	}
	e.Controller = controller.New(set, deps)
	return e, nil
}

// settings are the controller's part of a configuration.
func settings(c *config.Config) controller.Settings {
	cc := &c.Controller
	return controller.Settings{
		Fleet: c.Fleet.Name, Poll: cc.Poll, AddressRefresh: cc.AddressRefresh, AddressRetry: cc.AddressRetry,
		AddressHold: cc.AddressHold, Budget: cc.ReconcileBudget, Workers: cc.WorkersPerHost,
		Writes: cc.CreatesPerHost, CreateTimeout: cc.CreateTimeout, DeleteTimeout: cc.DeleteTimeout,
		OrphanGrace: cc.OrphanGrace, ReplaceAfter: cc.ReplaceAfter, LeaveStopped: !cc.StartStopped,
		ProbeInterval: c.Health.Interval, ProbeTimeout: c.Health.Timeout,
	}
}

// healthConfig is the health engine's part of a configuration.
func healthConfig(c *config.Config, targets []config.Target) (health.Config, error) {
	hc := health.Config{
		Interval: c.Health.Interval, Fast: c.Health.Fast, Slow: c.Health.Slow, SlowAfter: c.Health.SlowAfter,
		Timeout: c.Health.Timeout, Rise: c.Health.Rise, Fall: c.Health.Fall, Brake: c.Health.Brake, Control: c.Health.Control,
	}
	for _, t := range targets {
		u, err := health.ParseTarget(t.URL)
		if err != nil {
			return hc, usageError{err}
		}
		hc.Targets = append(hc.Targets, health.Target{URL: u, Status: t.Status, Body: t.Body, EchoIP: t.EchoIP})
	}
	return hc, nil
}

// Reconfigure has the health engine probe as hc says.
func (e *engine) Reconfigure(hc health.Config) { e.health.Reconfigure(hc) }

// run runs the engine until ctx ends and everything of it has.
func (e *engine) run(ctx context.Context) {
	e.Run(ctx)
	e.health.Close()
	if e.demo != nil {
		_ = e.demo.Close() // in memory: nothing can be lost
	}
}

func linkOptions(c *config.Config, name string) libvirt.LinkOptions {
	l := c.Link
	return libvirt.LinkOptions{
		Host: model.HostName(name), Slots: l.Slots, Ping: l.Ping, Silence: l.Silence, SecondOpinion: l.SecondOpinion,
		DialTimeout: l.DialTimeout, BackoffMin: l.BackoffMin, BackoffMax: l.BackoffMax, BackoffLate: l.BackoffMaxLate,
	}
}

// open returns the function that starts a host's provider.
func open(o libvirt.Options, observer bool) func(func(provider.Event), func(model.LinkStatus)) provider.Host {
	return func(onEvent func(provider.Event), onLink func(model.LinkStatus)) provider.Host {
		o.OnEvent, o.Link.OnChange = onEvent, onLink
		if observer {
			o.AgentTimeout = 0
		}
		return libvirt.New(o)
	}
}

// declared turns a configuration into the fleet that the controller is to have.
func declared(c *config.Config, observer bool) controller.Declared {
	d := controller.Declared{
		Managed: c.ManagedProxies(), Pools: c.PoolSpecs(), Templates: c.TemplatesByName(),
		Budget: controller.Budget{PerHost: c.Budget.PerHost, PerPool: c.Budget.PerPool, Window: c.Budget.Window},
	}
	for _, h := range c.Hosts {
		o := libvirt.Options{Link: linkOptions(c, h.Name)}
		ep := endpoint(h.Endpoint)
		o.Link.Dial, o.Link.Endpoint = ep.Dialer(), ep.String()
		if h.Prefer == config.IPv6 {
			o.Prefer = libvirt.FamilyIPv6
		}
		if h.SetAgentTimeout {
			o.AgentTimeout = c.Link.AgentResponseTimeout
		}
		d.Hosts = append(d.Hosts, controller.HostSpec{
			Name: model.HostName(h.Name), URI: ep.String(), Sources: sources(h.Sources), Open: open(o, observer),
			Key: fmt.Sprintf("%+v", h),
		})
	}
	for _, p := range c.Unmanaged() {
		spec := model.ProxySpec{
			Name: model.ProxyName(p.Name), Host: model.HostName(p.Host), Domain: p.Domain, Port: uint16(p.Port), //nolint:gosec // checked by config
			Creds: model.Credentials{User: p.User, Password: p.Password.Reveal()}, Pool: p.Pool, Labels: p.Labels,
		}
		if p.Probe == config.ProbeConnect {
			spec.Probe = model.ProbeConnect
		}
		if p.External() {
			spec.Backing, spec.Host, spec.Domain = model.BackingExternal, model.ExternalHost, ""
			spec.Address = netip.MustParseAddr(p.Address) // config has parsed it
		}
		d.Proxies = append(d.Proxies, spec)
	}
	return d
}

func sources(in []config.Source) []model.Source {
	var out []model.Source
	for _, s := range in {
		if src, ok := model.ParseSource(string(s)); ok {
			out = append(out, src)
		}
	}
	return out
}

func endpoint(e config.Endpoint) libvirt.Endpoint {
	out := libvirt.Endpoint{
		Sockets: libvirt.DefaultSockets(), User: e.User, KeyFile: e.KeyFile, KnownHosts: e.KnownHosts, PKIPath: e.PKIPath, NoVerify: e.NoVerify,
	}
	if e.Socket != "" {
		out.Sockets = []string{e.Socket}
	}
	if out.User == "" {
		out.User = os.Getenv("USER")
	}
	switch e.Transport {
	case config.TransportUnix:
		out.Transport = libvirt.TransportUnix
	case config.TransportTCP:
		out.Transport = libvirt.TransportTCP
	case config.TransportTLS:
		out.Transport = libvirt.TransportTLS
	case config.TransportSSH:
		out.Transport = libvirt.TransportSSH
	}
	if e.Host != "" {
		out.Address = net.JoinHostPort(e.Host, strconv.Itoa(e.Port))
	}
	return out
}

// demoFleet declares the simulated fleet.
func demoFleet(d *scenario.Stage, c *config.Config, observer bool) controller.Declared {
	out := declared(c, observer) // of a file without a host: the budget alone
	for _, name := range d.Hosts() {
		o := libvirt.Options{Link: linkOptions(c, name), AgentTimeout: c.Link.AgentResponseTimeout}
		o.Link.Dial = func(ctx context.Context) (net.Conn, error) { return d.Dial(ctx, name) }
		o.Link.Endpoint = "simulated"
		out.Hosts = append(out.Hosts, controller.HostSpec{
			Name: model.HostName(name), URI: "simulated", Sources: model.Sources(), Open: open(o, observer),
		})
	}
	for _, p := range d.Proxies() {
		out.Proxies = append(out.Proxies, model.ProxySpec{
			Name: model.ProxyName(p.Name), Host: model.HostName(p.Host), Domain: p.Domain, Port: uint16(p.Port), //nolint:gosec // the demo's own
			Creds: model.Credentials{User: p.User, Password: p.Password}, Pool: "default",
		})
	}
	for _, p := range d.Pools() {
		spec := model.PoolSpec{
			Name: p.Name, Template: p.Name, Count: p.Count, Port: uint16(p.Port), //nolint:gosec // checked by scenario
			Surge: 1, MinAvailable: p.Count - 1, DrainTime: 5 * time.Second,
		}
		for _, h := range p.Hosts {
			spec.Hosts = append(spec.Hosts, model.HostName(h))
		}
		out.Pools = append(out.Pools, spec)
		out.Templates[p.Name] = model.Template{
			Name: p.Name, VCPUs: 1, MemoryMB: 256, Storage: "default", Network: p.Network, VirtType: "kvm",
			Base: model.BaseImage{Volume: scenario.BaseVolume, Format: "qcow2"},
		}
	}
	return out
}

// logs makes the logger: the ring for the console, the file if one is
// configured, and w, if it is not nil, for a process without a terminal.
func logs(c *config.Config, w io.Writer) (*slog.Logger, *logbuf.Ring, func(), error) {
	ring := logbuf.NewRing(c.Log.Ring)
	level := c.Log.SlogLevel()
	done := func() {}
	var next []slog.Handler
	add := func(w io.Writer) {
		o := &slog.HandlerOptions{Level: level}
		if c.Log.Format == "json" {
			next = append(next, slog.NewJSONHandler(w, o))
			return
		}
		next = append(next, slog.NewTextHandler(w, o))
	}
	if w != nil {
		add(w)
	}
	if c.Log.File != "" {
		file, err := os.OpenFile(c.Log.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("log file: %w", err)
		}
		add(file)
		done = func() { _ = file.Close() }
	}
	return slog.New(logbuf.Fan(logbuf.NewHandler(ring, level), next...)), ring, done, nil
}
