package controller

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/google/uuid"

	"virdeck/model"
)

// managed is what the controller knows of a managed proxy beside its status.
// Its host's mutex guards it.
type managed struct {
	spec       model.BuildSpec // what its VM is to be
	hash       string          // of what its VM was made from; empty while there is none
	drain      time.Duration   // how long it drains before it is removed
	pool       string          // empty: declared by itself
	ordinal    int             // in its pool
	poolDrain  time.Time       // since when the pool has it drained
	proven     bool            // has been in rotation since it was made
	barren     int             // VMs in a row that were never of use
	unused     bool            // replace was set because it is of no use
	useless    time.Time       // since when it runs and does not serve
	recovering bool            // its seed is being read back
	grace      time.Time       // until when its VM is kept though it is not declared any more

	uid      string
	created  time.Time
	built    bool // Create has once succeeded
	removed  bool // Delete has succeeded
	adopted  bool // promoted: its VM was not made by virdeck, and cannot be made again
	wish     wish
	retired  bool   // not declared any more: forgotten once it is gone
	replace  string // why another VM is to take its place
	operator bool   // an operator asked for that
	by       string // who
	leaving  bool
	drainEnd time.Time

	listed     bool // in the newest listing
	owner      model.Owner
	ownerKnown bool

	busy    job
	why     string    // of the write under way
	from    time.Time // of the write under way
	ended   time.Time // of the last write: an older listing does not count
	step    model.Progress
	lastErr string
	latched bool
	fails   int
	retryAt time.Time
	done    decision // the last one
	ops     []model.OpID
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
	m.uid, m.created = uid, created.UTC().Truncate(time.Second)
	p.spec.Creds, m.spec.Creds = creds, creds
	if h.via().build != nil {
		p.spec.Domain = h.via().build.Identity(h.ownerOf(p)).Domain
	}
}

// renew makes room for another VM under the same name. The lock is held.
func (h *host) renew(p *proxy, now time.Time) {
	m := p.m
	barren := m.barren + 1
	if m.proven {
		barren = 0
	}
	p.m = &managed{spec: m.spec, drain: m.drain, pool: m.pool, ordinal: m.ordinal, ops: m.ops, barren: barren}
	h.identify(p, h.c.newUID(), now, newCreds(p.spec.Name))
	p.st = status{}
	h.settle(p, now)
}

// leaving reports whether the proxy's VM is on its way out.
func (p *proxy) leaving() bool {
	return p.m != nil && (p.m.leaving || p.m.busy == jobDelete)
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
	case m.wish == wishGone && !m.retired && !m.leaving && !m.listed:
		return "its VM was removed by an operator; start makes it again"
	case m.wish == wishStop:
		return "stopped by an operator"
	case m.lastErr != "" && !m.latched && !strings.Contains(m.done.wait, m.lastErr):
		return m.done.why + "; the last try failed: " + m.lastErr
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
		BuiltHash: m.owner.SpecHash, Owner: m.owner, Wish: m.wish.String(), Built: m.built,
		LastError: m.lastErr, Latched: m.latched, Fails: m.fails, RetryAt: m.retryAt, CreatedAt: m.created,
	}
	if m.busy != jobNone {
		v.Write, v.WriteFrom, v.Step = m.busy.String(), m.from, m.step
	}
	v.Plan = m.done.text()
	return v
}

// String returns the word for screens and the store.
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
	case jobDrain:
		return "drain"
	case jobDelete:
		return "delete"
	}
	return ""
}

// text puts a decision into a line.
func (d decision) text() string {
	switch {
	case d.why == "":
		return d.wait
	case d.wait == "":
		return d.why
	}
	return d.why + "; " + d.wait
}
