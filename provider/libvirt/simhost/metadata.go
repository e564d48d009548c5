package simhost

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	libvirt "github.com/digitalocean/go-libvirt"
)

// metadata is what others have written onto a domain: its configuration has one
// set, and while it runs the running domain has another, which its end takes away.
type metadata struct {
	title, description string
	elements           []element
}

// element is one element of somebody's own namespace.
type element struct {
	uri string
	key string // the prefix in the domain's XML
	xml string // without the namespace
}

func (m *metadata) clone() metadata {
	c := *m
	c.elements = slices.Clone(m.elements)
	return c
}

func (m *metadata) element(uri string) int {
	return slices.IndexFunc(m.elements, func(e element) bool { return e.uri == uri })
}

// set puts an element in place of the one of its namespace; an empty text takes
// that away.
func (m *metadata) set(e element) {
	i := m.element(e.uri)
	switch {
	case e.xml == "" && i >= 0:
		m.elements = slices.Delete(m.elements, i, i+1)
	case e.xml == "":
	case i >= 0:
		m.elements[i] = e
	default:
		m.elements = append(m.elements, e)
	}
}

// impact returns the sets that a call's flags mean: live, configuration, or what
// is current.
func (d *Domain) impact(flags libvirt.DomainModificationImpact) ([]*metadata, *Error) {
	live, config := flags&libvirt.DomainAffectLive != 0, flags&libvirt.DomainAffectConfig != 0
	if !live && !config {
		live, config = d.active(), !d.active()
	}
	if live && !d.active() {
		return nil, notRunning()
	}
	if config && !d.persistent {
		return nil, fail(fromQEMU, libvirt.ErrOperationInvalid, "transient domains do not have any persistent config")
	}
	var out []*metadata
	if live {
		out = append(out, &d.live)
	}
	if config {
		out = append(out, &d.config)
	}
	return out, nil
}

func first(o libvirt.OptString) string {
	if len(o) == 0 {
		return ""
	}
	return o[0]
}

func setMetadata(c *call, a *libvirt.DomainSetMetadataArgs) (void, *Error) {
	return onDomain(c, a.Dom, func(d *Domain) (void, *Error) {
		sets, e := d.impact(a.Flags)
		if e != nil {
			return void{}, e
		}
		text, uri, key := first(a.Metadata), first(a.Uri), first(a.Key)
		for _, m := range sets {
			switch libvirt.DomainMetadataType(a.Type) {
			case libvirt.DomainMetadataDescription:
				m.description = text
			case libvirt.DomainMetadataTitle:
				if strings.ContainsRune(text, '\n') {
					return void{}, fail(fromDomain, libvirt.ErrInvalidArg, "metadata title can't contain newlines")
				}
				m.title = text
			case libvirt.DomainMetadataElement:
				if uri == "" || text != "" && key == "" {
					return void{}, fail(fromDomain, libvirt.ErrInvalidArg, "a namespace's uri and key are needed")
				}
				if text != "" {
					var err error
					if text, err = renamed(text, prefixed, ""); err != nil {
						return void{}, fail(fromNone, libvirt.ErrXMLDetail, "(metadata_xml):1: %s", err.Error())
					}
				}
				m.set(element{uri: uri, key: key, xml: text})
			default:
				return void{}, fail(fromDomain, libvirt.ErrInvalidArg, "unknown metadata type")
			}
		}
		c.h.emitMetadata(d, a.Type, a.Uri)
		return void{}, nil
	})
}

func getMetadata(c *call, a *libvirt.DomainGetMetadataArgs) (libvirt.DomainGetMetadataRet, *Error) {
	return onDomain(c, a.Dom, func(d *Domain) (libvirt.DomainGetMetadataRet, *Error) {
		var r libvirt.DomainGetMetadataRet
		if a.Flags&libvirt.DomainAffectLive != 0 && a.Flags&libvirt.DomainAffectConfig != 0 {
			return r, fail(fromDomain, libvirt.ErrInvalidArg, "flags 'VIR_DOMAIN_AFFECT_LIVE' and 'VIR_DOMAIN_AFFECT_CONFIG' in function virDomainGetMetadata are mutually exclusive")
		}
		sets, e := d.impact(a.Flags)
		if e != nil {
			return r, e
		}
		m := sets[0]
		switch libvirt.DomainMetadataType(a.Type) {
		case libvirt.DomainMetadataDescription:
			r.Metadata = m.description
		case libvirt.DomainMetadataTitle:
			r.Metadata = m.title
		case libvirt.DomainMetadataElement:
			if i := m.element(first(a.Uri)); i >= 0 {
				r.Metadata = m.elements[i].xml
			}
		}
		if r.Metadata == "" {
			return r, fail(fromDomain, libvirt.ErrNoDomainMetadata, "Requested metadata element is not present")
		}
		return r, nil
	})
}

// lines are the description of the metadata in a domain's XML.
func (m *metadata) lines(line func(format string, args ...any)) {
	if m.title != "" {
		line("  <title>%s</title>", escape(m.title))
	}
	if m.description != "" {
		line("  <description>%s</description>", escape(m.description))
	}
	if len(m.elements) == 0 {
		return
	}
	line("  <metadata>")
	for _, e := range m.elements {
		text, err := renamed(e.xml, func(n, prefix string) string {
			if prefix == "" {
				prefix = e.key
			}
			return prefixed(n, prefix)
		}, " xmlns:"+e.key+"=\""+escape(e.uri)+"\"")
		if err != nil {
			continue // what cannot be read was refused when it was set
		}
		line("    %s", text)
	}
	line("  </metadata>")
}

// errShape is an XML text that is not one element.
var errShape = errors.New("not one element")

// prefixed is a name as it stands in XML.
func prefixed(name, prefix string) string {
	if prefix == "" {
		return name
	}
	return prefix + ":" + name
}

// renamed writes one XML element anew: each element's name as rename says, from
// its local part and its prefix, and extra among the outermost one's attributes.
func renamed(text string, rename func(name, prefix string) string, extra string) (string, error) {
	var b strings.Builder
	dec := xml.NewDecoder(strings.NewReader(text))
	var open []xml.Name
	roots := 0
	bare := false // the last thing written is a start tag without its end
	finish := func() {
		if bare {
			b.WriteString(">")
			bare = false
		}
	}
	for {
		tok, err := dec.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			finish()
			b.WriteString("<" + rename(t.Name.Local, t.Name.Space))
			if len(open) == 0 {
				roots++
				b.WriteString(extra)
			}
			for _, a := range t.Attr {
				b.WriteString(" " + prefixed(a.Name.Local, a.Name.Space) + "=\"" + escape(a.Value) + "\"")
			}
			bare = true
			open = append(open, t.Name)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != t.Name {
				return "", errShape
			}
			open = open[:len(open)-1]
			if bare {
				b.WriteString("/>")
				bare = false
				continue
			}
			b.WriteString("</" + rename(t.Name.Local, t.Name.Space) + ">")
		case xml.CharData:
			if len(open) > 0 && len(t) > 0 {
				finish()
				b.WriteString(escape(string(t)))
			}
		}
	}
	if len(open) != 0 || roots != 1 {
		return "", errShape
	}
	return b.String(), nil
}

// Metadata returns the element of a namespace, without it, of the configuration
// or of the running domain; "" when there is none.
func (d *Domain) Metadata(uri string, live bool) string {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	m := &d.config
	if live {
		m = &d.live
	}
	if i := m.element(uri); i >= 0 {
		return m.elements[i].xml
	}
	return ""
}

// SetMetadata sets an element of somebody's namespace, in the configuration and,
// while it runs, in the running domain, with its event; an empty text takes it
// away. The text is as a client would give it, without the namespace.
func (d *Domain) SetMetadata(uri, key, text string) {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.config.set(element{uri: uri, key: key, xml: text})
	if d.active() {
		d.live.set(element{uri: uri, key: key, xml: text})
	}
	d.h.emitMetadata(d, int32(libvirt.DomainMetadataElement), libvirt.OptString{uri})
}
