package libvirt

import (
	"fmt"
	"reflect"

	"libvirt.org/go/libvirtxml"

	"virdeck/model"
)

// mergeXML puts a template's raw XML into a domain, or says what is wrong with it
// and leaves the domain as it is. The rules:
//
//   - The text is one <domain> element with whatever it is to have beside what
//     virdeck makes.
//   - <devices>: each device is added to virdeck's own; of those of which a domain
//     has one (<emulator>, <memballoon>), it replaces virdeck's.
//   - <os> and <features>: each child replaces virdeck's of that name.
//   - Every other element replaces virdeck's of that name, whole.
//   - What makes the VM virdeck's cannot be touched: type, name, uuid, metadata,
//     the disks vda and vdb, the first interface's MAC, the agent's channel.
//   - An element or attribute that libvirtxml does not know is refused; it would
//     be lost without a word.
func mergeXML(d *libvirtxml.Domain, text string) []model.TextProblem {
	add, in, problems := readRaw(text)
	if len(problems) == 0 {
		problems = untouchable(d, add, in)
	}
	if len(problems) > 0 {
		return problems
	}
	to, from := reflect.ValueOf(d).Elem(), reflect.ValueOf(add).Elem()
	for i := range to.NumField() {
		name, f := to.Type().Field(i).Name, from.Field(i)
		switch {
		case name == "XMLName" || f.IsZero():
		case (name == "Devices" || name == "OS" || name == "Features") && !to.Field(i).IsNil():
			mergeChildren(to.Field(i).Elem(), f.Elem(), name == "Devices")
		default:
			to.Field(i).Set(f)
		}
	}
	return nil
}

func mergeChildren(to, from reflect.Value, appending bool) {
	for i := range to.NumField() {
		f := from.Field(i)
		switch {
		case f.IsZero():
		case appending && f.Kind() == reflect.Slice:
			to.Field(i).Set(reflect.AppendSlice(to.Field(i), f))
		default:
			to.Field(i).Set(f)
		}
	}
}

// untouchable says what of a raw text is virdeck's own. in are its items.
func untouchable(d, add *libvirtxml.Domain, in rawItems) []model.TextProblem {
	var out []model.TextProblem
	refuse := func(line int, format string, args ...any) {
		out = append(out, xmlProblem(line, format, args...))
	}
	for _, f := range []struct {
		path, allowed string
		set           bool
	}{
		{attribute("type", "<domain>"), "type in the template", add.Type != ""},
		{attribute("id", "<domain>"), "no id", add.ID != nil},
		{"<domain><name>", "no name", add.Name != ""},
		{"<domain><uuid>", "no uuid", add.UUID != ""},
		{"<domain><metadata>", "no metadata", add.Metadata != nil},
	} {
		if f.set {
			refuse(in.line(f.path, 0), "%s is set by virdeck; allowed: %s", f.path, f.allowed)
		}
	}
	if add.Devices == nil {
		return out
	}
	for i, k := range add.Devices.Disks {
		line := in.line("<domain><devices><disk>", i)
		for _, own := range d.Devices.Disks {
			if k.Target != nil && k.Target.Dev == own.Target.Dev {
				refuse(line, "the disk %s is virdeck's; allowed: other targets", k.Target.Dev)
			} else if v, w := diskVolume(k), diskVolume(own); v.Volume != "" && v.Volume == w.Volume {
				refuse(line, "the volume %s is virdeck's; allowed: other volumes", v.Volume)
			}
		}
	}
	own, _ := parseMAC(d.Devices.Interfaces[0].MAC.Address)
	for i, f := range add.Devices.Interfaces {
		if f.MAC == nil {
			continue
		}
		if m, ok := parseMAC(f.MAC.Address); ok && m.String() == own.String() {
			refuse(in.line("<domain><devices><interface>", i), "the interface with MAC %s is virdeck's; allowed: other MACs, or none", m)
		}
	}
	for i, c := range add.Devices.Channels {
		if c.Target != nil && c.Target.VirtIO != nil && c.Target.VirtIO.Name == agentChannel {
			refuse(in.line("<domain><devices><channel>", i), "the channel %s is virdeck's; allowed: other channels", agentChannel)
		}
	}
	return out
}

// diskVolume returns the volume that a disk is, or an empty one.
func diskVolume(k libvirtxml.DomainDisk) libvirtxml.DomainDiskSourceVolume {
	if k.Source == nil || k.Source.Volume == nil {
		return libvirtxml.DomainDiskSourceVolume{}
	}
	return *k.Source.Volume
}

func xmlProblem(line int, format string, args ...any) model.TextProblem {
	return model.TextProblem{Setting: "xml", Line: line, Msg: fmt.Sprintf(format, args...)}
}
