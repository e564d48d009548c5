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

// Limits of what an operator's command may take.
const (
	reconnectLimit = 15 * time.Second
	powerLimit     = 60 * time.Second
)

// ops is the list of operators' commands, shared by every session.
type ops struct {
	mu   sync.Mutex
	next model.OpID
	list []model.Op
	wg   sync.WaitGroup
}

// open adds a command, or joins an equal one that is under way.
func (o *ops) open(cmd model.Command, now time.Time) (id model.OpID, joined bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.list {
		c := o.list[i].Command
		if o.list[i].Ended.IsZero() && c.Verb == cmd.Verb && c.Host == cmd.Host && c.Proxy == cmd.Proxy {
			o.list[i].Joined++
			return o.list[i].ID, true
		}
	}
	o.next++
	o.list = append(o.list, model.Op{ID: o.next, Command: cmd, Created: now})
	if n := len(o.list) - opsMax; n > 0 {
		o.list = slices.Clone(o.list[n:])
	}
	return o.next, false
}

func (o *ops) edit(id model.OpID, f func(*model.Op)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.list {
		if o.list[i].ID == id {
			f(&o.list[i])
		}
	}
}

func (o *ops) phase(id model.OpID, phase string) {
	o.edit(id, func(op *model.Op) { op.State, op.Phase = model.OpRunning, phase })
}

func (o *ops) end(id model.OpID, err error, result string) {
	o.edit(id, func(op *model.Op) {
		op.State, op.Phase, op.Result, op.Ended = model.OpDone, "", result, time.Now()
		if err != nil {
			op.State, op.Result = model.OpFailed, err.Error()
		}
	})
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

// Submit accepts or refuses an operator's command. It does not wait for the
// host. The error is a model.Refusal whose text is for the operator.
func (c *Controller) Submit(cmd model.Command) (model.OpID, error) {
	h := c.host(cmd.Host)
	if h == nil {
		return 0, model.Refuse("there is no host %s", cmd.Host)
	}
	var p *proxy
	if cmd.Proxy != "" {
		if p = h.proxy(cmd.Proxy); p == nil {
			return 0, model.Refuse("there is no proxy %s on %s", cmd.Proxy, cmd.Host)
		}
	}
	if err := c.refuse(h, p, cmd); err != nil {
		c.log.Warn("command refused", "verb", cmd.Verb.String(), "host", string(cmd.Host),
			"proxy", string(cmd.Proxy), "by", cmd.By, "why", err.Error())
		return 0, err
	}
	id, joined := c.ops.open(cmd, time.Now())
	c.log.Info("command", "verb", cmd.Verb.String(), "host", string(cmd.Host),
		"proxy", string(cmd.Proxy), "by", cmd.By, "joined", joined)
	if !joined {
		c.start(h, p, cmd, id)
	}
	c.touch()
	return id, nil
}

// refuse returns why a command cannot be carried out now, or nil.
func (c *Controller) refuse(h *host, p *proxy, cmd model.Command) error {
	external := h.prov == nil
	switch cmd.Verb {
	case model.VerbReconcile, model.VerbStart, model.VerbStop, model.VerbRestart:
		if p == nil {
			return model.Refuse("%s needs a proxy", cmd.Verb)
		}
		if external {
			return model.Refuse("%s is external: it has no VM to %s", p.spec.Name, cmd.Verb)
		}
		if c.set.Observer && cmd.Verb != model.VerbReconcile {
			return model.Refuse("this virdeck only observes")
		}
		if ls := h.prov.Link(); ls.State != model.LinkUp {
			return model.Refuse("the link to %s is %s: reconnect it first", h.spec.Name, ls.State)
		}
	case model.VerbReconcileHost:
		if external {
			return model.Refuse("external proxies have no host to look at")
		}
		if ls := h.prov.Link(); ls.State != model.LinkUp {
			return model.Refuse("the link to %s is %s: reconnect it first", h.spec.Name, ls.State)
		}
	case model.VerbReconnect:
		if external {
			return model.Refuse("external proxies have no link")
		}
		if g := h.prov.Link().Generation; cmd.SeenGen != 0 && g != cmd.SeenGen {
			return model.Refuse("the link to %s was replaced meanwhile: it is generation %d now, you saw %d", h.spec.Name, g, cmd.SeenGen)
		}
	case model.VerbDrain, model.VerbUndrain:
		if p == nil {
			return model.Refuse("%s needs a proxy", cmd.Verb)
		}
		h.mu.Lock()
		drained := p.drained
		h.mu.Unlock()
		if drained == (cmd.Verb == model.VerbDrain) {
			return model.Refuse("%s is %s already", p.spec.Name, map[bool]string{true: "drained", false: "not drained"}[drained])
		}
	default:
		return model.Refuse("unknown command")
	}
	return nil
}

// start sets an accepted command going.
func (c *Controller) start(h *host, p *proxy, cmd model.Command, id model.OpID) {
	switch cmd.Verb {
	case model.VerbReconcile:
		c.ops.phase(id, "waiting for its read")
		h.readNow(p, id)
	case model.VerbReconcileHost:
		h.reconcileHost(id)
	case model.VerbReconnect:
		c.ops.wg.Go(func() { h.reconnect(id) })
	case model.VerbDrain, model.VerbUndrain:
		h.setDrained(p, cmd.Verb == model.VerbDrain)
		c.ops.end(id, nil, cmd.Verb.String()+"ed")
	case model.VerbStart, model.VerbStop, model.VerbRestart:
		c.ops.wg.Go(func() { h.power(p, cmd.Verb, id) })
	}
}

// readNow queues a read of a proxy; ops are ended by it.
func (h *host) readNow(p *proxy, ops ...model.OpID) {
	h.mu.Lock()
	p.fresh = true
	p.waiting = append(p.waiting, ops...)
	h.mu.Unlock()
	h.queue.Forget(p.spec.Name)
	h.queue.Add(p.spec.Name)
}

func (h *host) reconcileHost(id model.OpID) {
	h.mu.Lock()
	h.nextPoll = time.Time{}
	ps := slices.Clone(h.proxies)
	h.mu.Unlock()
	h.kickLoop()
	for _, p := range ps {
		h.readNow(p)
	}
	h.c.ops.end(id, nil, fmt.Sprintf("looking at the host and its %d proxies", len(ps)))
}

func (h *host) setDrained(p *proxy, v bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.drained = v
	h.refresh(p, time.Now())
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
				if ph := h.prov.Link().Phase; ph != "" {
					h.c.ops.phase(id, ph)
					h.touchLink()
				}
			}
		}
	})
	rep, err := h.prov.Reconnect(ctx)
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

// power starts, stops or restarts a VM on an operator's word.
func (h *host) power(p *proxy, v model.Verb, id model.OpID) {
	ctx, cancel := context.WithTimeout(h.c.ctx, powerLimit)
	defer cancel()
	h.c.ops.phase(id, v.String()+" of domain "+p.spec.Domain)
	h.c.touch()
	var err error
	switch v {
	case model.VerbStart:
		err = h.prov.Start(ctx, p.spec.Domain)
	case model.VerbStop:
		err = h.prov.Stop(ctx, p.spec.Domain)
	case model.VerbRestart:
		err = h.prov.Restart(ctx, p.spec.Domain)
	case model.VerbReconcile, model.VerbReconcileHost, model.VerbReconnect, model.VerbDrain, model.VerbUndrain:
		return
	}
	h.c.ops.end(id, err, v.String()+" done")
	h.readNow(p)
	h.c.touch()
}
