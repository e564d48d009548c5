package controller

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"virdeck/health"
	"virdeck/model"
	"virdeck/provider"
)

// Settings are the controller's own.
type Settings struct {
	Fleet          string
	Version        string
	Demo           bool
	Observer       bool          // look and probe, never write to a host
	Poll           time.Duration // bulk look at a host
	AddressRefresh time.Duration // full address read of a settled proxy
	AddressRetry   time.Duration // the same while unknown, held or in doubt
	AddressHold    int           // scheduled polls without an address before a held one can be given up
	Budget         time.Duration // of one reconcile
	Workers        int           // address reads at one time, per host
	ProbeInterval  time.Duration // for the snapshot's Timing
	ProbeTimeout   time.Duration
}

// Defaults returns the settings of the design's table.
func Defaults() Settings {
	return Settings{
		Poll: 10 * time.Second, AddressRefresh: time.Minute, AddressRetry: 5 * time.Second,
		AddressHold: 3, Budget: 5 * time.Second, Workers: 2,
	}
}

// HostSpec declares a host.
type HostSpec struct {
	Name    model.HostName
	URI     string // for people
	Sources []model.Source
	// Open starts the provider. Its callbacks must not block.
	Open func(onEvent func(provider.Event), onLink func(model.LinkStatus)) provider.Host
}

// Health is what the controller asks of the health engine.
type Health interface {
	Track(health.Subject)
	Untrack(health.Key)
	ForgetProxy(model.ProxyName)
	ProbeNow(health.Key)
	Health(health.Key) (model.Health, bool)
	Fleet() model.FleetHealth
}

// Deps is what a Controller needs from outside.
type Deps struct {
	Hosts   []HostSpec
	Proxies []model.ProxySpec
	// Health makes the health engine; dirty is to be its dirty callback.
	Health func(dirty func(health.Key)) Health
	Log    *slog.Logger
	Rand   func() float64 // in [0,1); default math/rand
}

// Controller runs the fleet. Make one with New, run it with Run; Snapshot and
// Submit are safe at any time, from any goroutine.
type Controller struct {
	set     Settings
	log     *slog.Logger
	rand    func() float64
	health  Health
	started time.Time
	ctx     context.Context // of operators' commands; ends with Run
	stop    context.CancelFunc

	topo    atomic.Pointer[topology]
	running running

	snap    atomic.Pointer[model.Snapshot]
	changed chan struct{} // capacity 1
	seq     atomic.Uint64 // of events
	claims  claims
	ops     ops
}

// New starts the hosts' links and the health engine; nothing is looked at
// before Run.
func New(s Settings, d Deps) *Controller {
	c := &Controller{
		set: s, log: d.Log, rand: d.Rand, started: time.Now(),
		changed: make(chan struct{}, 1),
	}
	if c.rand == nil {
		c.rand = rand.Float64
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.claims = newClaims()
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.topo.Store(&topology{byName: map[model.HostName]*host{}, where: map[model.ProxyName]*host{}})
	c.health = d.Health(c.onHealth)
	c.lay(func(t *topology) {
		for _, hs := range d.Hosts {
			t.addHost(newHost(c, hs))
		}
		for _, p := range d.Proxies {
			c.addProxy(t, p)
		}
	})
	for _, h := range c.hosts() {
		h.refreshAll()
	}
	c.publish()
	return c
}

// addProxy puts a proxy under its host. One whose host is not declared is left
// out: the configuration has refused it.
func (c *Controller) addProxy(t *topology, p model.ProxySpec) {
	if p.Backing == model.BackingExternal && t.byName[model.ExternalHost] == nil {
		t.addHost(newHost(c, HostSpec{Name: model.ExternalHost}))
	}
	h := t.byName[p.Host]
	if p.Backing == model.BackingExternal {
		h = t.byName[model.ExternalHost]
	}
	if h == nil {
		return
	}
	h.add(p)
	t.where[p.Name] = h
}

// Run runs every host until ctx ends, then waits for all of them and closes
// their links. A panic in one host's loop ends that loop, is logged with its
// stack, and the loop is started again after a pause.
func (c *Controller) Run(ctx context.Context) {
	c.running.begin(ctx, c.hosts())
	c.running.wg.Go(func() { c.retryClaims(ctx) })
	c.publishLoop(ctx)
	c.stop()
	c.running.wait()
	for _, h := range c.hosts() {
		h.close()
	}
	c.ops.wait()
	c.publish()
}

// onHealth is the health engine's dirty callback.
func (c *Controller) onHealth(k health.Key) {
	if k.Proxy == "" {
		c.touch()
		return
	}
	if h := c.hostOf(k.Proxy); h != nil {
		h.onHealth(k)
	}
}

// touch asks for a new snapshot.
func (c *Controller) touch() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}
