package libvirt

import (
	"bytes"
	"context"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider"
)

// seedStep is how a seed's upload is called, to operators.
const seedStep = "upload the seed"

// overlay makes the disk. One that is there from an earlier run has never been
// used by a guest, and may be half of one.
func (c *creation) overlay(ctx context.Context) error {
	t := c.b.Spec.Template
	var capacity *uint64
	var none uint64 // without it a host reserves the whole disk, or refuses it
	if t.DiskMB > 0 {
		n := uint64(t.DiskMB) << 20
		capacity = &n
	}
	c.tell.step("create the disk")
	return c.h.act(ctx, "create the disk", c.id.domain, func(v *golibvirt.Libvirt) error {
		p, base, err := poolAndVolume(v, t.Storage, t.Base.VolumeName())
		if err != nil {
			return err
		}
		if capacity != nil && t.Base.File == "" {
			if _, size, _, err := v.StorageVolGetInfo(base); err == nil && size > *capacity {
				return permanent("disk of %d MiB is smaller than the base volume %s (%d MiB)", t.DiskMB, base.Name, (size+(1<<20-1))>>20)
			}
		}
		path, err := v.StorageVolGetPath(base)
		if err != nil {
			return err
		}
		text, err := volumeXML(c.id.overlay, "qcow2", capacity, &none, path, t.Base.Format)
		if err != nil {
			return permanent("%s", err)
		}
		_, err = v.StorageVolCreateXML(p, text, 0)
		if !isCode(err, codeVolumeExists) {
			return err
		}
		if err := c.deleteUnused(v, p, c.id.overlay); err != nil {
			return err
		}
		_, err = v.StorageVolCreateXML(p, text, 0)
		return err
	})
}

// errRuns says that a domain runs that must not.
var errRuns error = &classed{"it has been started meanwhile", provider.ErrTransient}

// deleteUnused deletes a volume of the domain after one more look at whether it
// runs.
func (c *creation) deleteUnused(v *golibvirt.Libvirt, p golibvirt.StoragePool, name string) error {
	if err := mustBeOff(v, c.id.uuid); err != nil {
		return err
	}
	return deleteVolume(v, p, name)
}

func mustBeOff(v *golibvirt.Libvirt, u golibvirt.UUID) error {
	dom, err := v.DomainLookupByUUID(u)
	if isCode(err, provider.CodeNoDomain) {
		return nil
	}
	if err == nil && dom.ID >= 0 {
		return errRuns
	}
	return err
}

// seed makes the seed volume and fills it, always anew: a length that is right
// says nothing about what is inside.
func (c *creation) seed(ctx context.Context) error {
	img, err := seedImage(c.id, c.b.Spec)
	if err != nil {
		return err
	}
	pool, size := c.b.Spec.Template.Storage, uint64(len(img))
	text, err := volumeXML(c.id.seed, "raw", &size, nil, "", "")
	if err != nil {
		return err
	}
	c.tell.step("create the seed")
	err = c.h.act(ctx, "create the seed", c.id.domain, func(v *golibvirt.Libvirt) error {
		p, err := v.StoragePoolLookupByName(pool)
		if err != nil {
			return err
		}
		_, err = v.StorageVolCreateXML(p, text, 0)
		if !isCode(err, codeVolumeExists) {
			return err
		}
		vol, err := v.StorageVolLookupByName(p, c.id.seed)
		if err != nil {
			return err
		}
		if _, have, _, err := v.StorageVolGetInfo(vol); err != nil || have == size {
			return err
		}
		if err := c.deleteUnused(v, p, c.id.seed); err != nil {
			return err
		}
		_, err = v.StorageVolCreateXML(p, text, 0)
		return err
	})
	if err != nil {
		return err
	}
	return c.h.upload(ctx, pool, c.id.seed, bytes.NewReader(img), int64(len(img)),
		func(n int64) { c.tell.bytes(seedStep, n, int64(len(img))) },
		func(v *golibvirt.Libvirt) error { return mustBeOff(v, c.id.uuid) })
}

func poolAndVolume(v *golibvirt.Libvirt, pool, volume string) (golibvirt.StoragePool, golibvirt.StorageVol, error) {
	p, err := v.StoragePoolLookupByName(pool)
	if err != nil {
		return p, golibvirt.StorageVol{}, err
	}
	vol, err := v.StorageVolLookupByName(p, volume)
	return p, vol, err
}
