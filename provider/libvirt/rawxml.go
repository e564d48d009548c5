package libvirt

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"libvirt.org/go/libvirtxml"

	"virdeck/model"
)

// rawItem is an element or an attribute of an XML text, and the line where it
// begins: <domain><devices><disk>, attribute device of <domain><devices><disk>.
type rawItem struct {
	path string
	at   int
}

// rawItems are those of a text, in order.
type rawItems []rawItem

// line is that of the nth item with a path, from 0; 0 for one that is not there.
func (in rawItems) line(path string, nth int) int {
	for _, it := range in {
		if it.path != path {
			continue
		}
		if nth == 0 {
			return it.at
		}
		nth--
	}
	return 0
}

func attribute(name, path string) string { return "attribute " + name + " of " + path }

// readRaw reads a template's raw XML, and says what is wrong with it by itself.
func readRaw(text string) (*libvirtxml.Domain, rawItems, []model.TextProblem) {
	in, wrong := itemsOf(text)
	if wrong != nil {
		return nil, nil, []model.TextProblem{*wrong}
	}
	dec := newXMLDecoder(text)
	add := new(libvirtxml.Domain)
	if err := dec.Decode(add); err != nil {
		line, _ := dec.InputPos()
		return nil, nil, []model.TextProblem{misfit(line, err)}
	}
	return add, in, lost(in, add)
}

// lost compares the elements and attributes that went in with those that would
// come out.
func lost(in rawItems, d *libvirtxml.Domain) []model.TextProblem {
	out, err := d.Marshal()
	if err != nil {
		return []model.TextProblem{misfit(0, err)}
	}
	kept, wrong := itemsOf(out)
	if wrong != nil {
		return []model.TextProblem{*wrong}
	}
	have := map[string]bool{}
	for _, it := range kept {
		have[it.path] = true
	}
	var problems []model.TextProblem
	var gone []string // elements: what is in them, and more of them, goes without saying
	for _, it := range in {
		_, element, _ := strings.Cut(it.path, "<")
		if have[it.path] || slices.ContainsFunc(gone, func(g string) bool { return strings.HasPrefix("<"+element, g) }) {
			continue
		}
		have[it.path] = true
		if it.path[0] == '<' {
			gone = append(gone, it.path)
		}
		problems = append(problems, xmlProblem(it.at, "%s is not known here and would be lost; allowed: what libvirt's <domain> has", it.path))
	}
	return problems
}

// itemsOf walks over a text; it is one <domain> element, or there is a problem.
func itemsOf(text string) (rawItems, *model.TextProblem) {
	const allowed = "allowed: one <domain> element"
	var out rawItems
	var open []string
	dec := newXMLDecoder(text)
	for {
		line, _ := dec.InputPos() // before what comes: blanks are a token of their own
		problem := func(format string, args ...any) (rawItems, *model.TextProblem) {
			p := xmlProblem(line, format+"; "+allowed, args...)
			return nil, &p
		}
		tok, err := dec.Token()
		var syntax *xml.SyntaxError
		var charset charsetError
		switch {
		case errors.Is(err, io.EOF) && len(out) == 0:
			return problem("nothing in it")
		case errors.Is(err, io.EOF):
			return out, nil
		case errors.As(err, &charset):
			return problem("its encoding is said to be %q; allowed: UTF-8", string(charset))
		case errors.As(err, &syntax):
			line = syntax.Line
			if syntax.Msg != "unexpected EOF" {
				return problem("not XML: %s", syntax.Msg)
			}
			if len(open) == 0 {
				return problem("not XML: it ends too early")
			}
			return problem("not XML: it ends before </%s>", strings.Trim(open[len(open)-1], "<>"))
		case err != nil:
			return problem("not XML")
		}
		switch t := tok.(type) {
		case xml.StartElement:
			name := "<" + t.Name.Local + ">"
			switch {
			case len(open) > 0:
			case len(out) > 0:
				return problem("a second element %s", name)
			case name != "<domain>":
				return problem("its element is %s", name)
			}
			open = append(open, name)
			path := strings.Join(open, "")
			out = append(out, rawItem{path, line})
			for _, a := range t.Attr {
				if a.Name.Local != "xmlns" && a.Name.Space != "xmlns" {
					out = append(out, rawItem{attribute(a.Name.Local, path), line})
				}
			}
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) == 0 && len(strings.TrimSpace(string(t))) > 0 {
				return problem("text beside the element")
			}
		}
	}
}

// charsetError is the encoding that a text says it has, and has not: it came as
// UTF-8.
type charsetError string

func (e charsetError) Error() string { return "encoding " + string(e) }

func newXMLDecoder(text string) *xml.Decoder {
	dec := xml.NewDecoder(strings.NewReader(text))
	dec.CharsetReader = func(label string, _ io.Reader) (io.Reader, error) { return nil, charsetError(label) }
	return dec
}

// misfit says why a text is no <domain> of libvirt's, as far as libvirtxml does.
func misfit(line int, err error) model.TextProblem {
	var num *strconv.NumError
	switch {
	case errors.As(err, &num):
		return xmlProblem(line, "%q is not a number, or not one that can stand there; allowed: what libvirt's <domain> has", num.Num)
	case strings.HasPrefix(err.Error(), "Missing "):
		return xmlProblem(line, "m%s; allowed: what libvirt's <domain> has", err.Error()[1:])
	}
	return xmlProblem(line, "cannot be read as libvirt's <domain>")
}
