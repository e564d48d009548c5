package libvirt

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// mergeXML puts a template's raw XML into a domain. The rules:
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
func mergeXML(d *libvirtxml.Domain, text string) error {
	var add libvirtxml.Domain
	if err := add.Unmarshal(text); err != nil {
		return err
	}
	if err := nothingLost(text, &add); err != nil {
		return err
	}
	if err := touchable(d, &add); err != nil {
		return err
	}
	to, from := reflect.ValueOf(d).Elem(), reflect.ValueOf(&add).Elem()
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

// touchable names the first element that is virdeck's own.
func touchable(d, add *libvirtxml.Domain) error {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"attribute type of <domain>: use virt_type", add.Type != ""}, {"attribute id of <domain>", add.ID != nil},
		{"<name>", add.Name != ""}, {"<uuid>", add.UUID != ""}, {"<metadata>", add.Metadata != nil},
	} {
		if f.set {
			return fmt.Errorf("%s: set by virdeck", f.name)
		}
	}
	if add.Devices == nil {
		return nil
	}
	for _, k := range add.Devices.Disks {
		for _, own := range d.Devices.Disks {
			if k.Target != nil && k.Target.Dev == own.Target.Dev {
				return fmt.Errorf("<disk> with target %s: that disk is virdeck's", k.Target.Dev)
			}
			if v, w := diskVolume(k), diskVolume(own); v.Volume != "" && v.Volume == w.Volume {
				return fmt.Errorf("<disk> on volume %s: that volume is virdeck's", v.Volume)
			}
		}
	}
	own, _ := parseMAC(d.Devices.Interfaces[0].MAC.Address)
	for _, i := range add.Devices.Interfaces {
		if i.MAC == nil {
			continue
		}
		if m, ok := parseMAC(i.MAC.Address); ok && m.String() == own.String() {
			return fmt.Errorf("<interface> with MAC %s: that interface is virdeck's", m)
		}
	}
	for _, c := range add.Devices.Channels {
		if c.Target != nil && c.Target.VirtIO != nil && c.Target.VirtIO.Name == agentChannel {
			return fmt.Errorf("<channel> %s: that channel is virdeck's", agentChannel)
		}
	}
	return nil
}

// diskVolume returns the volume that a disk is, or an empty one.
func diskVolume(k libvirtxml.DomainDisk) libvirtxml.DomainDiskSourceVolume {
	if k.Source == nil || k.Source.Volume == nil {
		return libvirtxml.DomainDiskSourceVolume{}
	}
	return *k.Source.Volume
}

// nothingLost compares the elements and attributes that went in with those that
// would come out.
func nothingLost(text string, d *libvirtxml.Domain) error {
	in, err := names(text)
	if err != nil {
		return err
	}
	out, err := d.Marshal()
	if err != nil {
		return err
	}
	kept, err := names(out)
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, n := range kept {
		have[n] = true
	}
	for _, n := range in {
		if !have[n] {
			return fmt.Errorf("%s is unknown here", n)
		}
	}
	return nil
}

// names returns the paths of all elements and attributes, in order:
// <domain><devices><disk>, attribute device of <domain><devices><disk>.
func names(text string) ([]string, error) {
	var out []string
	dec := xml.NewDecoder(strings.NewReader(text))
	var open []string
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			open = append(open, "<"+t.Name.Local+">")
			path := strings.Join(open, "")
			out = append(out, path)
			for _, a := range t.Attr {
				if a.Name.Local != "xmlns" && a.Name.Space != "xmlns" {
					out = append(out, "attribute "+a.Name.Local+" of "+path)
				}
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}
