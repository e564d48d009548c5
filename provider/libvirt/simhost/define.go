package simhost

import (
	"encoding/xml"
	"slices"
	"strconv"
	"strings"

	libvirt "github.com/digitalocean/go-libvirt"
)

// defineProcs serve what makes domains and writes onto them.
func defineProcs() table {
	return table{
		ProcDomainDefineXML:      {high: true, write: true, run: typed(domainDefineXML)},
		ProcDomainDefineXMLFlags: {high: true, write: true, run: typed(domainDefineXMLFlags)},
		ProcDomainSetMetadata:    {write: true, run: typed(setMetadata)},
		ProcDomainGetMetadata:    {run: typed(getMetadata)},
	}
}

// definition is a domain's configuration as a client gave it.
type definition struct {
	spec  DomainSpec
	disks []disk
	meta  metadata
	efi   bool
}

// disk is a disk of a defined domain: a file, or a volume of a pool.
type disk struct {
	device, format string
	file           string
	pool, volume   string
	target, bus    string
}

// domainXML is what matters of a domain's definition.
type domainXML struct {
	XMLName     xml.Name
	Name        string `xml:"name"`
	UUID        string `xml:"uuid"`
	Title       string `xml:"title"`
	Description string `xml:"description"`
	Metadata    struct {
		Inner string `xml:",innerxml"`
	} `xml:"metadata"`
	OS struct {
		Firmware string `xml:"firmware,attr"`
	} `xml:"os"`
	Memory     *sizeXML `xml:"memory"`
	VCPUs      string   `xml:"vcpu"`
	Interfaces []struct {
		Type string `xml:"type,attr"`
		MAC  struct {
			Address string `xml:"address,attr"`
		} `xml:"mac"`
		Source struct {
			Network string `xml:"network,attr"`
			Bridge  string `xml:"bridge,attr"`
		} `xml:"source"`
	} `xml:"devices>interface"`
	Disks []struct {
		Device string `xml:"device,attr"`
		Driver struct {
			Type string `xml:"type,attr"`
		} `xml:"driver"`
		Source struct {
			File   string `xml:"file,attr"`
			Pool   string `xml:"pool,attr"`
			Volume string `xml:"volume,attr"`
		} `xml:"source"`
		Target struct {
			Dev string `xml:"dev,attr"`
			Bus string `xml:"bus,attr"`
		} `xml:"target"`
	} `xml:"devices>disk"`
	Channels []struct {
		Target struct {
			Name string `xml:"name,attr"`
		} `xml:"target"`
	} `xml:"devices>channel"`
}

func domainDefineXML(c *call, a *libvirt.DomainDefineXMLArgs) (libvirt.DomainDefineXMLRet, *Error) {
	dom, e := define(c, a.XML)
	return libvirt.DomainDefineXMLRet{Dom: dom}, e
}

func domainDefineXMLFlags(c *call, a *libvirt.DomainDefineXMLFlagsArgs) (libvirt.DomainDefineXMLFlagsRet, *Error) {
	dom, e := define(c, a.XML)
	return libvirt.DomainDefineXMLFlagsRet{Dom: dom}, e
}

// define makes a domain, or gives one of the same name and UUID another
// configuration without a word; one that runs goes on as it is until its end.
func define(c *call, text string) (libvirt.Domain, *Error) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	def, e := parseDomain(text)
	if e != nil {
		return libvirt.Domain{}, e
	}
	h := c.h
	if def.spec.UUID == ([16]byte{}) {
		def.spec.UUID = derivedUUID("defined", h.opts.Name, def.spec.Name, strconv.Itoa(len(h.domains)))
	}
	for i := range def.spec.NICs {
		if n := &def.spec.NICs[i]; n.MAC == "" {
			h.macs++
			n.MAC = numberedMAC(h.opts.UUID, h.macs)
		}
	}
	d := h.byUUID[def.spec.UUID]
	switch other := h.names[def.spec.Name]; {
	case d != nil && d.spec.Name != def.spec.Name:
		return libvirt.Domain{}, fail(fromDomain, libvirt.ErrOperationFailed, "domain '%s' is already defined with uuid %s", d.spec.Name, uuidText(d.uuid))
	case d == nil && other != nil:
		return libvirt.Domain{}, fail(fromDomain, libvirt.ErrOperationFailed, "domain '%s' already exists with uuid %s", other.spec.Name, uuidText(other.uuid))
	case d != nil:
		d.persistent = true
		d.config = def.meta
		if d.active() {
			d.next = def
		} else {
			d.redefine(def)
		}
		h.emitLifecycle(d, libvirt.DomainEventDefined, int32(libvirt.DomainEventDefinedUpdated))
		return d.ref(), nil
	}
	if h.opts.OnDefine != nil {
		h.opts.OnDefine(&def.spec)
	}
	d = h.newDomain(def.spec)
	d.defined, d.disks, d.config, d.efi = true, def.disks, def.meta, def.efi
	h.emitLifecycle(d, libvirt.DomainEventDefined, int32(libvirt.DomainEventDefinedAdded))
	return d.ref(), nil
}

// redefine gives an inactive domain its new configuration. What a guest's own
// system is like stays.
func (d *Domain) redefine(def *definition) {
	if d.h.opts.OnDefine != nil {
		d.h.opts.OnDefine(&def.spec)
	}
	for _, n := range d.nics {
		d.h.setAddrs(n, nil)
	}
	before := d.nics
	d.nics = nil
	for i, n := range def.spec.NICs {
		if i < len(before) && canonicalMAC(n.MAC) == before[i].mac && len(n.Addresses) == 0 {
			n.Addresses = before[i].lastAddrs // the same card gets the same address again
		}
		d.nics = append(d.nics, d.h.newNIC(d, n))
	}
	d.spec.NoAgentChannel, d.spec.MemoryMiB, d.spec.VCPUs = def.spec.NoAgentChannel, def.spec.MemoryMiB, def.spec.VCPUs
	d.defined, d.disks, d.next, d.efi = true, def.disks, nil, def.efi
}

// parseDomain reads a domain's definition.
func parseDomain(text string) (*definition, *Error) {
	var x domainXML
	if err := xml.Unmarshal([]byte(text), &x); err != nil {
		return nil, fail(fromDomain, libvirt.ErrXMLDetail, "(domain_definition):1: %s", err.Error())
	}
	if x.XMLName.Local != "domain" {
		return nil, fail(fromDomain, libvirt.ErrXMLError, "unexpected root element <%s>, expecting <domain>", x.XMLName.Local)
	}
	if x.Name == "" {
		return nil, &Error{Code: libvirt.ErrNoName, Domain: fromDomain, Message: "missing name information"}
	}
	if strings.ContainsRune(x.Name, '/') {
		return nil, fail(fromDomain, libvirt.ErrXMLError, "name %s cannot contain '/'", x.Name)
	}
	def := &definition{
		spec: DomainSpec{Name: x.Name, NICs: []NIC{}, NoAgentChannel: true, MemoryMiB: 256, VCPUs: 1},
		meta: metadata{title: x.Title, description: x.Description},
	}
	if x.UUID != "" {
		u, ok := parseUUID(x.UUID)
		if !ok {
			return nil, fail(fromDomain, libvirt.ErrInternalError, "malformed uuid element")
		}
		def.spec.UUID = u
	}
	if x.Memory != nil {
		if x.Memory.Unit == "" {
			x.Memory.Unit = "KiB" // unlike a volume's
		}
		n, ok := x.Memory.bytes()
		if !ok {
			return nil, fail(fromDomain, libvirt.ErrXMLError, "malformed memory element")
		}
		def.spec.MemoryMiB = n >> 20
	}
	if n, err := strconv.ParseUint(strings.TrimSpace(x.VCPUs), 10, 16); err == nil {
		def.spec.VCPUs = uint16(n)
	}
	for _, i := range x.Interfaces {
		def.spec.NICs = append(def.spec.NICs, NIC{MAC: i.MAC.Address, Network: i.Source.Network, Bridge: i.Source.Bridge})
	}
	for _, c := range x.Channels {
		if c.Target.Name == "org.qemu.guest_agent.0" {
			def.spec.NoAgentChannel = false
		}
	}
	for _, k := range x.Disks {
		def.disks = append(def.disks, disk{
			device: k.Device, format: k.Driver.Type, file: k.Source.File, pool: k.Source.Pool, volume: k.Source.Volume,
			target: k.Target.Dev, bus: k.Target.Bus,
		})
	}
	elements, err := parseElements(x.Metadata.Inner)
	if err != nil {
		return nil, fail(fromDomain, libvirt.ErrXMLDetail, "(domain_definition):1: %s", err.Error())
	}
	def.meta.elements = elements
	def.efi = x.OS.Firmware == "efi"
	return def, nil
}

// parseElements reads what stands in <metadata>. An element without a namespace
// of its own is dropped, as a daemon does.
func parseElements(inner string) ([]element, error) {
	var out []element
	var top struct {
		Children []struct {
			XMLName xml.Name
			Attrs   []xml.Attr `xml:",any,attr"`
			Inner   string     `xml:",innerxml"`
		} `xml:",any"`
	}
	if err := xml.Unmarshal([]byte("<m>"+inner+"</m>"), &top); err != nil {
		return nil, err
	}
	for _, c := range top.Children {
		e := element{uri: c.XMLName.Space}
		if e.uri == "" {
			continue
		}
		var attrs strings.Builder
		for _, a := range c.Attrs {
			switch {
			case a.Name.Space == "xmlns" && a.Value == e.uri:
				e.key = a.Name.Local
			case a.Name.Local == "xmlns" && a.Name.Space == "":
			default:
				attrs.WriteString(" " + a.Name.Local + "=\"" + escape(a.Value) + "\"")
			}
		}
		if e.key == "" {
			e.key = "ns" + strconv.Itoa(len(out))
		}
		own := e.key
		text, err := renamed("<"+c.XMLName.Local+attrs.String()+">"+c.Inner+"</"+c.XMLName.Local+">", func(n, prefix string) string {
			if prefix == own {
				prefix = ""
			}
			return prefixed(n, prefix)
		}, "")
		if err != nil {
			return nil, err
		}
		e.xml = text
		if i := slices.IndexFunc(out, func(o element) bool { return o.uri == e.uri }); i < 0 { // one of a namespace
			out = append(out, e)
		}
	}
	return out, nil
}

// disksThere checks what QEMU needs to start: the files of the disks, and those
// on which they rest. A domain that no client defined has all it needs.
func (d *Domain) disksThere() *Error {
	if !d.defined {
		return nil
	}
	for _, k := range d.disks {
		file := k.file
		if k.volume != "" {
			p := d.h.pool(k.pool)
			if p == nil {
				return noPool("no storage pool with matching name '%s'", k.pool)
			}
			v := p.volume(k.volume)
			if v == nil {
				return noVolume("no storage vol with matching name '%s'", k.volume)
			}
			file = v.path()
		}
		for file != "" {
			v := d.h.volumeAt(file)
			if v == nil {
				return fail(fromNone, libvirt.ErrSystemError, "Cannot access storage file '%s': No such file or directory", file)
			}
			if b := d.h.volumeAt(v.Backing); b != nil && b.noQcow2(v.BackingFormat) {
				return fail(fromQEMU, libvirt.ErrInternalError, "process exited while connecting to monitor: "+
					"Could not open '%s': Image is not in qcow2 format", v.Backing)
			}
			file = v.Backing
		}
	}
	return nil
}

// networksThere checks what libvirt needs to start a domain that a client defined:
// its networks.
func (d *Domain) networksThere() *Error {
	for _, n := range d.nics {
		if n.spec.Network == "" {
			continue
		}
		switch net := d.h.network(n.spec.Network); {
		case net == nil && d.defined:
			return noNetwork(n.spec.Network)
		case net != nil && !net.active:
			return net.inactive()
		}
	}
	return nil
}

// diskLines describe the disks in the domain's XML.
func (d *Domain) diskLines(live bool, line func(format string, args ...any)) {
	disks := d.disks
	switch {
	case !live && d.next != nil:
		disks = d.next.disks
	case !d.defined:
		disks = []disk{{device: "disk", format: "qcow2", file: "/var/lib/libvirt/images/" + d.spec.Name + ".qcow2", target: "vda", bus: "virtio"}}
	}
	for _, k := range disks {
		kind, source := "file", "file='"+escape(k.file)+"'"
		if k.volume != "" {
			kind, source = "volume", "pool='"+escape(k.pool)+"' volume='"+escape(k.volume)+"'"
		}
		device := k.device
		if device == "" {
			device = "disk"
		}
		line("    <disk type='%s' device='%s'>", kind, escape(device))
		line("      <driver name='qemu' type='%s'/>", escape(k.format))
		line("      <source %s/>", source)
		line("      <target dev='%s' bus='%s'/>", escape(k.target), escape(k.bus))
		if device == "cdrom" {
			line("      <readonly/>")
		}
		line("    </disk>")
	}
}
