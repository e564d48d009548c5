package libvirt

import (
	"context"
	"fmt"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"
	"libvirt.org/go/libvirtxml"

	"virdeck/provider"
)

// untaken returns nil if the volumes that are to be made are not there, or are
// left from an earlier run. They may also be what somebody has a domain of their
// own on, after they undefined ours; no daemon refuses to delete them under it.
func (c *creation) untaken(ctx context.Context) error {
	storage := c.b.Spec.Template.Storage
	there, err := step(ctx, c.h, call{Class: ClassRead, What: "look up the volumes"}, func(v *golibvirt.Libvirt) (map[string]string, error) {
		names := map[string]string{} // by path
		for _, name := range []string{c.id.overlay, c.id.seed} {
			vol, err := findVolume(v, storage, name)
			if isCode(err, codeNoVolume) {
				continue
			}
			if err != nil {
				return nil, err
			}
			path, err := v.StorageVolGetPath(vol)
			if err != nil {
				return nil, err
			}
			names[path] = name
		}
		return names, nil
	})
	if err != nil || len(there) == 0 {
		return err
	}
	lk, err := c.h.listing.get(ctx, time.Now(), c.h.look)
	if err != nil {
		return err
	}
	for _, dom := range lk.doms {
		if dom.UUID == c.id.uuid {
			continue
		}
		disks, err := c.h.disksOf(ctx, dom, 0)
		if err != nil && code(err) != provider.CodeNoDomain {
			return err
		}
		for _, k := range disks {
			if name := restsOn(k, storage, there); name != "" {
				return conflict("volume %s is a disk of domain %s, which is not this proxy's", name, dom.Name)
			}
		}
	}
	return nil
}

// restsOn returns which of some volumes, by path, a disk is or rests on; empty if
// none.
func restsOn(k libvirtxml.DomainDisk, storage string, volumes map[string]string) string {
	on := func(s *libvirtxml.DomainDiskSource) string {
		switch {
		case s == nil:
		case s.File != nil:
			return volumes[s.File.File]
		case s.Volume != nil && s.Volume.Pool == storage:
			for _, name := range volumes {
				if name == s.Volume.Volume {
					return name
				}
			}
		}
		return ""
	}
	name := on(k.Source)
	for b := k.BackingStore; b != nil && name == ""; b = b.BackingStore {
		name = on(b.Source)
	}
	return name
}

// disksOf returns the disks of a domain's definition, as it runs or, with
// DomainXMLInactive, as it will.
func (h *Host) disksOf(ctx context.Context, dom golibvirt.Domain, flags golibvirt.DomainXMLFlags) ([]libvirtxml.DomainDisk, error) {
	text, err := step(ctx, h, call{Class: ClassRead, What: "read xml", Domain: dom.Name},
		func(v *golibvirt.Libvirt) (string, error) { return v.DomainGetXMLDesc(dom, flags) })
	if err != nil {
		return nil, err
	}
	var d libvirtxml.Domain
	if err := d.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("domain xml: %w", err)
	}
	if d.Devices == nil {
		return nil, nil
	}
	return d.Devices.Disks, nil
}
