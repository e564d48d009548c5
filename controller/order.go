package controller

import (
	"fmt"
	"time"

	"virdeck/model"
)

// order is what an operator has asked of a managed proxy, and what is not so yet.
// There is at most one of a proxy, the newest. It stands until the host shows what
// it asks for, however often that has to be tried. It comes to nothing if it is
// withdrawn, overtaken, or refused by the host for good; then what was wanted
// before it is wanted again, so that nothing that was told as failed comes true
// later. A removal alone cannot be taken back once it has begun: it goes on.
type order struct {
	verb model.Verb        // start, stop, restart, recreate or delete
	by   string            // who, for the budget; never empty
	why  string            // for the plan
	op   model.OpID        // 0: an earlier process accepted it
	at   time.Time         // when; an older look does not show that it is so
	was  wish              // before it
	uid  string            // of the VM that it is about
	run  model.Incarnation // of that VM; empty: not known
}

// aim is what an order wants of the VM.
func aim(v model.Verb) wish {
	switch v { //nolint:exhaustive // the others are no orders
	case model.VerbStop:
		return wishStop
	case model.VerbDelete:
		return wishGone
	}
	return wishRun
}

// serves reports whether a job is done for the order.
func (o *order) serves(j job) bool {
	switch j {
	case jobCreate, jobStart:
		return aim(o.verb) == wishRun
	case jobRestart:
		return o.verb == model.VerbRestart
	case jobStop:
		return o.verb == model.VerbStop
	case jobDelete:
		return o.verb == model.VerbDelete || o.verb == model.VerbRecreate
	case jobNone, jobDrain:
	}
	return false
}

// crowns reports whether the order is carried out when the job is done, on the VM
// that has the uid. What finishes the making of a VM that is there already is no
// other run of it.
func (o *order) crowns(j job, uid string, there bool) bool {
	switch {
	case !o.serves(j) || j == jobDelete:
		return false
	case o.verb == model.VerbRecreate:
		return uid != o.uid
	case o.verb == model.VerbRestart:
		return j != jobCreate || !there
	}
	return true
}

// order takes in what an operator asks of a managed proxy; false if it is none,
// and an error if it is no proxy of this host any more.
func (h *host) order(p *proxy, cmd model.Command, id model.OpID, now time.Time) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.left(p); err != nil {
		return false, err
	}
	m := p.m
	if m == nil {
		return false, nil
	}
	o := &order{
		verb: cmd.Verb, by: cmd.By, why: fmt.Sprintf("%s, asked for by %s", cmd.Verb, cmd.By), op: id, at: now,
		was: m.wish, uid: m.uid,
	}
	if h.unreachable(m) == "" {
		o.run = p.st.incarnation
	}
	if o.by == "" {
		o.by = "an operator"
	}
	if old := m.order; old != nil {
		o.was = old.was
		h.c.ops.close(old.op, model.OpCanceled, "overtaken by "+o.why)
	}
	m.order, m.wish, m.failure = o, aim(o.verb), failure{}
	if o.verb == model.VerbRecreate {
		m.barren = 0
	}
	m.useless, m.unused = time.Time{}, "" // whoever asks knows what it is of use for
	h.nextPoll = time.Time{}
	h.refresh(p, now)
	h.kickLoop()
	h.c.kickManage()
	return true, nil
}

// overtaken tells why nothing comes of an order to a proxy that is retired.
func (m *managed) overtaken() string {
	if m.poolWhy != "" {
		return "overtaken by its pool: " + m.poolWhy
	}
	return "overtaken: it is not declared any more"
}

// fulfil ends the order of p, which is as it asks. The lock is held.
func (h *host) fulfil(p *proxy, result string) {
	if o := p.m.order; o != nil {
		p.m.order = nil
		h.c.ops.end(o.op, nil, result)
	}
}

// void takes the order of p back, and returns it; nil if there is none. Whoever
// waits for it is to be told, once that is remembered. The lock is held.
func (h *host) void(p *proxy) *order {
	m := p.m
	o := m.order
	if o == nil {
		return nil
	}
	m.order = nil
	if m.wish != o.was { // what has failed is not wanted any more
		m.wish, m.failure = o.was, failure{}
	}
	h.refresh(p, time.Now())
	h.c.kickManage()
	return o
}

// overrule ends the order of p, which cannot be carried out. The lock is held.
func (h *host) overrule(p *proxy, why string) {
	if o := h.void(p); o != nil {
		h.c.ops.end(o.op, model.Refuse("%s", why), "")
	}
}
