package simhost

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	libvirt "github.com/digitalocean/go-libvirt"
)

// A PoolSpec describes one storage pool, a directory.
type PoolSpec struct {
	Name string
	// UUID zero means one derived from Name.
	UUID [16]byte
	// Path is the directory. Default "/var/lib/libvirt/images".
	Path string
	// Capacity is the size of its file system in bytes. Default 100 GiB. What
	// does not fit is refused, by an upload too.
	Capacity uint64
	// Inactive adds a pool that is not started.
	Inactive bool
}

// DefaultPool is libvirt's "default": /var/lib/libvirt/images.
func DefaultPool() PoolSpec { return PoolSpec{Name: "default"} }

// A VolumeSpec describes one volume, a file of a pool.
type VolumeSpec struct {
	Name   string
	Format string // "raw" (the default) or "qcow2"
	// Capacity is what a guest sees, Allocation what it takes, both in bytes.
	Capacity   uint64
	Allocation uint64
	// Backing is the path of the file on which an overlay rests; "" for none.
	Backing       string
	BackingFormat string
}

// A Volume is a volume as it is at this moment.
type Volume struct {
	VolumeSpec
	Path string
	// Content is what was uploaded from offset zero on, up to the first gap and
	// 16 MiB at most.
	Content []byte
	// Written is where the last byte that was uploaded ends.
	Written uint64
	// Uploading is true while an upload is open.
	Uploading bool
}

// keptContent is how much of a volume's content is kept.
const keptContent = 16 << 20

type pool struct {
	h       *Host
	spec    PoolSpec
	uuid    [16]byte
	active  bool
	volumes []*volume
}

type volume struct {
	pool *pool
	VolumeSpec
	content  []byte
	written  uint64
	uploads  int  // open ones
	uploaded bool // something was, ever
}

func (h *Host) newPool(spec PoolSpec) *pool {
	if spec.UUID == ([16]byte{}) {
		spec.UUID = derivedUUID("pool", spec.Name)
	}
	if spec.Path == "" {
		spec.Path = "/var/lib/libvirt/images"
	}
	if spec.Capacity == 0 {
		spec.Capacity = 100 << 30
	}
	return &pool{h: h, spec: spec, uuid: spec.UUID, active: !spec.Inactive}
}

// AddPool adds a pool, or replaces the one of that name with its volumes.
func (h *Host) AddPool(spec PoolSpec) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pools = slices.DeleteFunc(h.pools, func(p *pool) bool { return p.spec.Name == spec.Name })
	h.pools = append(h.pools, h.newPool(spec))
}

// SetPoolActive starts or stops a pool; without effect when there is none.
func (h *Host) SetPoolActive(name string, active bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.pool(name); p != nil {
		p.active = active
	}
}

// SetPoolCapacity changes the size of a pool's file system, so that it may be
// full; without effect when there is none.
func (h *Host) SetPoolCapacity(name string, bytes uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.pool(name); p != nil {
		p.spec.Capacity = bytes
	}
}

// AddVolume adds a volume to a pool as a file that was put there by hand. No such
// pool, no name, or a name that is taken are a mistake of the caller's program
// and panic.
func (h *Host) AddVolume(poolName string, spec VolumeSpec) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pool(poolName)
	if p == nil || spec.Name == "" || p.volume(spec.Name) != nil {
		panic("simhost: no pool " + poolName + ", or it has a " + spec.Name)
	}
	p.add(spec)
}

// RemoveVolume takes a volume away as somebody does by hand; without effect when
// there is none.
func (h *Host) RemoveVolume(poolName, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.pool(poolName); p != nil {
		p.volumes = slices.DeleteFunc(p.volumes, func(v *volume) bool { return v.Name == name })
	}
}

// Volume returns a volume; false when there is none.
func (h *Host) Volume(poolName, name string) (Volume, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pool(poolName)
	if p == nil {
		return Volume{}, false
	}
	v := p.volume(name)
	if v == nil {
		return Volume{}, false
	}
	return Volume{
		VolumeSpec: v.VolumeSpec, Path: v.path(), Content: slices.Clone(v.content), Written: v.written, Uploading: v.uploads > 0,
	}, true
}

// Volumes returns the names of a pool's volumes in order of creation.
func (h *Host) Volumes(poolName string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pool(poolName)
	if p == nil {
		return nil
	}
	out := make([]string, 0, len(p.volumes))
	for _, v := range p.volumes {
		out = append(out, v.Name)
	}
	return out
}

func (h *Host) pool(name string) *pool {
	for _, p := range h.pools {
		if p.spec.Name == name {
			return p
		}
	}
	return nil
}

// volumeAt returns the volume that is this file, of any pool, or nil.
func (h *Host) volumeAt(file string) *volume {
	for _, p := range h.pools {
		if v := p.volume(path.Base(file)); v != nil && v.path() == file {
			return v
		}
	}
	return nil
}

func (p *pool) volume(name string) *volume {
	for _, v := range p.volumes {
		if v.Name == name {
			return v
		}
	}
	return nil
}

func (p *pool) add(spec VolumeSpec) *volume {
	if spec.Format == "" {
		spec.Format = "raw"
	}
	v := &volume{pool: p, VolumeSpec: spec}
	p.volumes = append(p.volumes, v)
	return v
}

// taken is what the volumes take, in bytes.
func (p *pool) taken() uint64 {
	var sum uint64
	for _, v := range p.volumes {
		sum += v.Allocation
	}
	return sum
}

func (p *pool) free() uint64 { return p.spec.Capacity - min(p.taken(), p.spec.Capacity) }

func (p *pool) ref() libvirt.StoragePool { return libvirt.StoragePool{Name: p.spec.Name, UUID: p.uuid} }

func (v *volume) path() string { return path.Join(v.pool.spec.Path, v.Name) }

func (v *volume) ref() libvirt.StorageVol {
	return libvirt.StorageVol{Pool: v.pool.spec.Name, Name: v.Name, Key: v.path()}
}

// write puts data at an offset, as far as the pool has room; it says whether it
// had. The file grows with it, and what a guest would see of a raw one.
func (v *volume) write(at uint64, data []byte) bool {
	end := at + uint64(len(data))
	v.uploaded = true
	if old := v.content[min(at, uint64(len(v.content))):]; !bytes.Equal(old[:min(len(old), len(data))], data) {
		v.touched("changed")
	}
	if grow := end - min(end, v.Allocation); grow > v.pool.free() {
		return false
	}
	v.Allocation, v.written = max(v.Allocation, end), max(v.written, end)
	if v.Format == "raw" {
		v.Capacity = max(v.Capacity, end)
	}
	if at <= uint64(len(v.content)) && at < keptContent {
		data = data[:min(len(data), keptContent-int(at))]
		over := copy(v.content[at:], data)
		v.content = append(v.content, data[over:]...)
	}
	return true
}

// xml is the pool's description.
func (p *pool) xml() string {
	var b strings.Builder
	line := liner(&b)
	line("<pool type='dir'>")
	line("  <name>%s</name>", escape(p.spec.Name))
	line("  <uuid>%s</uuid>", uuidText(p.uuid))
	if p.active {
		line("  <capacity unit='bytes'>%d</capacity>", p.spec.Capacity)
		line("  <allocation unit='bytes'>%d</allocation>", p.taken())
		line("  <available unit='bytes'>%d</available>", p.free())
	} else {
		line("  <capacity unit='bytes'>0</capacity>")
		line("  <allocation unit='bytes'>0</allocation>")
		line("  <available unit='bytes'>0</available>")
	}
	line("  <source>")
	line("  </source>")
	line("  <target>")
	line("    <path>%s</path>", escape(p.spec.Path))
	line("    <permissions>")
	line("      <mode>0711</mode>")
	line("      <owner>0</owner>")
	line("      <group>0</group>")
	line("    </permissions>")
	line("  </target>")
	line("</pool>")
	return b.String()
}

// xml is the volume's description.
func (v *volume) xml() string {
	var b strings.Builder
	line := liner(&b)
	line("<volume type='file'>")
	line("  <name>%s</name>", escape(v.Name))
	line("  <key>%s</key>", escape(v.path()))
	line("  <capacity unit='bytes'>%d</capacity>", v.Capacity)
	line("  <allocation unit='bytes'>%d</allocation>", v.Allocation)
	line("  <physical unit='bytes'>%d</physical>", v.Allocation)
	line("  <target>")
	line("    <path>%s</path>", escape(v.path()))
	line("    <format type='%s'/>", escape(v.Format))
	line("    <permissions>")
	line("      <mode>0600</mode>")
	line("      <owner>0</owner>")
	line("      <group>0</group>")
	line("    </permissions>")
	line("  </target>")
	if v.Backing != "" {
		line("  <backingStore>")
		line("    <path>%s</path>", escape(v.Backing))
		line("    <format type='%s'/>", escape(v.BackingFormat))
		line("  </backingStore>")
	}
	line("</volume>")
	return b.String()
}

// fileSize is how long the volume's file is.
func (v *volume) fileSize() uint64 {
	if v.Format == "raw" {
		return max(v.Capacity, v.written)
	}
	return max(v.Allocation, v.written)
}

// noQcow2 says that a program which is told that the file is qcow2 will find that
// it is none. Of a file that was put there by hand nothing is known.
func (v *volume) noQcow2(format string) bool {
	return format == "qcow2" && v.uploaded && !bytes.HasPrefix(v.content, []byte("QFI\xfb"))
}

// touched records that something was done to a volume on which a guest runs. A
// real daemon lets it happen, and so does this one.
func (v *volume) touched(how string) {
	h := v.pool.h
	for _, d := range h.domains {
		if d.active() && d.restsOn(v) {
			h.violations = append(h.violations, fmt.Sprintf("volume %s was %s under the running domain %s", v.Name, how, d.spec.Name))
		}
	}
}

// restsOn says whether a file of the running guest is this volume, or rests on it.
func (d *Domain) restsOn(v *volume) bool {
	if !d.defined {
		return false
	}
	for _, k := range d.disks {
		for o := d.h.diskVolume(k); o != nil; o = d.h.volumeAt(o.Backing) {
			if o == v {
				return true
			}
		}
	}
	return false
}

// diskVolume returns the volume that a disk is, or nil.
func (h *Host) diskVolume(k disk) *volume {
	if k.volume == "" {
		return h.volumeAt(k.file)
	}
	if p := h.pool(k.pool); p != nil {
		return p.volume(k.volume)
	}
	return nil
}

// Violations returns what clients have done that harms a guest and that a daemon
// does not refuse: volumes deleted under a running domain, or changed.
func (h *Host) Violations() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.violations)
}
