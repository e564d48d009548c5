package simhost

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// liner returns what adds a line to b.
func liner(b *strings.Builder) func(format string, args ...any) {
	return func(format string, args ...any) { _, _ = fmt.Fprintf(b, format+"\n", args...) } // a builder never fails
}

// escape makes text fit for XML, attribute or content. What XML cannot hold
// becomes U+FFFD: a name with control characters is whole only on the wire.
func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder never fails
	return b.String()
}

// xml is the domain's description, live or as it is defined.
func (d *Domain) xml(live bool) string {
	var b strings.Builder
	line := liner(&b)
	spec, nics := &d.spec, d.nics
	if !live && d.next != nil {
		spec, nics = &d.next.spec, nil
		for _, n := range spec.NICs {
			nics = append(nics, &nic{spec: n})
		}
	}
	if live {
		line("<domain type='kvm' id='%d'>", d.id)
	} else {
		line("<domain type='kvm'>")
	}
	line("  <name>%s</name>", escape(d.spec.Name))
	line("  <uuid>%s</uuid>", uuidText(d.uuid))
	if live {
		d.live.lines(line)
	} else {
		d.config.lines(line)
	}
	line("  <memory unit='KiB'>%d</memory>", spec.MemoryMiB<<10)
	line("  <currentMemory unit='KiB'>%d</currentMemory>", spec.MemoryMiB<<10)
	line("  <vcpu placement='static'>%d</vcpu>", spec.VCPUs)
	line("  <os>")
	line("    <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>")
	line("    <boot dev='hd'/>")
	line("  </os>")
	line("  <features>")
	line("    <acpi/>")
	line("    <apic/>")
	line("  </features>")
	line("  <clock offset='utc'/>")
	line("  <on_poweroff>destroy</on_poweroff>")
	line("  <on_reboot>restart</on_reboot>")
	line("  <on_crash>destroy</on_crash>")
	line("  <devices>")
	line("    <emulator>/usr/bin/qemu-system-x86_64</emulator>")
	d.diskLines(live, line)
	for i, n := range nics {
		b.WriteString(d.h.nicXML(n, i, live))
	}
	if !spec.NoAgentChannel {
		line("    <channel type='unix'>")
		line("      <source mode='bind' path='/var/lib/libvirt/qemu/channel/target/agent-%s.sock'/>", uuidText(d.uuid))
		if live {
			line("      <target type='virtio' name='org.qemu.guest_agent.0' state='%s'/>", d.channelState())
			line("      <alias name='channel0'/>")
		} else {
			line("      <target type='virtio' name='org.qemu.guest_agent.0'/>")
		}
		line("      <address type='virtio-serial' controller='0' bus='0' port='1'/>")
		line("    </channel>")
	}
	line("    <memballoon model='virtio'/>")
	line("  </devices>")
	line("</domain>")
	return b.String()
}

func (d *Domain) channelState() string {
	if d.guest.agent == agentDown {
		return "disconnected"
	}
	return "connected"
}

func (h *Host) nicXML(n *nic, index int, live bool) string {
	var b strings.Builder
	line := liner(&b)
	if n.spec.Network != "" {
		bridge := ""
		if net := h.network(n.spec.Network); net != nil && live {
			bridge = fmt.Sprintf(" bridge='%s'", escape(net.spec.Bridge))
		}
		line("    <interface type='network'>")
		line("      <mac address='%s'/>", escape(n.spec.MAC))
		line("      <source network='%s'%s/>", escape(n.spec.Network), bridge)
	} else {
		line("    <interface type='bridge'>")
		line("      <mac address='%s'/>", escape(n.spec.MAC))
		line("      <source bridge='%s'/>", escape(n.spec.Bridge))
	}
	if live {
		line("      <target dev='%s'/>", n.target)
	}
	line("      <model type='virtio'/>")
	if live {
		line("      <alias name='net%d'/>", index)
	}
	line("    </interface>")
	return b.String()
}
