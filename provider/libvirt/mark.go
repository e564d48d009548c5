package libvirt

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"virdeck/model"
)

// markURI is the namespace of the mark in a domain's metadata, with the version
// of its form; markKey is the prefix that libvirt gives it.
const (
	markURI = "urn:virdeck:owner:1"
	markKey = "virdeck"
)

// Bounds of a mark that is taken seriously.
const (
	maxMark  = 4096
	maxField = 256
)

// markXML is the form of the mark: one element, attributes alone. libvirt takes
// it without its namespace, and gives it back so.
type markXML struct {
	XMLName    xml.Name // without a tag, which would win over its space
	Fleet      string   `xml:"fleet,attr"`
	Proxy      string   `xml:"proxy,attr"`
	UID        string   `xml:"uid,attr"`
	Controller string   `xml:"controller,attr"`
	Spec       string   `xml:"spec,attr,omitempty"`
	Pool       string   `xml:"pool,attr,omitempty"`
	Phase      string   `xml:"phase,attr"`
	Created    string   `xml:"created,attr"`
}

// markText writes a mark; space is markURI inside a domain's XML, and empty for
// the call that sets it.
func markText(o model.Owner, space string) (string, error) {
	b, err := xml.Marshal(markXML{
		XMLName: xml.Name{Space: space, Local: "owner"},
		Fleet:   o.Fleet, Proxy: string(o.Proxy), UID: o.UID, Controller: o.Controller,
		Spec: o.SpecHash, Pool: o.Pool, Phase: string(o.Phase), Created: o.CreatedAt.UTC().Format(time.RFC3339),
	})
	if err != nil {
		return "", fmt.Errorf("mark: %w", err)
	}
	// What is written must be what is read later: a name that XML cannot hold
	// would make a VM that is nobody's.
	back, err := parseMark(string(b))
	if err == nil && !sameOwner(back, o) {
		err = errors.New("does not read back as it was written")
	}
	if err != nil {
		return "", fmt.Errorf("mark: %w", err)
	}
	return string(b), nil
}

func sameOwner(a, b model.Owner) bool {
	a.CreatedAt, b.CreatedAt = a.CreatedAt.UTC().Truncate(time.Second), b.CreatedAt.UTC().Truncate(time.Second)
	return a == b
}

// parseMark reads a mark strictly: whatever is not exactly one is nobody's, and
// the error says why.
func parseMark(text string) (model.Owner, error) {
	if len(text) > maxMark {
		return model.Owner{}, fmt.Errorf("%d bytes, at most %d are read", len(text), maxMark)
	}
	root, err := soleElement(text)
	if err != nil {
		return model.Owner{}, err
	}
	if root.Name.Local != "owner" || root.Name.Space != "" && root.Name.Space != markURI {
		return model.Owner{}, fmt.Errorf("element <%s>, want <owner>", root.Name.Local)
	}
	var o model.Owner
	var created string
	seen := map[string]bool{}
	for _, a := range root.Attr {
		if a.Name.Local == "xmlns" || a.Name.Space == "xmlns" {
			continue
		}
		if a.Name.Space != "" || seen[a.Name.Local] {
			return model.Owner{}, fmt.Errorf("attribute %q, which no mark has", a.Name.Local)
		}
		seen[a.Name.Local] = true
		if err := plainField(a.Value); err != nil {
			return model.Owner{}, fmt.Errorf("attribute %q: %w", a.Name.Local, err)
		}
		switch a.Name.Local {
		case "fleet":
			o.Fleet = a.Value
		case "proxy":
			o.Proxy = model.ProxyName(a.Value)
		case "uid":
			o.UID = a.Value
		case "controller":
			o.Controller = a.Value
		case "spec":
			o.SpecHash = a.Value
		case "pool":
			o.Pool = a.Value
		case "phase":
			o.Phase = model.MarkPhase(a.Value)
		case "created":
			created = a.Value
		default:
			return model.Owner{}, fmt.Errorf("attribute %q, which no mark has", a.Name.Local)
		}
	}
	for _, f := range []struct{ name, value string }{{"fleet", o.Fleet}, {"proxy", string(o.Proxy)}, {"uid", o.UID}, {"controller", o.Controller}} {
		if f.value == "" {
			return model.Owner{}, fmt.Errorf("no %s", f.name)
		}
	}
	switch o.Phase {
	case model.PhaseNew, model.PhaseReady, model.PhaseDeleting:
	default:
		return model.Owner{}, fmt.Errorf("phase %q, which there is not", o.Phase)
	}
	if o.CreatedAt, err = time.Parse(time.RFC3339, created); err != nil {
		return model.Owner{}, fmt.Errorf("created %q, which is no time", created)
	}
	o.CreatedAt = o.CreatedAt.UTC()
	return o, nil
}

// soleElement returns the one element of a text that has nothing in it or
// beside it.
func soleElement(text string) (xml.StartElement, error) {
	var root xml.StartElement
	dec := xml.NewDecoder(strings.NewReader(text))
	depth, roots := 0, 0
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return root, err
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if depth++; depth > 1 {
				return root, fmt.Errorf("element <%s> inside, want none", t.Name.Local)
			}
			roots++
			root = t.Copy()
		case xml.EndElement:
			depth--
		case xml.CharData:
			if strings.TrimSpace(string(t)) != "" {
				return root, errors.New("text, want none")
			}
		case xml.Directive:
			return root, errors.New("a directive, want none")
		}
	}
	if roots != 1 {
		return root, fmt.Errorf("%d elements, want one", roots)
	}
	return root, nil
}

func plainField(s string) error {
	switch {
	case len(s) > maxField:
		return fmt.Errorf("%d bytes, at most %d are read", len(s), maxField)
	case !utf8.ValidString(s), strings.ContainsFunc(s, unicode.IsControl):
		return errors.New("control characters or no UTF-8")
	}
	return nil
}
