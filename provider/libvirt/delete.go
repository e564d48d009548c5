package libvirt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"

	"virdeck/model"
	"virdeck/provider"
)

// offLimit is how long a domain that was switched off may take to be off: the
// daemon itself waits 15 s for a process that does not die.
const offLimit = 20 * time.Second

// undefineAll takes away what libvirt keeps beside a definition: managed save,
// snapshots, NVRAM, checkpoints, TPM. A domain that has such a thing is refused
// without its flag.
const undefineAll = golibvirt.DomainUndefineManagedSave | golibvirt.DomainUndefineSnapshotsMetadata | golibvirt.DomainUndefineNvram |
	golibvirt.DomainUndefineCheckpointsMetadata | golibvirt.DomainUndefineTpm

// Delete implements provider.Builder. The order is "anchor last": the definition
// with its mark goes after everything that hangs on it. A volume goes only after
// the domain was seen to be off.
//
// Of volumes the two go that Create makes for this owner, and no others: never a
// base, never the disks of a domain that was adopted. With the domain gone they
// are named after d.Domain, or after all of d.Owner.
func (h *Host) Delete(ctx context.Context, d provider.Deletion, progress func(model.Progress)) error {
	id := identify(d.Owner)
	name := d.Domain
	if name == "" {
		name = id.domain
	}
	return h.buildErr("delete", name, h.remove(ctx, d, id, name, progress))
}

func (h *Host) remove(ctx context.Context, d provider.Deletion, id identity, name string, tell teller) error {
	release, err := h.alone(ctx, id.uuid)
	if err != nil {
		return err
	}
	defer release()
	tell.step("look for the domain")
	f, err := h.byName(ctx, name)
	if err != nil {
		return err
	}
	if f == nil { // renamed, or gone
		if f, err = h.byUUID(ctx, id.uuid); err != nil {
			return err
		}
	}
	w := wreck{tail: nameTail(d.Owner), storage: d.Storage, uuid: id.uuid}
	w.name(name)
	if f == nil {
		w.name(id.domain)
		return h.clear(ctx, w, tell)
	}
	if err := ours(f, d.Owner, "deleted"); err != nil {
		return err
	}
	w.uuid = f.dom.UUID
	w.name(identify(f.owner).domain)
	if err := h.findStorage(ctx, f, &w); err != nil {
		return err
	}
	if f.owner.Phase != model.PhaseDeleting {
		tell.step("mark the domain deleting")
		o := f.owner
		o.Phase = model.PhaseDeleting
		if err := h.writeMark(ctx, f, &o); err != nil {
			return err
		}
	}
	if err := h.setAutostart(ctx, f.dom, false); err != nil && code(err) != provider.CodeOperationInvalid { // a transient one has none
		return err
	}
	if err := h.switchOff(ctx, f, tell); err != nil {
		return err
	}
	if err := h.clear(ctx, w, tell); err != nil {
		return err
	}
	tell.step("remove the domain")
	err = h.act(ctx, "remove the domain", f.dom.Name, func(v *golibvirt.Libvirt) error {
		// One that runs would only become transient, and be nobody's at its end.
		if err := mustBeOff(v, w.uuid); err != nil {
			return err
		}
		return v.DomainUndefineFlags(f.dom, undefineAll)
	})
	if code(err) == provider.CodeNoDomain {
		return nil
	}
	return err
}

// ours refuses a domain that is not the owner's.
func ours(f *found, o model.Owner, what string) error {
	switch {
	case !f.marked || f.owner.Fleet != o.Fleet || f.owner.UID != o.UID:
		return conflict("domain %s is not ours and is not %s: %s", f.dom.Name, what, f.whose())
	case f.owner.Controller != o.Controller:
		return conflict("domain %s is another controller's and is not %s: %s", f.dom.Name, what, f.whose())
	}
	return nil
}

// switchOff returns when the domain does not run.
func (h *Host) switchOff(ctx context.Context, f *found, tell teller) error {
	if !f.active() {
		return nil
	}
	tell.step("switch the domain off")
	end := time.Now().Add(offLimit)
	for {
		err := h.act(ctx, "switch off", f.dom.Name, func(v *golibvirt.Libvirt) error { return v.DomainDestroyFlags(f.dom, 0) })
		if c := code(err); err != nil && c != provider.CodeOperationInvalid && c != provider.CodeNoDomain {
			return err
		}
		dom, err := step(ctx, h, call{Class: ClassRead, What: "look whether it is off"},
			func(v *golibvirt.Libvirt) (golibvirt.Domain, error) { return v.DomainLookupByUUID(f.dom.UUID) })
		if code(err) == provider.CodeNoDomain {
			f.dom.ID = -1 // it was transient
			return nil
		}
		if err != nil {
			return err
		}
		if f.dom = dom; !f.active() {
			return nil
		}
		if time.Now().After(end) {
			return provider.Transient(fmt.Sprintf("it still runs %s after it was switched off", offLimit), nil)
		}
		t := time.NewTimer(500 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// wreck is what is left of a VM beside its definition.
type wreck struct {
	tail    string // of the names of what was made for this owner
	storage string
	uuid    golibvirt.UUID
	volumes []string
}

// name adds the volumes of a domain of that name, if Create may have made it.
func (w *wreck) name(domain string) {
	if !strings.HasSuffix(domain, w.tail) {
		return
	}
	overlay, seed := volumeNames(domain)
	w.volumes = append(w.volumes, seed, overlay)
}

// findStorage reads the pool of the domain's volumes from its definition, which
// knows better than whoever asks.
func (h *Host) findStorage(ctx context.Context, f *found, w *wreck) error {
	pools, err := h.volumesOf(ctx, f.dom)
	if err != nil {
		return err
	}
	for _, v := range pools {
		if slices.Contains(w.volumes, v.Volume) {
			w.storage = v.Pool
			return nil
		}
	}
	return nil
}

// volumesOf returns the volumes that a domain's definition names.
func (h *Host) volumesOf(ctx context.Context, dom golibvirt.Domain) ([]libvirtxml.DomainDiskSourceVolume, error) {
	disks, err := h.disksOf(ctx, dom, golibvirt.DomainXMLInactive)
	var out []libvirtxml.DomainDiskSourceVolume
	for _, k := range disks {
		if v := diskVolume(k); v.Volume != "" {
			out = append(out, v)
		}
	}
	return out, err
}

// clear deletes the volumes; those that are gone are done.
func (h *Host) clear(ctx context.Context, w wreck, tell teller) error {
	if w.storage == "" {
		return nil
	}
	for _, name := range w.volumes {
		tell.step("delete volume " + name)
		err := h.act(ctx, "delete volume "+name, strings.TrimSuffix(name, ".qcow2"), func(v *golibvirt.Libvirt) error {
			p, err := v.StoragePoolLookupByName(w.storage)
			if err != nil {
				return err
			}
			if err := mustBeOff(v, w.uuid); err != nil {
				return err
			}
			return deleteVolume(v, p, name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
