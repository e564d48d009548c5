package libvirt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"libvirt.org/go/libvirtxml"

	"virdeck/model"
)

// The disks of a managed VM. Both are virtio: a guest that can read its own disk
// can read its seed, whatever machine it is and whatever drivers its kernel
// lacks; cloud-init looks for the label, not for a CD drive.
const (
	overlayDev = "vda"
	seedDev    = "vdb"
)

// validateTemplate reports what is wrong with a template, as far as it can be
// known without a host: its numbers, its user-data and its XML. The error's
// text begins with the name of the setting.
func validateTemplate(t model.Template) error {
	switch {
	case t.VCPUs < 1 || t.VCPUs > 512:
		return fmt.Errorf("vcpus: %d, want 1 to 512", t.VCPUs)
	case t.MemoryMB < 1 || t.MemoryMB > 16<<20:
		return fmt.Errorf("memory: %d MiB, want 1 to 16777216", t.MemoryMB)
	case t.DiskMB < 0 || t.DiskMB > 1<<30:
		return fmt.Errorf("disk: %d MiB, want 0 to 1073741824", t.DiskMB)
	case t.Network == "" && t.Bridge == "":
		return errors.New("network: neither a network nor a bridge")
	case t.Network != "" && t.Bridge != "":
		return errors.New("network: a network and a bridge; want one of them")
	case t.VirtType != "kvm" && t.VirtType != "qemu":
		return fmt.Errorf("virt_type: %q, want kvm or qemu", t.VirtType)
	case t.Arch != "" && !slices.Contains(model.Arches(), t.Arch):
		return fmt.Errorf("arch: %q, want one of %s", t.Arch, strings.Join(model.Arches(), ", "))
	case t.Firmware != "" && t.Firmware != model.FirmwareBIOS && t.Firmware != model.FirmwareEFI:
		return fmt.Errorf("firmware: %q, want bios or efi", t.Firmware)
	case t.Base.Format != "qcow2" && t.Base.Format != "raw":
		return fmt.Errorf("base: format %q, want qcow2 or raw", t.Base.Format)
	case t.Base.File == "" && t.Base.Volume == "":
		return errors.New("base: neither a volume nor a file")
	case t.Base.File != "" && (len(t.Base.SHA256) != 64 || t.Base.Size <= 0):
		return errors.New("base: a file needs its SHA-256 and its size")
	}
	for _, f := range []struct{ name, value string }{
		{"storage", t.Storage}, {"network", t.Network}, {"bridge", t.Bridge}, {"machine", t.Machine}, {"base", t.Base.VolumeName()},
	} {
		if strings.ContainsFunc(f.value, func(r rune) bool { return unicode.IsControl(r) || r == '/' }) {
			return fmt.Errorf("%s: %q has a slash or a control character", f.name, f.value)
		}
	}
	if t.Storage == "" {
		return errors.New("storage: no storage pool")
	}
	if problems := CheckTexts(t); len(problems) > 0 {
		return problems[0]
	}
	return nil
}

// CheckTexts returns what is wrong with the texts of a template, its user-data and
// its XML. It looks at nothing else of it.
func CheckTexts(t model.Template) []model.TextProblem {
	_, problems := userMap(t.UserData)
	if strings.TrimSpace(t.XML) != "" {
		problems = append(problems, mergeXML(baseDomain(identify(model.Owner{}), t), t.XML)...)
	}
	return problems
}

// checkSpec is validateTemplate and what a template does not say.
func checkSpec(s model.BuildSpec) error {
	if !validHostname(s.Hostname) {
		return fmt.Errorf("hostname: %q is none", s.Hostname)
	}
	if _, err := proxyEnv(s.Port, s.Creds); err != nil {
		return err
	}
	return validateTemplate(s.Template)
}

// domainXML describes a managed VM with its mark. The same arguments give the
// same text.
func domainXML(id identity, o model.Owner, t model.Template) (string, error) {
	mark, err := markText(o, markURI)
	if err != nil {
		return "", err
	}
	d := baseDomain(id, t)
	d.Metadata = &libvirtxml.DomainMetadata{XML: mark}
	if strings.TrimSpace(t.XML) != "" {
		if problems := mergeXML(d, t.XML); len(problems) > 0 {
			return "", problems[0]
		}
	}
	text, err := d.Marshal()
	if err != nil {
		return "", fmt.Errorf("domain xml: %w", err)
	}
	return text, nil
}

func baseDomain(id identity, t model.Template) *libvirtxml.Domain {
	arch, machine := t.Arch, t.Machine
	if arch == "" {
		arch = "x86_64"
	}
	os := &libvirtxml.DomainOS{BootDevices: []libvirtxml.DomainBootDevice{{Dev: "hd"}}}
	if t.Firmware == model.FirmwareEFI {
		os.Firmware = "efi"
		if machine == "" && arch == "x86_64" {
			machine = "q35" // where all firmware builds run; a host's default may be the older one
		}
	}
	os.Type = &libvirtxml.DomainOSType{Arch: arch, Machine: machine, Type: "hvm"}
	nic := libvirtxml.DomainInterface{
		MAC: &libvirtxml.DomainInterfaceMAC{Address: id.mac}, Model: &libvirtxml.DomainInterfaceModel{Type: "virtio"},
		Source: &libvirtxml.DomainInterfaceSource{},
	}
	if t.Network != "" {
		nic.Source.Network = &libvirtxml.DomainInterfaceSourceNetwork{Network: t.Network}
	} else {
		nic.Source.Bridge = &libvirtxml.DomainInterfaceSourceBridge{Bridge: t.Bridge}
	}
	disk := func(volume, format, dev string) libvirtxml.DomainDisk {
		return libvirtxml.DomainDisk{
			Device: "disk",
			Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: format},
			Source: &libvirtxml.DomainDiskSource{Volume: &libvirtxml.DomainDiskSourceVolume{Pool: t.Storage, Volume: volume}},
			Target: &libvirtxml.DomainDiskTarget{Dev: dev, Bus: "virtio"},
		}
	}
	seed := disk(id.seed, "raw", seedDev)
	seed.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	port := uint(0)
	d := &libvirtxml.Domain{
		Type: t.VirtType, Name: id.domain, UUID: formatUUID(id.uuid),
		Memory: &libvirtxml.DomainMemory{Value: uint(t.MemoryMB), Unit: "MiB"}, //nolint:gosec // checked to be positive
		VCPU:   &libvirtxml.DomainVCPU{Placement: "static", Value: uint(t.VCPUs)},
		OS:     os,
		Clock:  &libvirtxml.DomainClock{Offset: "utc"},
		// A guest that powers off or crashes is seen as such, and started anew
		// by whoever watches it.
		OnPoweroff: "destroy", OnReboot: "restart", OnCrash: "destroy",
		Devices: &libvirtxml.DomainDeviceList{
			Disks:      []libvirtxml.DomainDisk{disk(id.overlay, "qcow2", overlayDev), seed},
			Interfaces: []libvirtxml.DomainInterface{nic},
			Serials: []libvirtxml.DomainSerial{{
				Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
				Target: &libvirtxml.DomainSerialTarget{Port: &port},
			}},
			Consoles: []libvirtxml.DomainConsole{{
				Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
				Target: &libvirtxml.DomainConsoleTarget{Type: "serial", Port: &port},
			}},
			Channels: []libvirtxml.DomainChannel{{
				Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{Mode: "bind"}},
				Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: agentChannel}},
			}},
			MemBalloon: &libvirtxml.DomainMemBalloon{Model: "virtio"},
			RNGs: []libvirtxml.DomainRNG{{
				Model:   "virtio",
				Backend: &libvirtxml.DomainRNGBackend{Random: &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}},
			}},
		},
	}
	if arch == "x86_64" || arch == "i686" {
		d.Features = &libvirtxml.DomainFeatureList{ACPI: &libvirtxml.DomainFeature{}, APIC: &libvirtxml.DomainFeatureAPIC{}}
	}
	if t.VirtType == "kvm" {
		d.CPU = &libvirtxml.DomainCPU{Mode: "host-passthrough"}
	}
	return d
}

// volumeXML describes a volume. backing is the path of the file it rests on;
// empty for none.
func volumeXML(name, format string, capacity, allocation *uint64, backing, backingFormat string) (string, error) {
	v := libvirtxml.StorageVolume{Name: name, Target: &libvirtxml.StorageVolumeTarget{
		Format: &libvirtxml.StorageVolumeTargetFormat{Type: format},
	}}
	if capacity != nil {
		v.Capacity = &libvirtxml.StorageVolumeSize{Unit: "bytes", Value: *capacity}
	}
	if allocation != nil {
		v.Allocation = &libvirtxml.StorageVolumeSize{Unit: "bytes", Value: *allocation}
	}
	if backing != "" {
		v.BackingStore = &libvirtxml.StorageVolumeBackingStore{Path: backing, Format: &libvirtxml.StorageVolumeTargetFormat{Type: backingFormat}}
	}
	text, err := v.Marshal()
	if err != nil {
		return "", fmt.Errorf("volume xml: %w", err)
	}
	return text, nil
}
