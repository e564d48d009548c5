package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"virdeck/model"
	"virdeck/provider"
)

// DialFunc makes one connection to a host's libvirt daemon. It obeys ctx.
type DialFunc func(ctx context.Context) (net.Conn, error)

// LinkOptions configures a Link. Zero durations and counts mean the default.
type LinkOptions struct {
	Host     model.HostName
	Endpoint string // what is dialled, for people; no secrets
	Dial     DialFunc
	URI      string // what the daemon is asked to open; default "qemu:///system"

	Slots         int           // calls in flight; default 4: libvirtd reads no further than 5
	SlotWait      time.Duration // how long a call waits for a slot; default 1 s
	Ping          time.Duration // default 2 s
	Silence       time.Duration // after a ping, before a second opinion; default 1.5 s
	SecondOpinion time.Duration // limit of the fresh connection; default 2 s
	DialTimeout   time.Duration // limit of a redial; default 5 s
	Clogged       time.Duration // all slots abandoned for so long: replace; default 5 s
	DrainMax      time.Duration // a replaced generation may finish for so long; default 60 s
	BackoffMin    time.Duration // default 100 ms
	BackoffMax    time.Duration // in the first minute of an outage; default 3 s
	BackoffLate   time.Duration // after it; default 30 s

	// OnChange is told of every change of state. It must not block.
	OnChange func(model.LinkStatus)
	// OnUp is called with each new generation before callers see it used.
	onUp func(*Link, *session)
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (o *LinkOptions) defaults() {
	def(&o.URI, "qemu:///system")
	def(&o.Slots, 4)
	def(&o.SlotWait, time.Second)
	def(&o.Ping, 2*time.Second)
	def(&o.Silence, 1500*time.Millisecond)
	def(&o.SecondOpinion, 2*time.Second)
	def(&o.DialTimeout, 5*time.Second)
	def(&o.Clogged, 5*time.Second)
	def(&o.DrainMax, 60*time.Second)
	def(&o.BackoffMin, 100*time.Millisecond)
	def(&o.BackoffMax, 3*time.Second)
	def(&o.BackoffLate, 30*time.Second)
	if o.OnChange == nil {
		o.OnChange = func(model.LinkStatus) {}
	}
	if o.onUp == nil {
		o.onUp = func(*Link, *session) {}
	}
}

// Backoff is short for this long after an outage began, and after an operator
// asked for a reconnect, when it stays below forcedMax.
const (
	earlyOutage = time.Minute
	forcedMax   = time.Second
	stable      = 10 * time.Second // a generation that lived shorter does not end an outage
	maxDraining = 2                // with the current one, at most 12 of the daemon's 20 workers
)

var (
	errForced = errors.New("replaced: an operator asked for a reconnect")
	errClosed = errors.New("closed by virdeck")
)

// Link is the one pooled connection to a host. All methods are safe for
// concurrent use.
type Link struct {
	opts   LinkOptions
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // the manager has ended
	first  chan struct{} // the first dial has ended, either way
	kick   chan struct{} // capacity 1: skip the backoff

	transfers chan struct{} // one token for each connection of apart
	dialTook  atomic.Int64  // nanoseconds, of the last connection made

	cmu   sync.Mutex
	calls [3]model.CallCount

	mu         sync.Mutex
	state      model.LinkState
	since      time.Time
	gen        uint64
	cur        *session
	draining   []*session
	phase      string
	lastErr    string
	lastErrAt  time.Time
	nextRetry  time.Time
	suspect    bool
	outage     time.Time          // since when no generation is up
	forcedAt   time.Time          // of the last forced reconnect
	cancelDial context.CancelFunc // of the dial under way
	waiters    []*waiter          // of Reconnect, until a dial of theirs has ended
}

// NewLink starts a link. It dials at once and never gives up until Close.
func NewLink(o LinkOptions) *Link {
	o.defaults()
	l := &Link{opts: o, done: make(chan struct{}), first: make(chan struct{}), kick: make(chan struct{}, 1), transfers: make(chan struct{}, maxApart)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.state, l.since, l.outage = model.LinkConnecting, time.Now(), time.Now()
	go l.manage()
	return l
}

// Close ends the link, its calls and its goroutine.
func (l *Link) Close() {
	l.cancel() // before the look at what there is: see install
	l.mu.Lock()
	l.state, l.since = model.LinkDraining, time.Now()
	all := append([]*session{}, l.draining...)
	if l.cur != nil {
		all = append(all, l.cur)
	}
	l.cur = nil
	l.mu.Unlock()
	for _, s := range all {
		s.kill(errClosed)
	}
	<-l.done
}

// Status returns what the console shows. It never blocks.
func (l *Link) Status() model.LinkStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := model.LinkStatus{
		State: l.state, Generation: l.gen, Since: l.since, LastError: l.lastErr, LastErrAt: l.lastErrAt,
		NextRetry: l.nextRetry, Phase: l.phase, Slots: l.opts.Slots, Endpoint: l.opts.Endpoint,
		Suspect: l.suspect, Calls: l.callCounts(),
	}
	if s := l.cur; s != nil {
		st.InFlight, st.Abandoned = s.inFlight()
		st.RoundTrip = time.Duration(s.conn.roundTrip.Load())
	}
	return st
}

// count notes what became of a call, for its caller.
func (l *Link) count(class Class, err error) {
	l.cmu.Lock()
	defer l.cmu.Unlock()
	c := &l.calls[class]
	switch {
	case errors.Is(err, provider.ErrNotAsked):
		c.NotAsked++
	case errors.Is(err, provider.ErrLinkDown):
		c.Down++
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		c.Left++
	case err != nil:
		c.Done++
		c.Failed++
	default:
		c.Done++
	}
}

func (l *Link) callCounts() [3]model.CallCount {
	l.cmu.Lock()
	defer l.cmu.Unlock()
	return l.calls
}

// session returns the present generation. Callers wait only for the very first
// dial; a link that is down says so at once.
func (l *Link) session(ctx context.Context) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-l.first:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == nil {
		if l.lastErr == "" {
			return nil, provider.ErrLinkDown
		}
		return nil, fmt.Errorf("%w: %s", provider.ErrLinkDown, l.lastErr)
	}
	return l.cur, nil
}

// manage is the link's goroutine: dial, watch, wait, for ever. One goroutine
// dials, so dials are single-flight by construction and outlive every caller.
func (l *Link) manage() {
	defer close(l.done)
	b := &backoff.ExponentialBackOff{
		InitialInterval: l.opts.BackoffMin, Multiplier: 2, RandomizationFactor: 0.2, MaxInterval: l.opts.BackoffMax,
	}
	b.Reset()
	for l.ctx.Err() == nil {
		s, err := l.dialOnce(l.ctx, l.opts.DialTimeout, true)
		if err == nil {
			for s != nil { // a replacement is watched in its turn
				up := time.Now()
				l.install(s)
				s, err = l.watch(s)
				if time.Since(up) >= stable {
					b.Reset()
				}
			}
		}
		if l.ctx.Err() != nil {
			return
		}
		if errors.Is(err, errForced) {
			continue // dial at once
		}
		if wait := l.fail(err, b); !l.sleep(wait) {
			return
		}
	}
}

// sleep waits out the backoff; a kick or the end of the link cuts it short. It
// reports whether the link goes on.
func (l *Link) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.kick:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// fail publishes that the link is down and returns how long to wait.
func (l *Link) fail(err error, b *backoff.ExponentialBackOff) time.Duration {
	l.mu.Lock()
	if l.ctx.Err() != nil { // Close has had the last word
		l.mu.Unlock()
		return 0
	}
	now := time.Now()
	if l.state == model.LinkUp && now.Sub(l.since) >= stable {
		l.outage = now
	}
	b.MaxInterval = l.opts.BackoffMax
	if now.Sub(l.outage) > earlyOutage {
		b.MaxInterval = l.opts.BackoffLate
	}
	if !l.forcedAt.IsZero() && now.Sub(l.forcedAt) < earlyOutage {
		b.MaxInterval = min(forcedMax, l.opts.BackoffMax)
	}
	wait := min(b.NextBackOff(), b.MaxInterval)
	if l.state != model.LinkDown {
		l.state, l.since = model.LinkDown, now
	}
	l.cur, l.phase, l.suspect = nil, "", false
	l.lastErr, l.lastErrAt, l.nextRetry = err.Error(), now, now.Add(wait)
	l.tell(err)
	l.mu.Unlock()
	l.opts.OnChange(l.Status())
	return wait
}

// install makes s the current generation, unless Close came before.
func (l *Link) install(s *session) {
	l.mu.Lock()
	if l.ctx.Err() != nil {
		l.mu.Unlock()
		s.kill(errClosed)
		return
	}
	l.gen++
	s.gen = l.gen
	old := l.cur
	l.cur = s
	l.state, l.since = model.LinkUp, time.Now()
	l.phase, l.nextRetry, l.suspect = "", time.Time{}, false
	if old != nil {
		l.retire(old)
	}
	l.tell(nil)
	l.mu.Unlock()
	l.opts.onUp(l, s)
	l.opts.OnChange(l.Status())
}
