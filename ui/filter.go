package ui

import (
	"slices"
	"strconv"
	"strings"

	"virdeck/model"
)

// filter is a parsed filter: terms that must all hold. The zero value lets
// everything through.
type filter struct {
	src   string
	terms []filterTerm
	wrong string // what is wrong with it: a term that there is not; empty if nothing
}

type filterTerm struct {
	not  bool
	test func(*model.ProxyView) bool
}

// filterHelp names the terms, for the hint under an empty table.
const filterHelp = "terms: text  !not  state:  host:  pool:  domain:  mark:  in:  label:  source:agent=failed"

// parseFilter reads a filter: words separated by spaces, each plain text or
// key:value, `!` before a word for its inverse. A word whose key is not known is
// plain text, since addresses have colons too; where the key is no part of an
// address, that is remarked.
func parseFilter(src string) filter {
	f := filter{src: strings.TrimSpace(src)}
	for word := range strings.FieldsSeq(f.src) {
		t := filterTerm{}
		if strings.HasPrefix(word, "!") {
			t.not, word = true, word[1:]
		}
		if word == "" {
			continue
		}
		word = strings.ToLower(word)
		key, val, ok := strings.Cut(word, ":")
		if ok {
			t.test = keyTerm(key, val)
		}
		if f.wrong == "" && ok {
			f.wrong = wrongTerm(key, val, t.test != nil)
		}
		if t.test == nil {
			t.test = func(p *model.ProxyView) bool { return hasText(p, word) }
		}
		f.terms = append(f.terms, t)
	}
	return f
}

// wrongTerm says what is wrong with a term; empty if nothing is.
func wrongTerm(key, val string, known bool) string {
	notHex := func(r rune) bool { return r > 'f' && r <= 'z' }
	letters := func(r rune) bool { return r >= 'a' && r <= 'z' }
	switch {
	case !known && strings.ContainsFunc(key, notHex) && strings.IndexFunc(key, func(r rune) bool { return !letters(r) }) < 0:
		return "no term " + key + ": (state host pool source)"
	case key == "state" && !slices.ContainsFunc(model.States(), func(s model.State) bool { return strings.HasPrefix(s.String(), val) }):
		return "no state " + val
	case key == "source":
		name, _, _ := strings.Cut(val, "=")
		if !slices.ContainsFunc(model.Sources(), func(s model.Source) bool { return strings.HasPrefix(s.String(), name) }) {
			return "no source " + name + " (lease agent arp)"
		}
	}
	return ""
}

func (f filter) empty() bool { return len(f.terms) == 0 }

func (f filter) match(p *model.ProxyView) bool {
	for _, t := range f.terms {
		if t.test(p) == t.not {
			return false
		}
	}
	return true
}

func keyTerm(key, val string) func(*model.ProxyView) bool {
	switch key {
	case "state":
		return func(p *model.ProxyView) bool { return strings.HasPrefix(p.State.String(), val) }
	case "host":
		return func(p *model.ProxyView) bool { return contains(string(p.Spec.Host), val) }
	case "pool":
		return func(p *model.ProxyView) bool { return contains(p.Spec.Pool, val) }
	case "domain":
		return func(p *model.ProxyView) bool { return contains(p.Spec.Domain, val) }
	case "mark":
		return func(p *model.ProxyView) bool {
			return slices.ContainsFunc(p.Marks, func(m model.Mark) bool { return strings.HasPrefix(m.Word(), val) })
		}
	case "in":
		want := val == "" || strings.HasPrefix("rotation", val) || val == "yes"
		return func(p *model.ProxyView) bool { return p.Health.InRotation == want }
	case "label":
		k, v, pair := strings.Cut(val, "=")
		return func(p *model.ProxyView) bool {
			for lk, lv := range p.Spec.Labels {
				if strings.ToLower(lk) == k && (!pair || contains(lv, v)) {
					return true
				}
			}
			return false
		}
	case "source":
		return sourceTerm(val)
	}
	return nil
}

// sourceTerm tests what a source last said: source:agent=failed, =86, =empty.
func sourceTerm(val string) func(*model.ProxyView) bool {
	name, kind, _ := strings.Cut(val, "=")
	src, ok := model.ParseSource(name)
	if !ok {
		return func(*model.ProxyView) bool { return false }
	}
	code, err := strconv.Atoi(kind)
	return func(p *model.ProxyView) bool {
		o := p.Outcome(src)
		switch {
		case err == nil:
			return o.Code == code && code != 0
		case kind == "" || kind == "ok":
			return o.Kind == model.OutcomeAddresses
		case kind == "n/a":
			return o.Kind == model.OutcomeNotApplicable
		}
		return strings.HasPrefix(o.Kind.String(), kind)
	}
}

func hasText(p *model.ProxyView, lower string) bool {
	if contains(string(p.Spec.Name), lower) || contains(p.Spec.Domain, lower) ||
		contains(p.Spec.Pool, lower) || contains(string(p.Spec.Host), lower) || contains(p.Reason, lower) || strings.HasPrefix(p.State.String(), lower) {
		return true
	}
	ip := p.Spec.EffectiveHost(p.IP)
	return ip.IsValid() && strings.Contains(ip.String(), lower)
}

func contains(s, lower string) bool { return strings.Contains(strings.ToLower(s), lower) }
