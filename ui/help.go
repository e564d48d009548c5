package ui

import (
	"slices"
	"strings"
)

// section is a part of the help.
type section struct {
	title string
	terms []term
}

// helpPage lists the keys, generated from the actions that Update matches, and
// explains what is on the screen: those lines that have all words of the filter.
func (m *Model) helpPage(w int, filter string) []line {
	sections := []section{m.helpGroup("ACT", groupAct), m.helpGroup("LOOK", groupLook), m.helpGroup("MOVE", groupMove), m.helpGroup("LOG", groupLog)}
	sections = append(sections, m.legend()...)
	n := max(1, min(3, w/72))
	width := w/n - 1
	columns := make([][]line, n)
	for _, s := range sections {
		if s = s.matching(filter); len(s.terms) == 0 {
			continue
		}
		// Into the shortest column so far.
		at := 0
		for i := range columns {
			if len(columns[i]) < len(columns[at]) {
				at = i
			}
		}
		columns[at] = append(append(columns[at], m.drawSection(s, width)...), nil)
	}
	if len(columns[0]) == 0 {
		return []line{text("   nothing in the help has these words; esc clears them", stDim)}
	}
	var out []line
	for y := 0; ; y++ {
		var l line
		more := false
		for _, c := range columns {
			var cell line
			if y < len(c) {
				cell, more = c[y], true
			}
			if n == 1 {
				l = append(l, cell...)
			} else {
				l = append(l, m.th.fit(cell, width+1)...)
			}
		}
		if !more {
			return out
		}
		out = append(out, l)
	}
}

// matching returns the section with those terms that have every word; all of them
// when its title has.
func (s section) matching(filter string) section {
	words := strings.Fields(strings.ToLower(filter))
	has := func(in string) bool {
		in = strings.ToLower(in)
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(in, w) })
	}
	if has(s.title) {
		return s
	}
	var terms []term
	for _, t := range s.terms {
		if has(t.show.plain() + " " + t.is + " " + t.more + " " + s.title) {
			terms = append(terms, t)
		}
	}
	return section{s.title, terms}
}

func (m *Model) drawSection(s section, w int) []line {
	b := &pageBuf{m: m, w: w}
	b.head(s.title)
	col := 8
	for _, t := range s.terms {
		col = max(col, t.show.width()+1)
	}
	for _, t := range s.terms {
		head := append(line{{"   ", stText}}, m.th.fit(t.show, col)...)
		l := text(t.is, stText)
		if t.more != "" {
			l = append(l, seg{"  " + t.more, stDim})
		}
		b.wrapped(head, l)
	}
	return b.out
}

// helpGroup lists the keys of a group.
func (m *Model) helpGroup(title, group string) section {
	s := section{title: title}
	for _, a := range m.actions {
		if a.group != group {
			continue
		}
		h := a.b.Help()
		k := h.Key
		if m.opts.ASCII {
			k = asciiKey(k)
		}
		where := ""
		if a.in == anyLog {
			where = " (in the log)"
		}
		what, more, _ := strings.Cut(h.Desc, ": ")
		s.terms = append(s.terms, term{text(k, stKey), what, strings.TrimSpace(more + where)})
	}
	return s
}

func asciiKey(k string) string {
	switch k {
	case "↑ k":
		return "up k"
	case "↓ j":
		return "down j"
	}
	return k
}
