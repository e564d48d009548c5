package libvirt

import (
	"context"
	"errors"
	"strings"
	"time"

	"virdeck/model"
	"virdeck/provider"
)

// SetOwner implements provider.Builder. A domain that is another fleet's,
// another controller's or another proxy's is ErrConflict; so is one with a mark
// that cannot be read. Without a phase the domain is marked ready: it was there
// before.
func (h *Host) SetOwner(ctx context.Context, domain string, o model.Owner) error {
	return h.buildErr("mark", domain, h.setOwner(ctx, domain, o))
}

func (h *Host) setOwner(ctx context.Context, domain string, o model.Owner) error {
	if o.Phase == "" {
		o.Phase = model.PhaseReady
	}
	o.CreatedAt = o.CreatedAt.UTC().Truncate(time.Second)
	if _, err := markText(o, ""); err != nil {
		return permanent("%s", err)
	}
	release, err := h.alone(ctx, identify(o).uuid)
	if err != nil {
		return err
	}
	defer release()
	f, err := h.byName(ctx, domain)
	switch {
	case err != nil:
		return err
	case f == nil:
		return provider.ErrNotFound
	case f.broken != nil:
		return conflict("%s", f.whose())
	case f.marked:
		if err := ours(f, o, "marked"); err != nil {
			return err
		}
		if sameOwner(f.owner, o) {
			return nil
		}
	}
	return h.remark(ctx, f, &o)
}

// ClearOwner implements provider.Builder. A domain without a mark is a success,
// and so is one that is not there.
func (h *Host) ClearOwner(ctx context.Context, domain string, o model.Owner) error {
	return h.buildErr("release", domain, h.clearOwner(ctx, domain, o))
}

func (h *Host) clearOwner(ctx context.Context, domain string, o model.Owner) error {
	release, err := h.alone(ctx, identify(o).uuid)
	if err != nil {
		return err
	}
	defer release()
	f, err := h.byName(ctx, domain)
	if err != nil || f == nil {
		return err
	}
	if f.broken == nil && !f.marked {
		return nil
	}
	if err := ours(f, o, "released"); err != nil {
		return err
	}
	return h.remark(ctx, f, nil)
}

// remark writes the mark of a domain that is not virdeck's to hold still. One
// that was started between the look and the write is looked at again: its run
// would keep the mark that it began with.
func (h *Host) remark(ctx context.Context, f *found, o *model.Owner) error {
	if err := h.writeMark(ctx, f, o); err != nil || f.active() {
		return err
	}
	now, err := h.byName(ctx, f.dom.Name)
	if err != nil || now == nil || !now.active() {
		return err
	}
	return h.writeMark(ctx, now, o)
}

// Recover implements provider.Builder: host name, port and credentials, and
// nothing else of the spec. Its errors are those of a read.
func (h *Host) Recover(ctx context.Context, domain string) (model.BuildSpec, error) {
	spec, err := h.recoverSeed(ctx, domain)
	if err != nil {
		return model.BuildSpec{}, h.domErr(domain, err)
	}
	return spec, nil
}

func (h *Host) recoverSeed(ctx context.Context, domain string) (model.BuildSpec, error) {
	f, err := h.byName(ctx, domain)
	if err != nil {
		return model.BuildSpec{}, err
	}
	if f == nil {
		return model.BuildSpec{}, provider.ErrNotFound
	}
	volumes, err := h.volumesOf(ctx, f.dom)
	if err != nil {
		return model.BuildSpec{}, err
	}
	for _, v := range volumes {
		if !strings.HasSuffix(v.Volume, "-seed.iso") {
			continue
		}
		c := newCollector(true)
		if err := h.download(ctx, v.Pool, v.Volume, maxSeed, c); err != nil {
			return model.BuildSpec{}, err
		}
		return seedSpec(c.data)
	}
	return model.BuildSpec{}, errors.New("its definition names no seed volume")
}
