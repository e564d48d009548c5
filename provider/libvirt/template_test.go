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
		{"a script", func(t *model.Template) { t.UserData = "#!/bin/sh\n" }, "user_data: its first line is not #cloud-config; other kinds of user-data cannot be merged"},
		{"no YAML", func(t *model.Template) { t.UserData = "#cloud-config\na: [" }, "user_data: yaml: line 2: did not find expected node content"},
		{"a list", func(t *model.Template) { t.UserData = "#cloud-config\n- a\n" }, "user_data: not one YAML mapping: yaml: unmarshal errors:\n  line 2: cannot unmarshal !!seq into map[string]interface {}"},
		{"a key twice", func(t *model.Template) { t.UserData = "#cloud-config\na: 1\na: 2\n" }, "user_data: not one YAML mapping: yaml: unmarshal errors:\n  line 3: mapping key \"a\" already defined at line 2"},
		{"two documents", func(t *model.Template) { t.UserData = "#cloud-config\na: 1\n---\nb: 1\n" }, "user_data: more than one YAML document"},
		{"our file", func(t *model.Template) { t.UserData = "#cloud-config\nwrite_files: [{path: /etc/proxy.env}]\n" }, "user_data: /etc/proxy.env is written by virdeck"},
		{"no path", func(t *model.Template) { t.UserData = "#cloud-config\nwrite_files: [{content: x}]\n" }, "user_data: write_files item 1 has no path"},
		{"no list", func(t *model.Template) { t.UserData = "#cloud-config\nwrite_files: x\n" }, "user_data: write_files is not a list"},
		{"our host name", func(t *model.Template) { t.UserData = "#cloud-config\nhostname: x\n" }, "user_data: hostname is set by virdeck"},
		{"no XML", func(t *model.Template) { t.XML = "<domain>" }, "xml: XML syntax error on line 1: unexpected EOF"},
		{"another root", func(t *model.Template) { t.XML = "<network/>" }, "xml: expected element type <domain> but have <network>"},
		{"name", func(t *model.Template) { t.XML = "<domain><name>x</name></domain>" }, "xml: <name>: set by virdeck"},
		{"uuid", func(t *model.Template) { t.XML = "<domain><uuid>x</uuid></domain>" }, "xml: <uuid>: set by virdeck"},
		{"metadata", func(t *model.Template) { t.XML = "<domain><metadata/></domain>" }, "xml: <metadata>: set by virdeck"},
		{"type", func(t *model.Template) { t.XML = "<domain type='xen'/>" }, "xml: attribute type of <domain>: use virt_type: set by virdeck"},
		{"the disk", func(t *model.Template) {
			t.XML = "<domain><devices><disk type='file' device='disk'><source file='/x'/><target dev='vda' bus='virtio'/></disk></devices></domain>"
		}, "xml: <disk> with target vda: that disk is virdeck's"},
		{"the card", func(t *model.Template) {
			t.XML = "<domain><devices><interface type='bridge'><mac address='" + strings.ToUpper(identify(model.Owner{Fleet: "check", UID: "check"}).mac) + "'/><source bridge='b'/></interface></devices></domain>"
		}, "xml: <interface> with MAC " + identify(model.Owner{Fleet: "check", UID: "check"}).mac + ": that interface is virdeck's"},
		{"the channel", func(t *model.Template) {
			t.XML = "<domain><devices><channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel></devices></domain>"
		}, "xml: <channel> org.qemu.guest_agent.0: that channel is virdeck's"},
		{"an unknown element", func(t *model.Template) { t.XML = "<domain><devices><flux/></devices></domain>" }, "xml: <domain><devices><flux> is unknown here"},
		{"an unknown attribute", func(t *model.Template) { t.XML = "<domain><vcpu colour='red'>2</vcpu></domain>" }, "xml: attribute colour of <domain><vcpu> is unknown here"},
	} {
		tpl := goodTemplate()
		tt.change(&tpl)
		if got := errText(ValidateTemplate(tpl)); got != tt.want {
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
