package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Firmware is what a managed VM boots with.
type Firmware string

// The kinds of firmware.
const (
	FirmwareBIOS Firmware = "bios"
	FirmwareEFI  Firmware = "efi"
)

// Arches returns the architectures that a VM can be made for: those that libvirt
// knows and that have the devices of every VM of ours.
func Arches() []string {
	return []string{"aarch64", "armv7l", "i686", "loongarch64", "ppc64", "ppc64le", "riscv64", "s390x", "x86_64"}
}

// Boots reports whether an architecture boots a disk with a firmware. What is
// called bios is its machines' own; some have none.
func (f Firmware) Boots(arch string) bool {
	switch arch {
	case "aarch64", "armv7l", "loongarch64", "riscv64":
		return f == FirmwareEFI
	case "ppc64", "ppc64le", "s390x":
		return f != FirmwareEFI
	}
	return true
}

// Template is what the VM of a managed proxy is made of. It is immutable once
// it is in a Fleet.
type Template struct {
	Name     string
	VCPUs    int
	MemoryMB int    // MiB
	DiskMB   int    // MiB; 0: as large as the base
	Storage  string // libvirt storage pool of base, overlay and seed
	Base     BaseImage
	Network  string   // libvirt network; or
	Bridge   string   // bridge of the host
	Machine  string   // libvirt machine type; empty: the host's default
	Arch     string   // empty: x86_64
	VirtType string   // kvm or qemu
	Firmware Firmware // empty: bios
	UserData string   // cloud-init user-data that is merged with virdeck's own
	XML      string   // raw <domain> elements, merged into what virdeck makes
}

// TextProblem is one thing wrong with a text of a template, in the words of who
// writes it.
type TextProblem struct {
	Setting string // user_data or xml
	Line    int    // of the text, from 1; 0: of none
	Msg     string // what is wrong, and what is allowed
}

// Error is the problem with its place.
func (p TextProblem) Error() string {
	if p.Line == 0 {
		return p.Setting + ": " + p.Msg
	}
	return fmt.Sprintf("%s: line %d: %s", p.Setting, p.Line, p.Msg)
}

// BaseImage is the immutable volume under the overlays of a template: one that
// is in the storage pool already (Volume), or a local file that is uploaded
// where the pool lacks it (File), under a name made of its content.
type BaseImage struct {
	Volume string
	File   string
	SHA256 string // of File, lower-case hex
	Size   int64  // of File, bytes
	Format string // qcow2 or raw
}

// VolumeName returns the name of the base volume in the storage pool.
func (b BaseImage) VolumeName() string {
	if b.File == "" {
		return b.Volume
	}
	return "virdeck-base-" + b.SHA256[:min(16, len(b.SHA256))] + "." + b.Format
}

// BuildSpec is everything that decides how the VM of a managed proxy looks:
// two equal ones need no new VM.
type BuildSpec struct {
	Template Template
	Hostname string
	Port     uint16
	Creds    Credentials
}

// Hash returns a short fingerprint of the spec. The name of the template and
// the place of a base file do not count: a renamed template or a moved file is
// no reason for a new VM. Nor do credentials and host name, which belong to one
// proxy and never change: the hash can be shown, and all members of a pool have
// the same.
func (b BuildSpec) Hash() string {
	t := b.Template
	t.Name, t.Base.File = "", ""
	text, err := json.Marshal(struct {
		Template Template
		Port     uint16
	}{t, b.Port})
	if err != nil {
		panic("model: a template is plain data: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}
