package controller

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"virdeck/model"
	"virdeck/provider"
)

// reach is how a host is reached. It lasts as long as the host's settings do; a
// reload that changes them gives the host another one. The host itself stays,
// with its lock and all that is known of its proxies: whoever holds it goes on
// holding the right one.
type reach struct {
	spec   HostSpec
	prov   provider.Host    // nil for the group of external proxies
	build  provider.Builder // nil where VMs cannot be made
	queue  workqueue.TypedRateLimitingInterface[model.ProxyName]
	over   atomic.Bool        // another one has its place: what its callbacks say is of the past
	cancel context.CancelFunc // stops its loops; nil before they are launched. running.mu guards it
	ended  chan struct{}      // closed when they have ended
}

// via returns how the host is reached now.
func (h *host) via() *reach { return h.reach.Load() }

// external reports whether it is the group of external proxies, which has no
// host to ask.
func (h *host) external() bool { return h.via().prov == nil }

// open gives the host a way to be reached, about which nothing is known yet. Only
// its name and which machine it is outlast the old one. No lock may be held.
func (h *host) open(hs HostSpec) {
	r := &reach{
		spec: hs, ended: make(chan struct{}),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[model.ProxyName](time.Second, 30*time.Second)),
	}
	// With the lock held, so that the first callback finds the new way.
	h.mu.Lock()
	defer h.mu.Unlock()
	h.link, h.downSince, h.nextPoll, h.dirty = model.LinkConnecting, time.Now(), time.Time{}, true
	h.identGen, h.listGen, h.shows, h.misconfig, h.arpBroken, h.domains, h.strangers = 0, 0, "", "", false, -1, nil
	h.pollErr, h.marked, h.unread = "", nil, "the marks on "+string(h.name)+" have not been read yet"
	if hs.Open != nil {
		r.prov = hs.Open(
			func(ev provider.Event) {
				if !r.over.Load() {
					h.onEvent(ev)
				}
			},
			func(ls model.LinkStatus) {
				if !r.over.Load() {
					h.onLink(ls)
				}
			})
		r.build, _ = r.prov.(provider.Builder)
	}
	h.reach.Store(r)
}

// reopen has the host reached by other settings, once what is under way has come
// to rest. After an error it is reached as before.
func (h *host) reopen(hs HostSpec) error {
	if err := h.rest(reloadLimit); err != nil {
		return err
	}
	old := h.via()
	old.over.Store(true)
	h.close()
	h.open(hs)
	h.mu.Lock()
	for _, p := range h.proxies {
		p.next = time.Time{}
	}
	h.resting = false
	h.mu.Unlock()
	h.c.running.launch(h)
	return nil
}

func (h *host) close() {
	if r := h.via(); r.prov != nil {
		r.prov.Close()
	}
}

// run is the life of the host under one reach: its workers and its loop, until
// ctx ends.
func (h *host) run(ctx context.Context, r *reach) {
	defer r.queue.ShutDown()
	if r.prov == nil {
		<-ctx.Done()
		return
	}
	var wg sync.WaitGroup
	for range max(1, h.c.settings().Workers) {
		wg.Go(func() { h.survive(ctx, "worker", h.work) })
	}
	wg.Go(func() { h.survive(ctx, "loop", h.loop) })
	<-ctx.Done()
	r.queue.ShutDown()
	wg.Wait()
}

// rest returns when a host's writes have ended, and stops its loops. After an
// error the host goes on as it was.
func (h *host) rest(limit time.Duration) error {
	h.setResting(true)
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for end := time.Now().Add(limit); ; <-t.C {
		n := h.underWay()
		if n == 0 {
			break
		}
		if time.Now().After(end) {
			h.setResting(false)
			return fmt.Errorf("host %s: %d writes are still under way: its settings are not applied yet; reload again", h.name, n)
		}
	}
	h.c.running.halt(h.via())
	return nil
}

// setResting has no new write begun.
func (h *host) setResting(v bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resting = v
}

// underWay is how many writes the host is being asked for.
func (h *host) underWay() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.writes + h.asked
}

// beginAsked notes a write that an operator has asked for; endAsked must follow.
// The error is for the operator: its settings are being changed, or it has turned
// out to be another machine, or to have lost the proxy, since it was asked for.
func (h *host) beginAsked(p *proxy) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.left(p); err != nil {
		return err
	}
	if h.resting {
		return model.Refuse("the settings of %s are being changed: try again", h.name)
	}
	if why := h.unfit(); why != "" {
		return model.Refuse("%s", why)
	}
	if h.pinned != "" && h.via().prov.Link().Generation != h.identGen {
		return model.Refuse("%s has not said since its link came up which machine it is: try again", h.name)
	}
	h.asked++
	return nil
}

func (h *host) endAsked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked--
}
