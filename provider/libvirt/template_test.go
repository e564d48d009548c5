package libvirt

import (
	"strings"
	"testing"

	"libvirt.org/go/libvirtxml"

	"virdeck/model"
)

func goodTemplate() model.Template {
	return testTemplate(model.BaseImage{Volume: "base.qcow2", Format: "qcow2"})
}

func TestValidateTemplate(t *testing.T) {
	sha := strings.Repeat("ab", 32)
	for _, tt := range []struct {
		name   string
		change func(*model.Template)
		want   string
	}{
		{"good", func(*model.Template) {}, ""},
		{"efi, kvm, a bridge, a file", func(t *model.Template) {
			t.Firmware, t.VirtType, t.Machine = model.FirmwareEFI, "kvm", ""
			t.Network, t.Bridge = "", "br0"
			t.Base = model.BaseImage{File: "/x/y.raw", SHA256: sha, Size: 1, Format: "raw"}
		}, ""},
		{"no processor", func(t *model.Template) { t.VCPUs = 0 }, "vcpus: 0, want 1 to 512"},
		{"no memory", func(t *model.Template) { t.MemoryMB = -1 }, "memory: -1 MiB, want 1 to 16777216"},
		{"disk", func(t *model.Template) { t.DiskMB = -1 }, "disk: -1 MiB, want 0 to 1073741824"},
		{"nowhere", func(t *model.Template) { t.Network = "" }, "network: neither a network nor a bridge"},
		{"twice", func(t *model.Template) { t.Bridge = "br0" }, "network: a network and a bridge; want one of them"},
		{"mips", func(t *model.Template) { t.Arch = "mips" }, `arch: "mips", want one of aarch64, armv7l, i686, loongarch64, ppc64, ppc64le, riscv64, s390x, x86_64`},
		{"xen", func(t *model.Template) { t.VirtType = "xen" }, `virt_type: "xen", want kvm or qemu`},
		{"firmware", func(t *model.Template) { t.Firmware = "coreboot" }, `firmware: "coreboot", want bios or efi`},
		{"format", func(t *model.Template) { t.Base.Format = "vmdk" }, `base: format "vmdk", want qcow2 or raw`},
		{"no base", func(t *model.Template) { t.Base.Volume = "" }, "base: neither a volume nor a file"},
		{"no hash", func(t *model.Template) { t.Base = model.BaseImage{File: "/x", Format: "raw", Size: 1} }, "base: a file needs its SHA-256 and its size"},
		{"a path", func(t *model.Template) { t.Base.Volume = "../x" }, `base: "../x" has a slash or a control character`},
		{"no pool", func(t *model.Template) { t.Storage = "" }, "storage: no storage pool"},
		{"a text", func(t *model.Template) { t.UserData = "#cloud-config\nhostname: x\n" }, "user_data: line 2: hostname is set by virdeck; allowed: no hostname"},
	} {
		tpl := goodTemplate()
		tt.change(&tpl)
		if got := errText(validateTemplate(tpl)); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestMergeXML(t *testing.T) {
	tpl := goodTemplate()
	tpl.XML = `<domain xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
	  <memory unit='GiB'>2</memory>
	  <memoryBacking><hugepages/></memoryBacking>
	  <os><kernel>/boot/k</kernel><cmdline>lab.seed=on</cmdline></os>
	  <features><pae/></features>
	  <cpu mode='host-model'/>
	  <devices>
	    <emulator>/opt/qemu</emulator>
	    <disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/data'/><target dev='vdc' bus='virtio'/></disk>
	    <interface type='bridge'><source bridge='br1'/><model type='virtio'/></interface>
	    <memballoon model='none'/>
	  </devices>
	  <qemu:commandline><qemu:arg value='-foo'/></qemu:commandline>
	</domain>`
	o := someOwner()
	id := identify(o)
	text, err := domainXML(id, o, tpl)
	if err != nil {
		t.Fatal(err)
	}
	var d libvirtxml.Domain
	if err := d.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		ok   bool
	}{
		{"memory", d.Memory.Value == 2 && d.Memory.Unit == "GiB"},
		{"huge pages", d.MemoryBacking != nil && d.MemoryBacking.MemoryHugePages != nil},
		{"os", d.OS.Kernel == "/boot/k" && d.OS.Cmdline == "lab.seed=on" && d.OS.Type.Machine == "pc" && len(d.OS.BootDevices) == 1},
		{"features", d.Features.PAE != nil && d.Features.ACPI != nil},
		{"cpu", d.CPU.Mode == "host-model"},
		{"emulator", d.Devices.Emulator == "/opt/qemu"},
		{"disks", len(d.Devices.Disks) == 3 && d.Devices.Disks[0].Target.Dev == "vda" && d.Devices.Disks[2].Target.Dev == "vdc"},
		{"cards", len(d.Devices.Interfaces) == 2 && d.Devices.Interfaces[0].MAC.Address == id.mac},
		{"balloon", d.Devices.MemBalloon.Model == "none"},
		{"command line", d.QEMUCommandline != nil && d.QEMUCommandline.Args[0].Value == "-foo"},
		{"identity", d.Name == id.domain && d.UUID == formatUUID(id.uuid) && strings.Contains(d.Metadata.XML, "urn:virdeck:owner:1")},
	} {
		if !c.ok {
			t.Errorf("%s is not as it was to be, in\n%s", c.what, text)
		}
	}
	again, err := domainXML(id, o, tpl)
	if err != nil || again != text {
		t.Errorf("the same arguments give another text, or %v", err)
	}
}
