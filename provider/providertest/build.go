package providertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// BuildRig is a rig on which VMs may be made. A rig that is none plays no case of
// it.
type BuildRig interface {
	Rig
	// Builder is the same host as Host.
	Builder() provider.Builder
	// Build is a VM that boots here, for a proxy of that name in a fleet that
	// nobody else has. Its guest gets an address; its end is the rig's.
	Build(proxy string) provider.Build
	// Left returns the names of all domains and volumes that are there for that
	// fleet, by the rig's own eyes: all that begin with the fleet's name. A base
	// image is none of them.
	Left() []string
	// Foreign defines a domain of that name, shut off, that nobody has marked.
	Foreign(domain string) error
}

func buildCases() []testCase {
	return []testCase{
		{"a VM is made, twice: it runs, with its mark, its address and its seed", makeTwice},
		{"a VM is removed, twice: nothing is left, and its neighbour stays", removeTwice},
		{"two creates of one owner at once make one VM", makeTogether},
		{"a create whose caller leaves is finished by the next one", makeAndLeave},
		{"a link that breaks under a create: the next one finishes it", makeUnderReconnect},
		{"a foreign domain of the same name is a conflict, and stays", foreignStays},
		{"another controller's VM is a conflict, until it is taken over", takeOver},
		{"an existing domain is marked and released, and nothing else", markAndRelease},
		{"a spec that cannot be is permanent, and makes nothing", impossible},
	}
}

// builder is the rig as one that builds.
func (c *suite) builder() (BuildRig, provider.Builder) {
	c.Helper()
	r, ok := c.rig.(BuildRig)
	if !ok {
		panic(lacking{errors.New("make VMs")})
	}
	return r, r.Builder()
}

// whole is how long a VM may take to be made or removed.
func (c *suite) whole() time.Duration { return c.pat.Boot + c.pat.Stop }

func (c *suite) create(b provider.Build) (provider.Built, error) {
	c.Helper()
	_, h := c.builder()
	ctx, cancel := c.ctx(c.whole())
	defer cancel()
	return h.Create(ctx, b, nil)
}

// made is create that must work.
func (c *suite) made(b provider.Build) provider.Built {
	c.Helper()
	built, err := c.create(b)
	if err != nil {
		c.Fatalf("create: %v", err)
	}
	_, h := c.builder()
	if want := h.Identity(b.Owner); built != want {
		c.Errorf("built %+v, want %+v", built, want)
	}
	return built
}

func (c *suite) remove(b provider.Build) error {
	c.Helper()
	_, h := c.builder()
	ctx, cancel := c.ctx(c.whole())
	defer cancel()
	return h.Delete(ctx, provider.Deletion{Owner: b.Owner, Domain: h.Identity(b.Owner).Domain, Storage: b.Spec.Template.Storage}, nil)
}

// seen returns a domain with its mark as a listing shows it.
func (c *suite) seen(domain string) model.Instance {
	c.Helper()
	var in model.Instance
	c.await(c.pat.Call, "the mark of "+domain+" is known", func() bool {
		l, err := c.list()
		if err != nil {
			return false
		}
		found, ok := l.Find(domain)
		if !ok {
			c.Fatalf("no domain %s is listed", domain)
		}
		in = found
		return in.OwnerKnown
	})
	return in
}

// finished checks that a VM is what was asked for.
func (c *suite) finished(b provider.Build) model.Instance {
	c.Helper()
	rig, h := c.builder()
	id := h.Identity(b.Owner)
	in := c.seen(id.Domain)
	want := b.Owner
	want.Phase = model.PhaseReady
	if in.Domain != model.DomainRunning || in.UUID != id.UUID || in.Owner != want {
		c.Errorf("domain %v, UUID %s, mark %+v; want it running, %s, %+v", in.Domain, in.UUID, in.Owner, id.UUID, want)
	}
	if left := rig.Left(); !slices.Contains(left, id.Domain) {
		c.Errorf("no domain %s among %q", id.Domain, left)
	}
	ctx, cancel := c.ctx(c.whole()) // a transfer, not a call
	defer cancel()
	spec, err := h.Recover(ctx, id.Domain)
	if err != nil || spec.Port != b.Spec.Port || spec.Creds != b.Spec.Creds {
		c.Errorf("recovered port %d, user %q, %v", spec.Port, spec.Creds.User, err)
	}
	return in
}

func makeTwice(c *suite) {
	rig, _ := c.builder()
	b := rig.Build("p-01")
	built := c.made(b)
	run := c.finished(b).Incarnation
	c.await(c.pat.Boot, "the new VM has an address", func() bool {
		ctx, cancel := c.ctx(c.pat.Agent)
		defer cancel()
		in, err := c.host.Get(ctx, provider.GetRequest{Domain: built.Domain, Sources: model.Sources(), Fresh: true})
		return err == nil && in.State == model.InstanceRunning
	})
	left := rig.Left()
	c.made(b)
	if again := c.finished(b).Incarnation; again != run {
		c.Errorf("incarnation %q after %q: it was started anew", again, run)
	}
	if now := rig.Left(); !slices.Equal(now, left) || len(now) != 3 {
		c.Errorf("there is %q, there was %q; want a domain and two volumes", now, left)
	}
}

func removeTwice(c *suite) {
	rig, _ := c.builder()
	gone, stays := rig.Build("p-01"), rig.Build("p-02")
	c.made(gone)
	c.made(stays)
	for i := range 2 {
		if err := c.remove(gone); err != nil {
			c.Fatalf("removal %d: %v", i+1, err)
		}
	}
	if left := rig.Left(); len(left) != 3 {
		c.Errorf("there is %q, want a domain and two volumes", left)
	}
	c.finished(stays)
	l, err := c.list()
	if _, is := l.Find(c.identity(gone).Domain); err != nil || is {
		c.Errorf("it is listed: %v, %v", is, err)
	}
}

func (c *suite) identity(b provider.Build) provider.Built {
	_, h := c.builder()
	return h.Identity(b.Owner)
}

func makeTogether(c *suite) {
	rig, _ := c.builder()
	b := rig.Build("p-01")
	var wg sync.WaitGroup
	var errs [3]error
	for i := range errs {
		wg.Go(func() { _, errs[i] = c.create(b) })
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		c.Error(err)
	}
	c.finished(b)
	if left := rig.Left(); len(left) != 3 {
		c.Errorf("there is %q, want a domain and two volumes", left)
	}
}

// steps runs a create that is disturbed at its n-th step, for every n there is;
// over waits for the end of the disturbance.
func (c *suite) steps(b provider.Build, disturb func(leave context.CancelFunc), over func()) {
	c.Helper()
	_, h := c.builder()
	for n := 1; ; n++ {
		ctx, cancel := c.ctx(c.whole())
		at, last := 0, ""
		hit := false
		_, err := h.Create(ctx, b, func(p model.Progress) {
			if p.Step == last {
				return
			}
			last = p.Step
			if at++; at == n {
				hit = true
				disturb(cancel)
			}
		})
		cancel()
		over()
		if class := provider.Classify(err); class != provider.ClassNone && class != provider.ClassTransient {
			c.Errorf("disturbed in step %d: %v", n, err)
		}
		if !hit {
			if err != nil {
				c.Errorf("undisturbed: %v", err)
			}
			return
		}
		c.await(c.pat.Recover, "the link is up", c.up)
		c.await(c.whole(), "the next create has its way", func() bool {
			_, err = c.create(b)
			return err == nil
		})
		c.finished(b)
		if err := c.remove(b); err != nil {
			c.Fatal(err)
		}
	}
}

func makeAndLeave(c *suite) {
	rig, _ := c.builder()
	gen := c.generation()
	b := rig.Build("p-01")
	c.steps(b, func(leave context.CancelFunc) { leave() }, func() {})
	if g := c.generation(); g != gen {
		c.Errorf("generation %d after %d: who leaves harms the link", g, gen)
	}
	c.finished(b)
}

func makeUnderReconnect(c *suite) {
	rig, _ := c.builder()
	b := rig.Build("p-01")
	var wg sync.WaitGroup
	c.steps(b, func(context.CancelFunc) {
		wg.Go(func() {
			ctx, cancel := c.ctx(c.pat.Recover)
			defer cancel()
			if _, err := c.host.Reconnect(ctx); err != nil && provider.Classify(err) != provider.ClassTransient {
				c.Errorf("reconnect: %v", err)
			}
		})
	}, wg.Wait)
	c.finished(b)
}

func foreignStays(c *suite) {
	rig, _ := c.builder()
	b := rig.Build("p-01")
	name := c.identity(b).Domain
	if err := rig.Foreign(name); err != nil {
		c.Fatalf("the rig could not define a domain: %v", err)
	}
	if _, err := c.create(b); provider.Classify(err) != provider.ClassConflict {
		c.Errorf("create: %v, want a conflict", err)
	}
	if err := c.remove(b); provider.Classify(err) != provider.ClassConflict {
		c.Errorf("delete: %v, want a conflict", err)
	}
	in := c.seen(name)
	if left := rig.Left(); len(left) != 1 || in.Domain != model.DomainShutoff || !in.Owner.Zero() || in.UUID == c.identity(b).UUID {
		c.Errorf("there is %q, and the domain is %v, marked %+v", left, in.Domain, in.Owner)
	}
}

func takeOver(c *suite) {
	rig, _ := c.builder()
	b := rig.Build("p-01")
	c.made(b)
	run := c.finished(b).Incarnation
	b.Owner.Controller += "-other"
	if _, err := c.create(b); provider.Classify(err) != provider.ClassConflict {
		c.Errorf("create: %v, want a conflict", err)
	}
	if err := c.remove(b); provider.Classify(err) != provider.ClassConflict {
		c.Errorf("delete: %v, want a conflict", err)
	}
	b.Takeover = true
	c.made(b)
	if in := c.finished(b); in.Incarnation != run {
		c.Errorf("incarnation %q after %q: it was started anew", in.Incarnation, run)
	}
	if err := c.remove(b); err != nil {
		c.Error(err)
	}
}

func markAndRelease(c *suite) {
	rig, h := c.builder()
	o := rig.Build("p-01").Owner
	name := c.rig.Name(Off)
	set := func(f func(context.Context, string, model.Owner) error, o model.Owner) error {
		ctx, cancel := c.ctx(c.pat.Call)
		defer cancel()
		return f(ctx, name, o)
	}
	if in := c.seen(name); !in.Owner.Zero() {
		c.Errorf("at first it is marked %+v", in.Owner)
	}
	for range 2 {
		if err := set(h.SetOwner, o); err != nil {
			c.Fatal(err)
		}
	}
	c.pause(c.pat.Shared)
	want := o
	want.Phase = model.PhaseReady
	if in := c.seen(name); in.Owner != want || in.Domain != model.DomainShutoff {
		c.Errorf("it is marked %+v, want %+v, and %v", in.Owner, want, in.Domain)
	}
	other := o
	other.Controller += "-other"
	if err := set(h.SetOwner, other); provider.Classify(err) != provider.ClassConflict {
		c.Errorf("marked by another: %v, want a conflict", err)
	}
	if err := set(h.ClearOwner, other); provider.Classify(err) != provider.ClassConflict {
		c.Errorf("released by another: %v, want a conflict", err)
	}
	for range 2 {
		if err := set(h.ClearOwner, o); err != nil {
			c.Fatal(err)
		}
	}
	c.pause(c.pat.Shared)
	if in := c.seen(name); !in.Owner.Zero() || in.Domain != model.DomainShutoff {
		c.Errorf("released, it is marked %+v, and %v", in.Owner, in.Domain)
	}
}

func impossible(c *suite) {
	rig, _ := c.builder()
	b := rig.Build("p-01")
	b.Spec.Template.VCPUs = 0
	if _, err := c.create(b); provider.Classify(err) != provider.ClassPermanent {
		c.Errorf("%v, want a permanent one", err)
	}
	if left := rig.Left(); len(left) != 0 {
		c.Errorf("there is %q", left)
	}
}
