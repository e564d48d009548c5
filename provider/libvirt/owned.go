package libvirt

import (
	"context"
	"fmt"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
)

const elementMetadata = int32(golibvirt.DomainMetadataElement)

// found is a domain as it is now.
type found struct {
	dom    golibvirt.Domain
	marked bool
	owner  model.Owner
	broken error // a mark that cannot be read
}

func (f found) active() bool { return f.dom.ID >= 0 }

// whose describes the owner of a domain to an operator.
func (f found) whose() string {
	switch {
	case f.broken != nil:
		return fmt.Sprintf("its mark cannot be read (%v)", f.broken)
	case !f.marked:
		return "it has no mark"
	}
	return fmt.Sprintf("it is marked as proxy %q (uid %s) of fleet %q, controller %s", f.owner.Proxy, f.owner.UID, f.owner.Fleet, f.owner.Controller)
}

// byUUID and byName return nothing, and no error, when there is none.
func (h *Host) byUUID(ctx context.Context, u golibvirt.UUID) (*found, error) {
	return h.lookUp(ctx, "look the domain up by UUID", func(v *golibvirt.Libvirt) (golibvirt.Domain, error) { return v.DomainLookupByUUID(u) })
}

func (h *Host) byName(ctx context.Context, name string) (*found, error) {
	return h.lookUp(ctx, "look the domain up by name", func(v *golibvirt.Libvirt) (golibvirt.Domain, error) { return v.DomainLookupByName(name) })
}

func (h *Host) lookUp(ctx context.Context, what string, fn func(*golibvirt.Libvirt) (golibvirt.Domain, error)) (*found, error) {
	dom, err := step(ctx, h, call{Class: ClassRead, What: what}, fn)
	if code(err) == provider.CodeNoDomain {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := found{dom: dom}
	text, err := h.readMark(ctx, dom, golibvirt.DomainAffectConfig)
	if code(err) == provider.CodeOperationInvalid { // a transient domain has no configuration
		text, err = h.readMark(ctx, dom, golibvirt.DomainAffectLive)
	}
	switch {
	case code(err) == codeNoMetadata:
	case code(err) == provider.CodeNoDomain:
		return nil, nil // gone in between
	case err != nil:
		return nil, err
	default:
		f.owner, f.broken = parseMark(text)
		f.marked = f.broken == nil
	}
	return &f, nil
}

func (h *Host) readMark(ctx context.Context, dom golibvirt.Domain, from golibvirt.DomainModificationImpact) (string, error) {
	return step(ctx, h, call{Class: ClassRead, What: "read the mark", Domain: dom.Name},
		func(v *golibvirt.Libvirt) (string, error) {
			return v.DomainGetMetadata(dom, elementMetadata, golibvirt.OptString{markURI}, from)
		})
}

// writeMark sets the mark, or takes it away (nil), in the configuration and, in a
// domain that runs, there too: else it would be lost with this run, or show only
// after it.
func (h *Host) writeMark(ctx context.Context, f *found, o *model.Owner) error {
	var text, key golibvirt.OptString
	what := "take the mark away"
	if o != nil {
		t, err := markText(*o, "")
		if err != nil {
			return err
		}
		text, key, what = golibvirt.OptString{t}, golibvirt.OptString{markKey}, "mark the domain "+string(o.Phase)
	}
	set := func(to golibvirt.DomainModificationImpact) error {
		return h.act(ctx, what, f.dom.Name, func(v *golibvirt.Libvirt) error {
			return v.DomainSetMetadata(f.dom, elementMetadata, text, key, golibvirt.OptString{markURI}, to)
		})
	}
	defer h.marks.forget(formatUUID(f.dom.UUID))
	to := golibvirt.DomainAffectConfig
	if f.active() {
		to |= golibvirt.DomainAffectLive
	}
	err := set(to)
	if code(err) == provider.CodeOperationInvalid { // it has stopped meanwhile, or is transient
		one := golibvirt.DomainAffectConfig
		if f.active() {
			if err = set(one); code(err) == provider.CodeOperationInvalid {
				one = golibvirt.DomainAffectLive
				err = set(one)
			}
		}
	}
	if err != nil {
		if o == nil && code(err) == codeNoMetadata {
			return nil
		}
		return err
	}
	if o != nil {
		f.owner, f.marked, f.broken = *o, true, nil
	}
	return nil
}
