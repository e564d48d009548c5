package controller

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// host is one host with its loop, its workers and its proxies.
type host struct {
	c     *Controller
	name  model.HostName
	reach atomic.Pointer[reach] // see via
	wake  chan struct{}         // capacity 1: something is due earlier than planned

	mu        sync.Mutex
	proxies   []*proxy // in declaration order
	byName    map[model.ProxyName]*proxy
	pinned    string // host UUID at first contact
	pinSaved  string // what of it the store has
	identGen  uint64 // newest link generation that has shown this UUID
	shows     string // host UUID of the newest look
	misconfig string
	twin      string // why nothing is written: another host is the same machine
	arpBroken bool
	lastGood  time.Time
	domains   int
	strangers []string // undeclared domains
	nextPoll  time.Time
	link      model.LinkState
	downSince time.Time // since when the link is not up; zero while it is
	events    []model.Event
	dirty     bool
	view      *model.HostView

	// Of managed VMs.
	mail     chan struct{}      // slots of operators' power commands
	writes   int                // of the controller, under way
	asked    int                // of operators, under way
	resting  bool               // no new one is begun: the settings are being changed
	listGen  uint64             // link generation of the newest listing
	listedAt time.Time          // when that look began
	pollErr  string             // why the newest look failed
	marked   []model.Instance   // domains with a mark of this fleet, whoever made it
	unread   string             // what of the marks has never been read, of domains that may be ours; empty: nothing
	orphans  map[string]*orphan // by uid
}

func newHost(c *Controller, hs HostSpec) *host {
	h := &host{
		c: c, name: hs.Name, byName: map[model.ProxyName]*proxy{}, wake: make(chan struct{}, 1), mail: make(chan struct{}, powerAtOnce),
	}
	h.pinned = c.state.Hosts[hs.Name]
	h.pinSaved = h.pinned
	if h.pinned != "" {
		c.machines.pin(h.name, h.pinned)
	}
	h.open(hs)
	return h
}

// add puts a proxy under the host, with what is remembered of it. m is nil for
// one that is not managed.
func (h *host) add(spec model.ProxySpec, m *managed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	p := &proxy{spec: spec, m: m, since: now, next: now.Add(h.spread(time.Second))}
	h.restore(p, now)
	if m != nil && m.uid == "" {
		h.identify(p, h.c.newUID(), now, newCreds(spec.Name))
	}
	h.proxies = append(h.proxies, p)
	h.byName[spec.Name] = p
	h.settle(p, now)
	h.nextPoll = time.Time{} // what the host says of it is wanted now
	h.kickLoop()
}

// each runs f for each proxy with the lock held, which even a panic lets go of.
func (h *host) each(f func(*proxy)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.proxies {
		f(p)
	}
}

// proxy returns a proxy by name, or nil.
func (h *host) proxy(n model.ProxyName) *proxy {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byName[n]
}

// left returns why nothing can be done with a proxy that was found a moment ago:
// it is none of this host any more. The lock is held.
func (h *host) left(p *proxy) error {
	if h.byName[p.spec.Name] != p {
		return model.Refuse("there is no proxy %s on %s any more", p.spec.Name, h.name)
	}
	return nil
}

func (h *host) refreshAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.proxies {
		h.settle(p, time.Now())
	}
}

// spread returns a random part of d, so that what began together drifts apart.
func (h *host) spread(d time.Duration) time.Duration {
	return time.Duration(h.c.rand() * float64(d))
}

// panicPause is how long a loop that panicked rests.
const panicPause = 5 * time.Second

// survive runs f again after a panic, until ctx ends.
func (h *host) survive(ctx context.Context, what string, f func(context.Context)) {
	for ctx.Err() == nil {
		h.c.guard("host "+string(h.name)+": "+what, func() { f(ctx) })
		t := time.NewTimer(panicPause)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// guard runs f, and logs a panic of it with its stack.
func (c *Controller) guard(what string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("panic", "in", what, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	f()
}

// loop polls and schedules.
func (h *host) loop(ctx context.Context) {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-h.wake:
		}
		now := time.Now()
		h.mu.Lock()
		poll := !now.Before(h.nextPoll)
		h.mu.Unlock()
		if poll {
			h.poll(ctx)
		}
		t.Reset(h.schedule(time.Now()))
	}
}

func (h *host) kickLoop() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// schedule queues the address polls that are due and returns how long to sleep.
func (h *host) schedule(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	earliest := h.nextPoll
	for _, p := range h.proxies {
		if !now.Before(p.next) {
			p.due = true
			p.next = now.Add(h.interval(p))
			h.via().queue.Add(p.spec.Name)
		}
		if p.next.Before(earliest) {
			earliest = p.next
		}
	}
	return max(earliest.Sub(now), 10*time.Millisecond)
}

// interval is the time to a proxy's next scheduled address poll. It is at least
// the retry interval, so that polls which count against a held address are never
// closer together than that.
func (h *host) interval(p *proxy) time.Duration {
	if p.st.doubtful() || p.rival != "" {
		return h.c.settings().AddressRetry
	}
	return h.c.settings().AddressRefresh*9/10 + h.spread(h.c.settings().AddressRefresh/5)
}

// poll is one bulk look at the host.
func (h *host) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, h.c.settings().Budget)
	defer cancel()
	l, err := h.via().prov.List(ctx)
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nextPoll = now.Add(h.c.settings().Poll*9/10 + h.spread(h.c.settings().Poll/5))
	h.dirty = true
	defer h.c.touch()
	if err != nil {
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return // the end of the program says nothing
		}
		h.pollErr = words(err)
		h.failAll(err, now)
		return
	}
	h.lastGood, h.arpBroken, h.domains = now, l.ARPBroken, len(l.Instances)
	if !h.checkIdentity(l, now) {
		return
	}
	h.noteMarks(l, now)
	h.noteOrphans()
	h.noteStrangers(l)
	defer h.c.kickManage()
	for _, p := range h.proxies {
		r := read{bulk: true, now: now, health: h.healthOf(p), hold: h.c.settings().AddressHold}
		in, ok := l.Find(p.spec.Domain)
		if !ok {
			in, r.err = model.Instance{At: l.At, Generation: l.Generation}, provider.ErrNotFound
		}
		r.inst = in
		h.take(p, r)
	}
}

// noteStrangers lists the domains that nobody declares.
func (h *host) noteStrangers(l provider.Listing) {
	declared := make(map[string]bool, len(h.proxies))
	for _, p := range h.proxies {
		declared[p.spec.Domain] = true
	}
	h.strangers = nil
	for _, in := range l.Instances {
		if !declared[in.Name] {
			h.strangers = append(h.strangers, in.Name)
		}
	}
}

// failAll: the host said nothing, so nothing is learned about any of its
// proxies.
func (h *host) failAll(err error, now time.Time) {
	for _, p := range h.proxies {
		h.take(p, read{bulk: true, err: err, now: now, health: h.healthOf(p), hold: h.c.settings().AddressHold})
	}
}
