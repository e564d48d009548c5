package controller

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/google/uuid"

	"virdeck/model"
	"virdeck/pool"
)

// managed is what the controller knows of a managed proxy beside its status.
// Its host's mutex guards it.
type managed struct {
	spec    model.BuildSpec // what its VM is to be
	drain   time.Duration   // how long it drains before it is removed
	pool    string          // empty: declared by itself
	ordinal int             // in its pool
	retired bool            // not declared any more: forgotten once it is gone
	grace   time.Time       // until when its VM is kept all the same

	wish      wish
	order     *order    // what an operator has asked for, and what is not so yet
	poolWhy   string    // why its pool has it drained; empty: it has not
	poolDrain time.Time // since when
	drainEnd  time.Time // out of the rotation to be removed, with its tunnels open until then; zero: it is not

	uid        string
	uuid       string // of the domain that is made for uid
	created    time.Time
	hash       string    // of the spec that its VM is of, made or half made; empty: there is none
	built      bool      // Create has once succeeded
	removed    bool      // Delete has succeeded
	adopted    bool      // promoted: its VM was not made by virdeck, and cannot be made again
	recovering bool      // its seed is being read back
	proven     bool      // has been in rotation since it was made
	barren     int       // VMs in a row that were never of use
	useless    time.Time // since when it runs and does not serve
	unused     string    // why that is long enough; empty: it is not

	listed     bool   // in the newest listing
	foreign    string // why what is listed under its name is not its VM; empty: it is
	owner      model.Owner
	ownerKnown bool

	busy  job
	there bool      // its domain was listed when the write began
	from  time.Time // of the write under way
	ended time.Time // of the last write: an older listing does not count
	step  model.Progress
	failure
	done    decision    // the last one
	charge  *pool.Entry // what it was counted as when it left the rotation, while nothing is written yet
	paid    bool        // it is counted in the budget, however often it is tried
	allowed string      // who has it done beyond the budget
}

// failure is what became of the last write, if it failed. It holds up the same
// job, and no other.
type failure struct {
	failed  job    // which job it was; jobNone: none has failed
	lastErr string // in the host's words
	latched bool   // for good
	fails   int    // in a row
	retryAt time.Time
}

// newUID makes the identity of a new VM.
func (c *Controller) newUID() string { return uuid.NewString() }

// newCreds makes credentials that belong to one VM alone, so that a probe which
// passes also proves who answered.
func newCreds(name model.ProxyName) model.Credentials {
	return model.Credentials{User: string(name), Password: rand.Text()}
}

// ownerOf returns the mark that a proxy's VM carries.
func (h *host) ownerOf(p *proxy) model.Owner {
	m := p.m
	return model.Owner{
		Fleet: h.c.settings().Fleet, Proxy: p.spec.Name, UID: m.uid, Controller: h.c.id,
		SpecHash: m.spec.Hash(), Pool: m.pool, CreatedAt: m.created,
	}
}

// identify gives the proxy a uid, and what follows from it. The lock is held.
func (h *host) identify(p *proxy, uid string, created time.Time, creds model.Credentials) {
	m := p.m
	m.become(uid, created.UTC().Truncate(time.Second))
	p.spec.Creds, m.spec.Creds = creds, creds
	if h.via().build != nil {
		b := h.via().build.Identity(h.ownerOf(p))
		p.spec.Domain, m.uuid = b.Domain, b.UUID
	}
}

// become gives the record a uid. An order about the VM stays about it, whatever
// its uid turns out to be.
func (m *managed) become(uid string, created time.Time) {
	if m.order != nil && m.order.uid == m.uid {
		m.order.uid = uid
	}
	m.uid, m.created = uid, created
}

// renew makes room for another VM under the same name. The lock is held.
func (h *host) renew(p *proxy, now time.Time) {
	m := p.m
	barren := m.barren + 1
	if m.proven {
		barren = 0
	}
	p.m = &managed{spec: m.spec, drain: m.drain, pool: m.pool, ordinal: m.ordinal, wish: m.wish, order: m.order, barren: barren}
	h.identify(p, h.c.newUID(), now, newCreds(p.spec.Name))
	p.st = status{}
	h.settle(p, now)
}

// leaving reports whether the proxy's VM is on its way out.
func (p *proxy) leaving() bool { return p.m != nil && (p.m.leaving() || p.m.busy == jobDelete) }

// leaving reports whether it is out of the rotation to be removed.
func (m *managed) leaving() bool { return !m.drainEnd.IsZero() }

// recreates reports whether an operator has asked for another VM, and this one is
// still the old one.
func (m *managed) recreates() bool {
	return m.order != nil && m.order.verb == model.VerbRecreate && m.order.uid == m.uid
}

// remake tells why another VM is to take the place of the one that is there. For
// members of a pool that is the planner's to say, but for an operator's word.
func (m *managed) remake() remake {
	switch {
	case m.recreates():
		return remake{why: m.order.why, by: m.order.by}
	case m.pool == "" && !m.adopted && m.hash != "" && m.hash != m.spec.Hash():
		return remake{why: "its template has changed", by: "the configuration"}
	}
	return remake{why: m.unused}
}

// says puts what a managed VM waits for into words; empty if it waits for
// nothing.
func (m *managed) says() string {
	switch {
	case m == nil:
		return ""
	case m.busy != jobNone && m.step.Step != "":
		return m.busy.String() + ": " + m.step.Step
	case m.busy != jobNone:
		return m.busy.String() + " of its VM"
	case m.wish == wishGone && !m.retired && !m.leaving() && !m.listed:
		return "its VM was removed by an operator; start makes it again"
	case m.wish == wishStop && m.order == nil && !m.leaving():
		return join("stopped by an operator", "; ", m.done.text())
	case m.lastErr != "" && !m.latched && !strings.Contains(m.done.wait, m.lastErr):
		return join(m.done.why, "; ", "the last try failed: "+m.lastErr)
	}
	return m.done.text()
}

// view is the managed part of a proxy's view; nil for others. The lock is held.
func (m *managed) view(p *proxy) *model.ManagedView {
	if m == nil {
		return nil
	}
	v := &model.ManagedView{
		UID: m.uid, Adopted: m.adopted, Domain: p.spec.Domain, Template: m.spec.Template.Name, SpecHash: m.spec.Hash(),
		BuiltHash: m.owner.SpecHash, Owner: m.owner, Wish: m.wanted().String(), Built: m.built,
		LastError: m.lastErr, Latched: m.latched, Fails: m.fails, RetryAt: m.retryAt, CreatedAt: m.created,
	}
	if m.busy != jobNone {
		v.Write, v.WriteFrom, v.Step = m.busy.String(), m.from, m.step
	}
	v.Plan = m.done.text()
	return v
}

// wanted is what is to become of the VM, by the operator's wish and by what is
// declared.
func (m *managed) wanted() wish {
	if m.retired {
		return wishGone
	}
	return m.wish
}

// String returns the word for screens.
func (w wish) String() string {
	switch w {
	case wishRun:
		return "run"
	case wishStop:
		return "stop"
	case wishGone:
		return "gone"
	}
	return "run"
}

// String returns the word for screens.
func (j job) String() string {
	switch j {
	case jobNone:
		return ""
	case jobCreate:
		return "create"
	case jobStart:
		return "start"
	case jobStop:
		return "stop"
	case jobRestart:
		return "restart"
	case jobDrain:
		return "drain"
	case jobDelete:
		return "delete"
	}
	return ""
}

// text puts a decision into a line.
func (d decision) text() string { return join(d.why, "; ", d.wait) }
