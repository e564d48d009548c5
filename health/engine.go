package health

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"virdeck/model"
)

// Deps is what an Engine needs from outside.
type Deps struct {
	Dial    DialFunc         // to the proxies
	Control DialFunc         // to the targets, without a proxy
	Dirty   func(key Key)    // something about a subject, or (zero Key) about the fleet, has changed
	Rand    func() float64   // in [0,1); spreads probes. Default math/rand
	Limit   int              // probes at one time; default 256
	Now     func() time.Time // default time.Now
}

// Engine probes subjects and keeps their membership. See the package comment
// for goroutines and blocking.
type Engine struct {
	cfg  Config
	deps Deps
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	sem  chan struct{}

	mu       sync.Mutex
	subs     map[Key]*subject
	failing  map[Key]*subject        // in rotation, and the last counted probe failed
	proxies  map[model.ProxyName]int // addresses tracked
	sought   time.Time               // when witnesses were last asked for
	controls []*controlState
	brake    time.Time // since when; zero if it does not hold
	note     string    // why the brake holds
	stuck    string    // a due demotion that nobody can judge: why
	stuckAt  time.Time
}

// subject is a tracked proxy at an address.
type subject struct {
	Subject
	c          counters
	tracked    time.Time
	lastIn     time.Time
	since      time.Time
	reason     string
	evidence   []string
	lastPass   time.Time
	lastFault  time.Time
	unverified bool
	waiting    string
	samples    []model.Sample
	count      int
	kick       chan struct{}
	cancel     context.CancelFunc
}

// samplesKept is the length of the probe history that is kept for each subject.
const samplesKept = 120

// New returns an engine; its control probes begin at once.
func New(cfg Config, d Deps) *Engine {
	if d.Rand == nil {
		d.Rand = rand.Float64
	}
	if d.Limit == 0 {
		d.Limit = 256
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Dirty == nil {
		d.Dirty = func(Key) {}
	}
	e := &Engine{cfg: cfg, deps: d, sem: make(chan struct{}, d.Limit), subs: map[Key]*subject{}, failing: map[Key]*subject{}, proxies: map[model.ProxyName]int{}}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.mu.Lock()
	defer e.mu.Unlock()
	e.setTargets(cfg)
	return e
}

// Close ends all probes and waits for them.
func (e *Engine) Close() {
	e.stop()
	e.wg.Wait()
}

// Track begins to probe a subject, at once, or takes note that its port, way or
// credentials have changed. What is known of the same proxy at the same address
// is kept.
func (e *Engine) Track(s Subject) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return
	}
	if old := e.subs[s.Key()]; old != nil {
		if old.Subject != s {
			old.Subject = s
			poke(old.kick)
		}
		return
	}
	now := e.deps.Now()
	sub := &subject{Subject: s, tracked: now, lastIn: now, since: now, reason: "not yet proven", kick: make(chan struct{}, 1)}
	if s.Restored {
		sub.c.in, sub.unverified = true, true
		sub.reason = "in rotation before the restart; not yet probed since"
	}
	ctx, cancel := context.WithCancel(e.ctx)
	sub.cancel = cancel
	e.subs[s.Key()] = sub
	e.proxies[s.Proxy]++
	delay := time.Duration(e.deps.Rand() * float64(min(e.cfg.Fast, 200*time.Millisecond)))
	e.wg.Go(func() { e.run(ctx, sub, delay) })
}

// Untrack forgets one address of a proxy: counters, history, membership.
func (e *Engine) Untrack(k Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(k)
}

// ForgetProxy prunes everything about a proxy, at every address, at once.
func (e *Engine) ForgetProxy(p model.ProxyName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for k := range e.subs {
		if k.Proxy == p {
			e.drop(k)
		}
	}
}

func (e *Engine) drop(k Key) {
	if s := e.subs[k]; s != nil {
		s.cancel()
		delete(e.subs, k)
		delete(e.failing, k)
		if e.proxies[k.Proxy]--; e.proxies[k.Proxy] == 0 {
			delete(e.proxies, k.Proxy)
		}
	}
}

// ProbeNow asks for a probe of a subject at once. One that runs just now is
// followed by another.
func (e *Engine) ProbeNow(k Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.subs[k]; s != nil {
		poke(s.kick)
	}
}

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// run is a subject's goroutine.
func (e *Engine) run(ctx context.Context, s *subject, delay time.Duration) {
	t := time.NewTimer(delay)
	defer t.Stop()
	var start time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-s.kick:
			// Asked for out of turn, but never without a breath.
			if !pauseUntil(ctx, start.Add(minGap)) {
				return
			}
		}
		select {
		case e.sem <- struct{}{}:
		case <-ctx.Done():
			return
		}
		start = time.Now()
		r := e.probe(ctx, s)
		<-e.sem
		if ctx.Err() != nil {
			return
		}
		t.Reset(e.observe(s, r, start))
	}
}

// pauseUntil waits for t; it reports false when ctx ends first.
func pauseUntil(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// probe asks the next target in turn.
func (e *Engine) probe(ctx context.Context, s *subject) model.ProbeResult {
	e.mu.Lock()
	sub := s.Subject
	target := e.pick(s.count)
	s.count++
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, e.timeout())
	defer cancel()
	start := e.deps.Now()
	r := probeFor(sub.Kind, target)(ctx, e.deps.Dial, sub, target)
	return elapsed(r, sub, target, start)
}

// pick takes turns among the targets that can be judged: those that answer
// without a proxy, if any does; else all. e.mu is held.
func (e *Engine) pick(n int) Target {
	var good []Target
	for _, c := range e.controls {
		if c.state == model.WitnessPassing {
			good = append(good, c.target)
		}
	}
	if len(good) == 0 {
		good = e.cfg.Targets
	}
	return good[n%len(good)]
}

// minGap keeps a probe that took long from being followed without a breath.
const minGap = 200 * time.Millisecond

// observe applies a result and returns how long to wait for the next probe.
func (e *Engine) observe(s *subject, r model.ProbeResult, start time.Time) time.Duration {
	e.mu.Lock()
	now := e.deps.Now()
	if e.subs[s.Key()] != s {
		e.mu.Unlock()
		return e.cfg.Interval // dropped meanwhile; its context ends it
	}
	dirty := e.apply(s, r, now)
	dirty = append(dirty, e.settle(now)...)
	wait := pace(s.c, e.cfg, s.lastIn, now) - time.Since(start)
	if s.c.in && s.c.fails == 0 {
		// A twentieth to either side: probes that began together drift apart.
		wait += time.Duration((e.deps.Rand() - 0.5) / 10 * float64(e.cfg.Interval))
	}
	e.mu.Unlock()
	for _, k := range dirty {
		e.deps.Dirty(k)
	}
	return max(wait, minGap)
}
