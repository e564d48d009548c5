package controller

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"virdeck/health"
	"virdeck/model"
	"virdeck/provider"
	"virdeck/store"
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
	Writes         int           // writes to VMs at one time, per host
	CreateTimeout  time.Duration // of one try to make a VM, uploads included
	DeleteTimeout  time.Duration // of one try to remove, start, stop or restart a VM
	LeaveStopped   bool          // managed VMs that are found shut off are not started
	OrphanGrace    time.Duration // how long a marked domain that nobody declares is left alone
	ReplaceAfter   time.Duration // how long a VM may run and be of no use; 0: for ever
	Takeover       bool          // marks of this fleet by another controller become ours
	DryRun         bool          // plan, and write to no host
	ProbeInterval  time.Duration // for the snapshot's Timing
	ProbeTimeout   time.Duration
}

// Defaults returns the settings of the design's table.
func Defaults() Settings {
	return Settings{
		Poll: 10 * time.Second, AddressRefresh: time.Minute, AddressRetry: 5 * time.Second,
		AddressHold: 3, Budget: 5 * time.Second, Workers: 2,
		Writes: 8, CreateTimeout: 10 * time.Minute, DeleteTimeout: time.Minute,
		OrphanGrace: 10 * time.Minute, ReplaceAfter: 10 * time.Minute,
	}
}

// HostSpec declares a host.
type HostSpec struct {
	Name    model.HostName
	URI     string // for people
	Sources []model.Source
	// Key is the same for two specs that mean the same host, reached in the same
	// way: then a reload leaves its link alone.
	Key string
	// Open starts the provider. Its callbacks must not block, and come from
	// goroutines of its own: a call inside of Open would wait for Open.
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
	Declared Declared
	// State is what the store remembered; Store is where it goes on. Without a
	// Store nothing is kept.
	State store.State
	Store Store
	// Audit keeps every command, and what became of it; nil: nobody does.
	Audit Audit
	// Reload reads the configuration again and applies it. It returns what it
	// did, in words; nil: this virdeck cannot.
	Reload func(by string) (string, error)
	// Health makes the health engine; dirty is to be its dirty callback.
	Health func(dirty func(health.Key)) Health
	Log    *slog.Logger
	Rand   func() float64 // in [0,1); default math/rand
}

// Controller runs the fleet. Make one with New, run it with Run; Snapshot and
// Submit are safe at any time, from any goroutine.
type Controller struct {
	set     atomic.Pointer[Settings]
	log     *slog.Logger
	rand    func() float64
	health  Health
	started time.Time
	ctx     context.Context // of operators' commands; ends with Run
	stop    context.CancelFunc

	layMu    sync.Mutex // over changes of topo; before every host's lock
	topo     atomic.Pointer[topology]
	running  running
	declared atomic.Pointer[Declared]

	// Of managed VMs.
	id        string      // of this controller, in marks
	empty     bool        // the store began so
	fresh     atomic.Bool // the store began empty, and the marks have not told yet what it forgot
	stateMu   sync.Mutex
	state     store.State                       // as it was loaded, less what is in use
	adopted   map[model.ProxyName]store.Adopted // declared in the store alone
	store     Store
	audit     Audit
	reload    func(by string) (string, error)
	ledger    *budget
	replan    chan struct{} // capacity 1
	plan      atomic.Pointer[[]model.PlanItem]
	poolViews atomic.Pointer[[]model.PoolView]

	sightings atomic.Pointer[sightings]
	settled   atomic.Bool // all marks were read in the last pass

	adopting sync.Mutex // one at a time; before every other lock
	saveMu   sync.Mutex // over dropped and beat, and while the store is written
	dropped  map[model.ProxyName]bool
	beat     time.Time // last heartbeat
	storeErr atomic.Pointer[string]

	reloadNote atomic.Pointer[model.Notice] // what the configuration file has that is not applied

	snap     atomic.Pointer[model.Snapshot]
	changed  chan struct{} // capacity 1
	seq      atomic.Uint64 // of events
	claims   claims
	machines machines
	ops      ops
}

// New starts the hosts' links and the health engine; nothing is looked at
// before Run.
func New(s Settings, d Deps) *Controller {
	c := &Controller{
		log: d.Log, rand: d.Rand, started: time.Now(),
		changed: make(chan struct{}, 1), replan: make(chan struct{}, 1), dropped: map[model.ProxyName]bool{}, adopted: map[model.ProxyName]store.Adopted{},
		id: d.State.Controller, state: d.State, store: d.Store,
		ledger: newBudget(d.Declared.Budget, d.State), audit: d.Audit, reload: d.Reload,
	}
	c.set.Store(&s)
	c.empty = d.State.SavedAt.IsZero()
	c.fresh.Store(c.empty && d.Declared.makes())
	c.declared.Store(&d.Declared)
	if c.rand == nil {
		c.rand = rand.Float64
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.claims = newClaims()
	c.ops.news = make(chan struct{}, 1)
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.topo.Store(&topology{byName: map[model.HostName]*host{}, where: map[model.ProxyName]*host{}})
	c.health = d.Health(c.onHealth)
	c.lay(func(t *topology) {
		for _, hs := range d.Declared.Hosts {
			t.addHost(newHost(c, hs))
		}
	})
	for _, a := range d.State.Adopted {
		c.adopted[a.Name] = a
	}
	c.declare()
	for _, h := range c.hosts() {
		h.refreshAll()
	}
	c.publish()
	return c
}

// addProxy puts a proxy under its host, if there is none of its name. One whose host is not declared is left
// out: the configuration has refused it.
func (c *Controller) addProxy(t *topology, p model.ProxySpec, m *managed) {
	if t.where[p.Name] != nil {
		return
	}
	if p.Backing == model.BackingExternal && t.byName[model.ExternalHost] == nil {
		h := newHost(c, HostSpec{Name: model.ExternalHost})
		t.addHost(h)
		c.running.launch(h)
	}
	h := t.byName[p.Host]
	if p.Backing == model.BackingExternal {
		h = t.byName[model.ExternalHost]
	}
	if h == nil {
		return
	}
	h.add(p, m)
	t.where[p.Name] = h
}

// settings returns the settings of this instant.
func (c *Controller) settings() *Settings { return c.set.Load() }

// Run runs every host until ctx ends, then waits for all of them and closes
// their links. A panic in one host's loop ends that loop, is logged with its
// stack, and the loop is started again after a pause.
func (c *Controller) Run(ctx context.Context) {
	c.running.begin(ctx, c.hosts())
	c.running.wg.Go(func() { c.retryClaims(ctx) })
	c.running.wg.Go(func() { c.manage(ctx) })
	c.running.wg.Go(func() { c.auditLoop(ctx) })
	c.publishLoop(ctx)
	c.stop()
	c.running.wait()
	for _, h := range c.hosts() {
		h.close()
	}
	c.ops.wait()
	c.auditEnds()
	c.beat = time.Time{}
	_ = c.persist(time.Now()) // it is logged
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
