package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"virdeck/model"
)

// opsKept is how long a finished op stays visible, and opsMax how many ops are
// kept at all.
const (
	opsKept = 5 * time.Minute
	opsMax  = 100
)

// reconnectLimit is how long a reconnect waits for the new link.
const reconnectLimit = 15 * time.Second

// ops is the list of operators' commands, shared by every session.
type ops struct {
	mu   sync.Mutex
	next model.OpID
	list []model.Op
	wg   sync.WaitGroup
	// begun is closed when what a new op asks for is set and, where that is to
	// outlive a crash, on the disk.
	begun map[model.OpID]chan struct{}
	// ended is what has ended and is not written down yet, in order: whoever ends
	// an op may hold a host's lock, and must not wait for the disk.
	ended []model.Op
	news  chan struct{} // capacity 1: there is one more
}

// open adds a command, or joins an equal one that is under way.
func (o *ops) open(cmd model.Command, now time.Time) (id model.OpID, joined bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.list {
		if o.list[i].Ended.IsZero() && same(o.list[i].Command, cmd) {
			o.list[i].Joined++
			return o.list[i].ID, true
		}
	}
	o.next++
	o.list = append(o.list, model.Op{ID: o.next, Command: cmd, Created: now})
	if o.begun == nil {
		o.begun = map[model.OpID]chan struct{}{}
	}
	o.begun[o.next] = make(chan struct{})
	if n := len(o.list) - opsMax; n > 0 { // the oldest that have ended; what is under way stays
		o.list = slices.DeleteFunc(slices.Clone(o.list), func(op model.Op) bool {
			if n <= 0 || op.Ended.IsZero() {
				return false
			}
			n--
			return true
		})
	}
	return o.next, false
}

// begin tells whoever waits for an op that it has begun.
func (o *ops) begin(id model.OpID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.begun[id])
	delete(o.begun, id)
}

// awaitBegun returns once an op has begun.
func (o *ops) awaitBegun(id model.OpID) {
	o.mu.Lock()
	ch := o.begun[id]
	o.mu.Unlock()
	if ch != nil {
		<-ch
	}
}

// same reports whether two commands ask for the same, whoever gave them.
func same(a, b model.Command) bool {
	return a.Verb == b.Verb && a.Host == b.Host && a.Proxy == b.Proxy &&
		(a.Adopt == nil) == (b.Adopt == nil) && (a.Adopt == nil || a.Adopt.Equal(*b.Adopt))
}

// edit changes an op that is under way; false if it has ended.
func (o *ops) edit(id model.OpID, f func(*model.Op)) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.list {
		if o.list[i].ID == id && o.list[i].Ended.IsZero() {
			f(&o.list[i])
			return true
		}
	}
	return false
}

// phase shows what is being done for a command, which cannot be withdrawn from
// then on; false if it has been.
func (o *ops) phase(id model.OpID, phase string) bool {
	return o.edit(id, func(op *model.Op) { op.State, op.Phase = model.OpRunning, phase })
}

// waits shows what a command waits for. One that has not begun can still be
// withdrawn.
func (o *ops) waits(id model.OpID, why string) {
	o.edit(id, func(op *model.Op) { op.Phase = why })
}

func (o *ops) end(id model.OpID, err error, result string) {
	state := model.OpDone
	if err != nil {
		state, result = model.OpFailed, err.Error()
	}
	o.close(id, state, result)
}

// close ends an op, once.
func (o *ops) close(id model.OpID, state model.OpState, result string) {
	o.edit(id, func(op *model.Op) {
		op.State, op.Phase, op.Result, op.Ended = state, "", result, time.Now()
		o.ended = append(o.ended, *op)
		select {
		case o.news <- struct{}{}:
		default:
		}
	})
}

// takeEnded hands over what has ended since the last time.
func (o *ops) takeEnded() []model.Op {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.ended
	o.ended = nil
	return out
}

// get returns an op by id.
func (o *ops) get(id model.OpID) (model.Op, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range o.list {
		if op.ID == id {
			return op, true
		}
	}
	return model.Op{}, false
}

// snapshot returns a copy of what is still worth showing.
func (o *ops) snapshot(now time.Time) []model.Op {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = slices.DeleteFunc(o.list, func(op model.Op) bool {
		return !op.Ended.IsZero() && now.Sub(op.Ended) > opsKept
	})
	return slices.Clone(o.list)
}

func (o *ops) wait() { o.wg.Wait() }

// readNow queues a read of a proxy; ops are ended by it. The error says that it is
// no proxy of the host any more.
func (h *host) readNow(p *proxy, ops ...model.OpID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.left(p); err != nil {
		return err
	}
	p.fresh = true
	p.waiting = append(p.waiting, ops...)
	h.via().queue.Forget(p.spec.Name)
	h.via().queue.Add(p.spec.Name)
	return nil
}

func (h *host) reconcileHost(id model.OpID) {
	h.mu.Lock()
	h.nextPoll = time.Time{}
	ps := slices.Clone(h.proxies)
	h.mu.Unlock()
	h.kickLoop()
	for _, p := range ps {
		_ = h.readNow(p) // one that has left meanwhile is none of it
	}
	h.c.ops.end(id, nil, fmt.Sprintf("looking at the host and its %d proxies", len(ps)))
}

func (h *host) setDrained(p *proxy, v bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.left(p); err != nil {
		return err
	}
	p.drained = v
	h.refresh(p, time.Now())
	return nil
}

// reconnect replaces the link, showing its phases.
func (h *host) reconnect(id model.OpID) {
	ctx, cancel := context.WithTimeout(h.c.ctx, reconnectLimit)
	defer cancel()
	h.c.ops.phase(id, "closing the old connection")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(200 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				if ph := h.via().prov.Link().Phase; ph != "" {
					h.c.ops.phase(id, ph)
					h.touchLink()
				}
			}
		}
	})
	rep, err := h.via().prov.Reconnect(ctx)
	close(stop)
	wg.Wait()
	result := fmt.Sprintf("generation %d up after %s", rep.To, rep.Took.Round(10*time.Millisecond))
	if n := len(rep.Interrupted); n > 0 {
		result += fmt.Sprintf("; interrupted %d calls: %s", n, rep.Interrupted[0])
	}
	if err != nil {
		err = fmt.Errorf("%w; dialling goes on", err)
	}
	h.c.ops.end(id, err, result)
	h.touchLink()
}

func (h *host) touchLink() {
	h.mu.Lock()
	h.dirty = true
	h.mu.Unlock()
	h.c.touch()
}
