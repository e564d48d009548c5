package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"virdeck/health"
	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt"
	"virdeck/provider/libvirt/simhost"
)

// fleet is simulated hosts under the real controller, provider and health
// engine: all in memory, all in virtual time.
type fleet struct {
	t        *testing.T
	sims     map[string]*simhost.Host
	origin   *simhost.Origin
	specs    []HostSpec
	decl     []model.ProxySpec
	onDefine func(*simhost.DomainSpec) // what guests that virdeck makes are like
	agent    time.Duration             // response timeout given to libvirt
	set      Settings
	cfg      health.Config
	stop     func() // ends what runs; nil while nothing does

	*Controller
	health *health.Engine
}

// newFleet returns one without a host. What it runs ends with the test.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, sims: map[string]*simhost.Host{}, origin: simhost.NewOrigin(""), agent: 2 * time.Second, set: Defaults(), cfg: health.Defaults()}
	u, err := health.ParseTarget(f.origin.URL() + "ip")
	if err != nil {
		u, err = health.ParseTarget(f.origin.URL() + "/ip")
	}
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/ip"
	f.cfg.Targets = []health.Target{{URL: u, EchoIP: true}}
	t.Cleanup(func() {
		if f.stop != nil {
			f.stop()
		}
		for _, s := range f.sims {
			for _, v := range s.Violations() {
				t.Errorf("%s: %s", s.Name(), v)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := f.origin.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// newPair is a fleet of one host, called one, with two bridged guests that are
// ready; it returns the first of them.
func newPair(t *testing.T) (*fleet, *simhost.Domain) {
	t.Helper()
	f := newFleet(t)
	f.host("one")
	d := f.bridged("one", "p-01", "10.0.0.21")
	f.bridged("one", "p-02", "10.0.0.22")
	f.start()
	f.within(10*time.Second, "both ready", func() bool { return f.ready("p-01", "p-02") })
	return f, d
}

// host adds a host.
func (f *fleet) host(name string) *simhost.Host {
	h := simhost.New(simhost.Options{Name: name, Origin: f.origin, OnDefine: func(s *simhost.DomainSpec) {
		if f.onDefine != nil {
			f.onDefine(s)
		}
	}})
	f.sims[name] = h
	f.specs = append(f.specs, HostSpec{
		Name: model.HostName(name), URI: "simulated", Sources: model.Sources(),
		Open: opens(libvirt.Options{Link: libvirt.LinkOptions{Host: model.HostName(name), Dial: h.Dial}, AgentTimeout: f.agent}),
	})
	return h
}

// opens is the Open of a host that is reached as o says.
func opens(o libvirt.Options) func(func(provider.Event), func(model.LinkStatus)) provider.Host {
	return func(onEvent func(provider.Event), onLink func(model.LinkStatus)) provider.Host {
		o.Link.Endpoint, o.Link.OnChange, o.OnEvent = "simulated", onLink, onEvent
		return libvirt.New(o)
	}
}

// bridged adds a running guest that only its agent can name, and declares it.
func (f *fleet) bridged(host, name, addr string) *simhost.Domain {
	return f.guest(host, simhost.DomainSpec{Name: name, Running: true, NICs: bridge(addr)})
}

// bridge is the one NIC of a guest whose traffic its host never sees.
func bridge(addr string) []simhost.NIC {
	return []simhost.NIC{{Bridge: "br0", Addresses: []netip.Prefix{netip.MustParsePrefix(addr + "/24")}}}
}

// guest adds a guest, and declares it.
func (f *fleet) guest(host string, spec simhost.DomainSpec) *simhost.Domain {
	d := f.sims[host].AddDomain(spec)
	f.declare(host, spec.Name)
	return d
}

func (f *fleet) declare(host, name string) {
	f.decl = append(f.decl, model.ProxySpec{Name: model.ProxyName(name), Host: model.HostName(host), Domain: name, Port: 3128, Pool: "default"})
}

// start runs the controller on the declared proxies.
func (f *fleet) start() {
	f.t.Helper()
	f.launch(Deps{Declared: Declared{Hosts: f.specs, Proxies: f.decl}})
}

// launch runs a controller. The one before must have been stopped.
func (f *fleet) launch(d Deps) {
	d.Log, d.Rand = slog.New(panics{slog.DiscardHandler, f.t}), func() float64 { return 0.5 }
	d.Health = func(dirty func(health.Key)) Health {
		f.health = health.New(f.cfg, health.Deps{Dial: f.dialProxy, Control: f.origin.Dial, Dirty: dirty, Rand: d.Rand})
		return f.health
	}
	f.Controller = New(f.set, d)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c, he := f.Controller, f.health
	go func() {
		c.Run(ctx)
		close(done)
	}()
	f.stop = func() {
		cancel()
		<-done
		he.Close()
		f.stop = nil
	}
}

// panics fails the test when a loop has panicked: they survive that, and a test
// must not.
type panics struct {
	slog.Handler
	t *testing.T
}

func (panics) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (p panics) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "panic" {
		r.Attrs(func(a slog.Attr) bool {
			p.t.Errorf("panic: %s", a)
			return true
		})
	}
	return nil
}

// dialProxy finds the host behind which an address is.
func (f *fleet) dialProxy(ctx context.Context, network, address string) (net.Conn, error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	var way *simhost.Host
	for _, h := range f.sims {
		if way == nil {
			way = h // where nobody has the address, any host says so
		}
		for _, d := range h.Domains() {
			if d.ID() > 0 && slices.Contains(d.Addresses(), ap.Addr()) {
				way = h
			}
		}
	}
	return way.DialProxy(ctx, network, address)
}

// on is a command to a proxy of host a.
func on(v model.Verb, p model.ProxyName) model.Command {
	return model.Command{Verb: v, Host: "a", Proxy: p}
}

// submit gives a command that has to be accepted.
func (f *fleet) submit(cmd model.Command) model.OpID {
	f.t.Helper()
	cmd.By = "test"
	id, err := f.Submit(cmd)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// do submits a command and waits until screens show its end.
func (f *fleet) do(cmd model.Command) (op model.Op) {
	f.t.Helper()
	id := f.submit(cmd)
	f.within(time.Minute, cmd.Verb.String()+" ends", func() bool {
		for _, op = range f.Snapshot().Ops {
			if op.ID == id {
				return !op.Ended.IsZero()
			}
		}
		return false
	})
	return op
}

// done submits a command that has to end well.
func (f *fleet) done(cmd model.Command) {
	f.t.Helper()
	if op := f.do(cmd); op.State != model.OpDone {
		f.t.Fatalf("%+v", op)
	}
}

// refused submits a command that has to be refused, in these words.
func (f *fleet) refused(cmd model.Command, want string) {
	f.t.Helper()
	cmd.By = "test"
	if err := f.Refuse(cmd); err == nil || err.Error() != want {
		f.t.Errorf("%s is foreseen to be refused: %v, want %q", cmd.Verb, err, want)
	}
	if _, err := f.Submit(cmd); err == nil || err.Error() != want {
		f.t.Errorf("%s: %v, want %q", cmd.Verb, err, want)
	}
}

func (f *fleet) proxy(name string) *model.ProxyView {
	p, _ := f.Snapshot().Proxy(model.ProxyName(name))
	if p == nil {
		f.t.Fatalf("no proxy %s", name)
	}
	return p
}

func (f *fleet) state(name string) model.State { return f.proxy(name).State }

// within waits at most d for ok and returns how long that took.
func (f *fleet) within(d time.Duration, what string, ok func() bool) time.Duration {
	f.t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > d {
			f.t.Fatalf("not within %s: %s\n%s", d, what, f.dump())
		}
		time.Sleep(50 * time.Millisecond)
	}
	return time.Since(start)
}

// during watches for d that ok holds all the time.
func (f *fleet) during(d time.Duration, what string, ok func() bool) {
	f.t.Helper()
	for start := time.Now(); time.Since(start) < d; time.Sleep(50 * time.Millisecond) {
		if !ok() {
			f.t.Fatalf("after %s no longer true: %s\n%s", time.Since(start), what, f.dump())
		}
	}
}

// each runs f for every proxy of the snapshot.
func (f *fleet) each(do func(*model.ProxyView)) {
	for _, h := range f.Snapshot().Hosts {
		for _, p := range h.Proxies {
			do(p)
		}
	}
}

// in returns how many proxies are in rotation.
func (f *fleet) in() (n int) {
	f.each(func(p *model.ProxyView) { n += boolInt(p.Health.InRotation) })
	return n
}

func (f *fleet) allIn() bool {
	all := true
	f.each(func(p *model.ProxyView) { all = all && p.Health.InRotation })
	return all
}

// plan is what the plan says, and what the pools wait for.
func (f *fleet) plan() string {
	var b strings.Builder
	for _, it := range f.Snapshot().Plan {
		fmt.Fprintf(&b, "plan: %s %s %s on %s: %s | %s\n", it.Verb, it.Proxy, it.Domain, it.Host, it.Why, it.Wait)
	}
	for _, p := range f.Snapshot().Pools {
		fmt.Fprintf(&b, "pool %s: %q\n", p.Name, p.Wait)
	}
	return b.String()
}

// dump is everything there is to see, for a test that failed.
func (f *fleet) dump() string {
	var b strings.Builder
	s := f.Snapshot()
	b.WriteString(f.plan())
	for _, o := range s.Ops {
		fmt.Fprintf(&b, "op %d: %s %s %s, %s%s\n", o.ID, o.Command.Verb, o.Command.Target(), o.State, o.Phase, o.Result)
	}
	for _, h := range s.Hosts {
		fmt.Fprintf(&b, "%s: link %v gen %d %s\n", h.Name, h.Link.State, h.Link.Generation, h.Link.LastError)
		for _, p := range h.Proxies {
			fmt.Fprintf(&b, "  %s %v %q in=%v ip=%v: %s\n", p.Spec.Name, p.State, p.Marks, p.Health.InRotation, p.IP, p.Reason)
			for _, e := range p.Events {
				fmt.Fprintf(&b, "    %s %s>%s %s %q\n", e.At.Format("04:05.000"), e.From, e.To, e.What, e.Evidence)
			}
		}
	}
	return b.String()
}

func (f *fleet) ready(names ...string) bool {
	for _, n := range names {
		if f.state(n) != model.StateReady {
			return false
		}
	}
	return true
}

func (f *fleet) condition(name string, t model.ConditionType) model.Condition {
	c, _ := model.GetCondition(f.proxy(name).Conditions, t)
	return c
}
