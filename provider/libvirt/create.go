package libvirt

import (
	"bytes"
	"context"
	"errors"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
)

// Create implements provider.Builder. The order is "anchor first": the domain is
// defined, with its mark, before any volume of its own is made, so that whatever
// a crash leaves behind hangs on something that the next look finds. Nothing is
// remembered between two steps but what the host itself shows.
func (h *Host) Create(ctx context.Context, b provider.Build, progress func(model.Progress)) (provider.Built, error) {
	id := identify(b.Owner)
	c := &creation{h: h, id: id, b: b, tell: progress}
	err := c.run(ctx)
	return provider.Built{Domain: c.name(), UUID: formatUUID(id.uuid), MAC: id.mac}, h.buildErr("create", c.name(), err)
}

// creation is one run of Create.
type creation struct {
	h    *Host
	id   identity
	b    provider.Build
	tell teller
	now  *found // the domain as it was seen last; nil: there is none
}

// name is what the domain is called: by us, unless somebody has renamed it.
func (c *creation) name() string {
	if c.now != nil {
		return c.now.dom.Name
	}
	return c.id.domain
}

func (c *creation) run(ctx context.Context) error {
	if err := checkSpec(c.b.Spec); err != nil {
		return permanent("%s", err)
	}
	if _, err := markText(c.mark(model.PhaseNew), ""); err != nil {
		return permanent("%s", err)
	}
	release, err := c.h.alone(ctx, c.id.uuid)
	if err != nil {
		return err
	}
	defer release()
	if err := c.look(ctx); err != nil {
		return err
	}
	unfinished, err := c.unfinished(ctx)
	if err != nil {
		return err
	}
	if unfinished {
		if err := c.build(ctx); err != nil {
			return err
		}
	}
	if err := c.start(ctx); err != nil {
		return err
	}
	return c.autostart(ctx)
}

// mark is the mark that this controller gives the domain.
func (c *creation) mark(p model.MarkPhase) model.Owner {
	o := c.b.Owner
	o.Phase = p
	o.CreatedAt = o.CreatedAt.UTC().Truncate(time.Second)
	return o
}

// look finds the domain, and refuses one that is not ours.
func (c *creation) look(ctx context.Context) error {
	c.tell.step("look for the domain")
	f, err := c.h.byUUID(ctx, c.id.uuid)
	if err != nil {
		return err
	}
	if f == nil {
		c.now = nil
		if f, err = c.h.byName(ctx, c.id.domain); err != nil || f == nil {
			return err
		}
		if f.dom.UUID != c.id.uuid { // else it was defined between the two looks
			return conflict("a domain of this name is there with another UUID (%s): %s", formatUUID(f.dom.UUID), f.whose())
		}
	}
	o := c.b.Owner
	switch {
	case !f.marked || f.owner.Fleet != o.Fleet || f.owner.UID != o.UID:
		return conflict("domain %s has this proxy's UUID, and is not ours: %s", f.dom.Name, f.whose())
	case f.owner.Controller != o.Controller && !c.b.Takeover:
		return conflict("domain %s is another controller's: %s; --takeover takes it over", f.dom.Name, f.whose())
	case f.owner.Phase == model.PhaseDeleting:
		return conflict("domain %s is being removed; that must end first", f.dom.Name)
	}
	c.now = f
	if f.owner.Controller != o.Controller {
		c.tell.step("take the domain over")
		mine := f.owner
		mine.Controller = o.Controller
		return c.h.writeMark(ctx, f, &mine)
	}
	return nil
}

// unfinished says whether the domain's volumes must be made.
func (c *creation) unfinished(ctx context.Context) (bool, error) {
	switch {
	case c.now == nil:
		return true, nil
	case c.now.owner.Phase == model.PhaseReady && c.now.active():
		return false, nil
	case c.now.owner.Phase == model.PhaseReady:
		whole, err := c.volumesThere(ctx)
		if whole || err != nil {
			return false, err
		}
		// Somebody has taken a disk away. There is nothing of it to keep.
		o := c.now.owner
		o.Phase = model.PhaseNew
		return true, c.h.writeMark(ctx, c.now, &o)
	case !c.now.active():
		return true, nil
	}
	// It runs, and its mark says that it is not finished: started by somebody
	// else, or marked anew by a definition that came late. With the right seed it
	// is finished; without, what runs there is nothing that was asked for.
	whole, err := c.seedRight(ctx)
	if err != nil {
		return false, err
	}
	if whole {
		o := c.now.owner
		o.Phase = model.PhaseReady
		return false, c.h.writeMark(ctx, c.now, &o)
	}
	return true, c.h.switchOff(ctx, c.now, c.tell)
}

func (c *creation) volumesThere(ctx context.Context) (bool, error) {
	return step(ctx, c.h, call{Class: ClassRead, What: "look up the volumes"}, func(v *golibvirt.Libvirt) (bool, error) {
		for _, name := range []string{c.id.overlay, c.id.seed} {
			if _, err := findVolume(v, c.b.Spec.Template.Storage, name); isCode(err, codeNoVolume) {
				return false, nil
			} else if err != nil {
				return false, err
			}
		}
		return true, nil
	})
}

func (c *creation) seedRight(ctx context.Context) (bool, error) {
	want, err := seedImage(c.id, c.b.Spec)
	if err != nil {
		return false, err
	}
	got := newCollector(true)
	err = c.h.download(ctx, c.b.Spec.Template.Storage, c.id.seed, maxSeed, got)
	if code(err) == codeNoVolume {
		return false, nil
	}
	return err == nil && bytes.Equal(got.data, want), err
}

// build makes the definition and the volumes, from wherever an earlier run has
// stopped. The domain is not active, or not there.
func (c *creation) build(ctx context.Context) error {
	t := c.b.Spec.Template
	worked, err := c.h.ensureBase(ctx, t, c.tell)
	if err != nil {
		return err
	}
	if worked { // that took its time
		if err := c.look(ctx); err != nil {
			return err
		}
	}
	if err := c.untaken(ctx); err != nil {
		return err
	}
	if err := c.define(ctx, model.PhaseNew); err != nil {
		return err
	}
	if err := c.overlay(ctx); err != nil {
		return err
	}
	if err := c.seed(ctx); err != nil {
		return err
	}
	c.tell.step("mark the domain ready")
	o := c.mark(model.PhaseReady)
	return c.h.writeMark(ctx, c.now, &o)
}

func (c *creation) define(ctx context.Context, phase model.MarkPhase) error {
	t := c.b.Spec.Template
	text, err := domainXML(c.id, c.mark(phase), t)
	if err != nil {
		return permanent("%s", err)
	}
	var flags golibvirt.DomainDefineFlags
	if t.XML != "" {
		flags = golibvirt.DomainDefineValidate // what an operator wrote is held to libvirt's schema
	}
	c.tell.step("define the domain")
	defer c.h.marks.forget(formatUUID(c.id.uuid))
	err = c.h.act(ctx, "define the domain", c.id.domain, func(v *golibvirt.Libvirt) error {
		_, err := v.DomainDefineXMLFlags(text, flags)
		return err
	})
	if err != nil && code(err) != provider.CodeOperationFailed {
		return err
	}
	// Whatever it said: a definition replaces another one of the same UUID and
	// name without a word, and a name that is taken comes with a message that may
	// be translated. What is there now decides.
	if lerr := c.look(ctx); lerr != nil {
		return lerr
	}
	switch {
	case err != nil:
		return err
	case c.now == nil:
		return provider.Transient("it was defined, and is gone", nil)
	}
	return nil
}

func (c *creation) start(ctx context.Context) error {
	if c.now.active() {
		return nil
	}
	c.tell.step("start the domain")
	dom := c.now.dom
	err := c.h.act(ctx, "start the domain", dom.Name, func(v *golibvirt.Libvirt) error { return v.DomainCreate(dom) })
	if code(err) == provider.CodeOperationInvalid { // somebody else was quicker, or it cannot be now
		if lerr := c.look(ctx); lerr != nil {
			return lerr
		}
		if c.now != nil && c.now.active() {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return c.agentTimeout(ctx)
}

// agentTimeout sets the agent's response timeout as soon as there is a process
// to set it for. A first read of the domain does so too, so its failure is none
// of this.
func (c *creation) agentTimeout(ctx context.Context) error {
	in, dom, err := c.h.find(ctx, c.name(), time.Now())
	if err == nil && in.State != model.InstanceStopped {
		info, err := c.h.info(ctx, in, dom)
		if err == nil {
			c.h.setAgentTimeout(ctx, in, dom, info)
		}
	}
	if errors.Is(err, provider.ErrLinkDown) {
		return err
	}
	return ctx.Err()
}

// autostart comes last, so that a VM that is half made never boots by itself.
func (c *creation) autostart(ctx context.Context) error {
	c.tell.step("start it with its host")
	err := c.h.setAutostart(ctx, c.now.dom, true)
	if code(err) != provider.CodeOperationInvalid {
		return err
	}
	// It is transient: somebody has undefined it while it runs, and at its end it
	// would be gone, its volumes nobody's. A definition makes it lasting again.
	if err := c.define(ctx, model.PhaseReady); err != nil {
		return err
	}
	return c.h.setAutostart(ctx, c.now.dom, true)
}

func (h *Host) setAutostart(ctx context.Context, dom golibvirt.Domain, on bool) error {
	var want int32
	if on {
		want = 1
	}
	return h.act(ctx, "set autostart", dom.Name, func(v *golibvirt.Libvirt) error {
		if is, err := v.DomainGetAutostart(dom); err != nil || is == want {
			return err
		}
		return v.DomainSetAutostart(dom, want)
	})
}
