package simhost

import (
	"encoding/xml"
	"path"
	"strconv"
	"strings"

	libvirt "github.com/digitalocean/go-libvirt"
)

// storageProcs serve the pools and volumes.
func storageProcs() table {
	return table{
		ProcConnectListAllStoragePools: {high: true, run: typed(listAllPools)},
		ProcStoragePoolLookupByName:    {high: true, run: typed(poolByName)},
		ProcStoragePoolLookupByUUID:    {high: true, run: typed(poolByUUID)},
		ProcStoragePoolLookupByVolume:  {high: true, run: typed(poolByVolume)},
		ProcStoragePoolGetInfo:         {high: true, run: typed(poolInfo)},
		ProcStoragePoolGetXMLDesc:      {high: true, run: typed(poolXMLDesc)},
		ProcStoragePoolIsActive:        {high: true, run: typed(poolIsActive)},
		ProcStoragePoolRefresh:         {write: true, run: typed(poolRefresh)},
		ProcStoragePoolListAllVolumes:  {high: true, run: typed(listAllVolumes)},
		ProcStorageVolCreateXML:        {write: true, run: typed(volCreateXML)},
		ProcStorageVolLookupByName:     {high: true, run: typed(volByName)},
		ProcStorageVolLookupByKey:      {high: true, run: typed(volByKey)},
		ProcStorageVolLookupByPath:     {high: true, run: typed(volByPath)},
		ProcStorageVolGetInfo:          {high: true, run: typed(volInfo)},
		ProcStorageVolGetXMLDesc:       {high: true, run: typed(volXMLDesc)},
		ProcStorageVolGetPath:          {high: true, run: typed(volPath)},
		ProcStorageVolDelete:           {write: true, run: typed(volDelete)},
		ProcStorageVolUpload:           {write: true, run: typed(volUpload)},
		ProcStorageVolDownload:         {write: true, run: typed(volDownload)},
	}
}

func noPool(format string, args ...any) *Error {
	return fail(fromStorage, libvirt.ErrNoStoragePool, format, args...)
}

func noVolume(format string, args ...any) *Error {
	return fail(fromStorage, libvirt.ErrNoStorageVol, format, args...)
}

// onPool runs f with the pool that a call means, under the host's mutex; its
// UUID decides.
func onPool[R any](c *call, ref libvirt.StoragePool, f func(p *pool) (R, *Error)) (R, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	for _, p := range c.h.pools {
		if p.uuid == ref.UUID {
			return f(p)
		}
	}
	var none R
	return none, noPool("no storage pool with matching uuid '%s' (%s)", uuidText(ref.UUID), ref.Name)
}

// onActivePool is onPool for what an inactive one refuses.
func onActivePool[R any](c *call, ref libvirt.StoragePool, f func(p *pool) (R, *Error)) (R, *Error) {
	return onPool(c, ref, func(p *pool) (R, *Error) {
		if e := p.mustBeActive(); e != nil {
			var none R
			return none, e
		}
		return f(p)
	})
}

func (p *pool) mustBeActive() *Error {
	if p.active {
		return nil
	}
	return fail(fromStorage, libvirt.ErrOperationInvalid, "storage pool '%s' is not active", p.spec.Name)
}

// onVolume runs f with the volume that a call means: by its pool's name and its
// own, not by its key.
func onVolume[R any](c *call, ref libvirt.StorageVol, f func(v *volume) (R, *Error)) (R, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	var none R
	p := c.h.pool(ref.Pool)
	if p == nil {
		return none, noPool("no storage pool with matching name '%s'", ref.Pool)
	}
	if e := p.mustBeActive(); e != nil {
		return none, e
	}
	v := p.volume(ref.Name)
	if v == nil {
		return none, noVolume("no storage vol with matching name '%s'", ref.Name)
	}
	return f(v)
}

func listAllPools(c *call, a *libvirt.ConnectListAllStoragePoolsArgs) (libvirt.ConnectListAllStoragePoolsRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	var r libvirt.ConnectListAllStoragePoolsRet
	for _, p := range c.h.pools {
		if !listed(p.active, a.Flags, libvirt.ConnectListStoragePoolsActive, libvirt.ConnectListStoragePoolsInactive) {
			continue
		}
		r.Ret++
		if a.NeedResults != 0 {
			r.Pools = append(r.Pools, p.ref())
		}
	}
	return r, nil
}

func poolByName(c *call, a *libvirt.StoragePoolLookupByNameArgs) (libvirt.StoragePoolLookupByNameRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	p := c.h.pool(a.Name)
	if p == nil {
		return libvirt.StoragePoolLookupByNameRet{}, noPool("no storage pool with matching name '%s'", a.Name)
	}
	return libvirt.StoragePoolLookupByNameRet{Pool: p.ref()}, nil
}

func poolByUUID(c *call, a *libvirt.StoragePoolLookupByUUIDArgs) (libvirt.StoragePoolLookupByUUIDRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	for _, p := range c.h.pools {
		if p.uuid == a.UUID {
			return libvirt.StoragePoolLookupByUUIDRet{Pool: p.ref()}, nil
		}
	}
	return libvirt.StoragePoolLookupByUUIDRet{}, noPool("no storage pool with matching uuid '%s'", uuidText(a.UUID))
}

func poolByVolume(c *call, a *libvirt.StoragePoolLookupByVolumeArgs) (libvirt.StoragePoolLookupByVolumeRet, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	p := c.h.pool(a.Vol.Pool)
	if p == nil {
		return libvirt.StoragePoolLookupByVolumeRet{}, noPool("no storage pool with matching name '%s'", a.Vol.Pool)
	}
	return libvirt.StoragePoolLookupByVolumeRet{Pool: p.ref()}, nil
}

// poolInfo of an inactive pool has no sizes.
func poolInfo(c *call, a *libvirt.StoragePoolGetInfoArgs) (libvirt.StoragePoolGetInfoRet, *Error) {
	return onPool(c, a.Pool, func(p *pool) (libvirt.StoragePoolGetInfoRet, *Error) {
		if !p.active {
			return libvirt.StoragePoolGetInfoRet{State: uint8(libvirt.StoragePoolInactive)}, nil
		}
		return libvirt.StoragePoolGetInfoRet{
			State: uint8(libvirt.StoragePoolRunning), Capacity: p.spec.Capacity, Allocation: p.taken(), Available: p.free(),
		}, nil
	})
}

func poolXMLDesc(c *call, a *libvirt.StoragePoolGetXMLDescArgs) (libvirt.StoragePoolGetXMLDescRet, *Error) {
	return onPool(c, a.Pool, func(p *pool) (libvirt.StoragePoolGetXMLDescRet, *Error) {
		return libvirt.StoragePoolGetXMLDescRet{XML: p.xml()}, nil
	})
}

func poolIsActive(c *call, a *libvirt.StoragePoolIsActiveArgs) (libvirt.StoragePoolIsActiveRet, *Error) {
	return onPool(c, a.Pool, func(p *pool) (libvirt.StoragePoolIsActiveRet, *Error) {
		return libvirt.StoragePoolIsActiveRet{Active: boolInt(p.active)}, nil
	})
}

// poolRefresh finds nothing new, and fails while a volume is being uploaded.
func poolRefresh(c *call, a *libvirt.StoragePoolRefreshArgs) (void, *Error) {
	return onActivePool(c, a.Pool, func(p *pool) (void, *Error) {
		for _, v := range p.volumes {
			if v.uploads > 0 {
				return void{}, fail(fromStorage, libvirt.ErrInternalError, "pool '%s' has asynchronous jobs running.", p.spec.Name)
			}
		}
		return void{}, nil
	})
}

func listAllVolumes(c *call, a *libvirt.StoragePoolListAllVolumesArgs) (libvirt.StoragePoolListAllVolumesRet, *Error) {
	return onActivePool(c, a.Pool, func(p *pool) (libvirt.StoragePoolListAllVolumesRet, *Error) {
		r := libvirt.StoragePoolListAllVolumesRet{Ret: uint32(len(p.volumes))}
		if a.NeedResults != 0 {
			for _, v := range p.volumes {
				r.Vols = append(r.Vols, v.ref())
			}
		}
		return r, nil
	})
}

func volByName(c *call, a *libvirt.StorageVolLookupByNameArgs) (libvirt.StorageVolLookupByNameRet, *Error) {
	return onActivePool(c, a.Pool, func(p *pool) (libvirt.StorageVolLookupByNameRet, *Error) {
		v := p.volume(a.Name)
		if v == nil {
			return libvirt.StorageVolLookupByNameRet{}, noVolume("no storage vol with matching name '%s'", a.Name)
		}
		return libvirt.StorageVolLookupByNameRet{Vol: v.ref()}, nil
	})
}

// find looks a file up in the active pools.
func (k *call) find(file, what string) (libvirt.StorageVol, *Error) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	if v := k.h.volumeAt(file); v != nil && v.pool.active {
		return v.ref(), nil
	}
	return libvirt.StorageVol{}, noVolume("no storage vol with matching %s", what)
}

func volByKey(c *call, a *libvirt.StorageVolLookupByKeyArgs) (libvirt.StorageVolLookupByKeyRet, *Error) {
	v, e := c.find(a.Key, "key "+a.Key)
	return libvirt.StorageVolLookupByKeyRet{Vol: v}, e
}

func volByPath(c *call, a *libvirt.StorageVolLookupByPathArgs) (libvirt.StorageVolLookupByPathRet, *Error) {
	v, e := c.find(a.Path, "path '"+a.Path+"'")
	return libvirt.StorageVolLookupByPathRet{Vol: v}, e
}

func volInfo(c *call, a *libvirt.StorageVolGetInfoArgs) (libvirt.StorageVolGetInfoRet, *Error) {
	return onVolume(c, a.Vol, func(v *volume) (libvirt.StorageVolGetInfoRet, *Error) {
		return libvirt.StorageVolGetInfoRet{Type: int8(libvirt.StorageVolFile), Capacity: v.Capacity, Allocation: v.Allocation}, nil
	})
}

func volXMLDesc(c *call, a *libvirt.StorageVolGetXMLDescArgs) (libvirt.StorageVolGetXMLDescRet, *Error) {
	return onVolume(c, a.Vol, func(v *volume) (libvirt.StorageVolGetXMLDescRet, *Error) {
		return libvirt.StorageVolGetXMLDescRet{XML: v.xml()}, nil
	})
}

func volPath(c *call, a *libvirt.StorageVolGetPathArgs) (libvirt.StorageVolGetPathRet, *Error) {
	return onVolume(c, a.Vol, func(v *volume) (libvirt.StorageVolGetPathRet, *Error) {
		return libvirt.StorageVolGetPathRet{Name: v.path()}, nil
	})
}

// volDelete deletes a volume, under a running guest too; not under an upload.
func volDelete(c *call, a *libvirt.StorageVolDeleteArgs) (void, *Error) {
	return onVolume(c, a.Vol, func(v *volume) (void, *Error) {
		if v.uploads > 0 {
			return void{}, fail(fromStorage, libvirt.ErrOperationInvalid, "volume '%s' is still in use.", v.Name)
		}
		v.touched("deleted")
		for i, o := range v.pool.volumes {
			if o == v {
				v.pool.volumes = append(v.pool.volumes[:i:i], v.pool.volumes[i+1:]...)
				break
			}
		}
		return void{}, nil
	})
}

// volumeXML is what matters of a volume's definition.
type volumeXML struct {
	XMLName    xml.Name `xml:"volume"`
	Name       string   `xml:"name"`
	Capacity   *sizeXML `xml:"capacity"`
	Allocation *sizeXML `xml:"allocation"`
	Format     struct {
		Type string `xml:"type,attr"`
	} `xml:"target>format"`
	Backing *struct {
		Path   string `xml:"path"`
		Format struct {
			Type string `xml:"type,attr"`
		} `xml:"format"`
	} `xml:"backingStore"`
}

type sizeXML struct {
	Unit  string `xml:"unit,attr"`
	Value string `xml:",chardata"`
}

// bytes is the size in bytes; false when it is none.
func (s *sizeXML) bytes() (uint64, bool) {
	units := map[string]uint64{
		"": 1, "b": 1, "bytes": 1, "kb": 1e3, "k": 1 << 10, "kib": 1 << 10, "mb": 1e6, "m": 1 << 20, "mib": 1 << 20,
		"gb": 1e9, "g": 1 << 30, "gib": 1 << 30, "t": 1 << 40, "tib": 1 << 40,
	}
	n, err := strconv.ParseUint(strings.TrimSpace(s.Value), 10, 64)
	u, ok := units[strings.ToLower(s.Unit)]
	return n * u, err == nil && ok && (n == 0 || n*u/n == u)
}

// overlayAllocation is what an empty qcow2 file takes.
const overlayAllocation = 196_616

// volCreateXML makes an empty volume. A qcow2 one on a backing file may leave its
// capacity out.
func volCreateXML(c *call, a *libvirt.StorageVolCreateXMLArgs) (libvirt.StorageVolCreateXMLRet, *Error) {
	return onActivePool(c, a.Pool, func(p *pool) (libvirt.StorageVolCreateXMLRet, *Error) {
		var r libvirt.StorageVolCreateXMLRet
		spec, e := c.h.volumeSpec(p, a.XML)
		if e != nil {
			return r, e
		}
		if p.volume(spec.Name) != nil {
			return r, fail(fromStorage, libvirt.ErrStorageVolExist, "'%s'", spec.Name)
		}
		if spec.Allocation > p.free() {
			return r, fail(fromStorage, libvirt.ErrOperationFailed, "Not enough free space in pool for volume '%s'", spec.Name)
		}
		r.Vol = p.add(spec).ref()
		return r, nil
	})
}

// volumeSpec reads a volume's definition. The caller holds h.mu.
func (h *Host) volumeSpec(p *pool, text string) (VolumeSpec, *Error) {
	var x volumeXML
	if err := xml.Unmarshal([]byte(text), &x); err != nil {
		return VolumeSpec{}, fail(fromStorage, libvirt.ErrXMLDetail, "(storage_volume_definition):1: %s", err.Error())
	}
	spec := VolumeSpec{Name: x.Name, Format: x.Format.Type}
	if spec.Name == "" {
		return spec, fail(fromStorage, libvirt.ErrXMLError, "missing volume name element")
	}
	if strings.ContainsRune(spec.Name, '/') {
		return spec, fail(fromStorage, libvirt.ErrXMLError, "volume name '%s' cannot contain '/'", spec.Name)
	}
	var base *volume
	if x.Backing != nil && x.Backing.Path != "" {
		if base = h.volumeAt(x.Backing.Path); base == nil {
			return spec, fail(fromStorage, libvirt.ErrSystemError, "inaccessible backing store volume %s: No such file or directory", x.Backing.Path)
		}
		spec.Backing, spec.BackingFormat = x.Backing.Path, x.Backing.Format.Type
		if base.noQcow2(spec.BackingFormat) {
			return spec, fail(fromStorage, libvirt.ErrInternalError, "Child process (/usr/bin/qemu-img create) unexpected exit status 1: "+
				"qemu-img: %s: Image is not in qcow2 format\nCould not open backing image.", path.Join(p.spec.Path, spec.Name))
		}
	}
	switch {
	case x.Capacity != nil:
		n, ok := x.Capacity.bytes()
		if !ok {
			return spec, fail(fromStorage, libvirt.ErrXMLError, "malformed capacity element")
		}
		spec.Capacity = n
	case base != nil:
		spec.Capacity = base.Capacity
	default:
		return spec, fail(fromStorage, libvirt.ErrXMLError, "missing capacity element")
	}
	switch {
	case spec.Format == "qcow2":
		spec.Allocation = overlayAllocation
	case x.Allocation == nil:
		spec.Allocation = spec.Capacity
	default:
		n, ok := x.Allocation.bytes()
		if !ok {
			return spec, fail(fromStorage, libvirt.ErrXMLError, "malformed allocation element")
		}
		spec.Allocation = n
	}
	return spec, nil
}
