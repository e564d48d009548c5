package ui

import (
	"strings"

	"virdeck/model"
)

// helpPage lists the keys, generated from the actions that Update matches, and
// the signs.
func (m *Model) helpPage(w int) []line {
	sections := [][]line{m.helpGroup("ACT", groupAct), m.helpGroup("LOOK", groupLook), m.helpGroup("MOVE", groupMove), m.helpGroup("LOG", groupLog), m.helpSigns()}
	wide := 0
	for _, s := range sections {
		for _, l := range s {
			wide = max(wide, l.width())
		}
	}
	n := max(1, min(3, (w-1)/(wide+2)))
	columns := make([][]line, n)
	for _, s := range sections {
		// Into the shortest column so far.
		at := 0
		for i := range columns {
			if len(columns[i]) < len(columns[at]) {
				at = i
			}
		}
		columns[at] = append(append(columns[at], s...), nil)
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
				l = append(l, m.th.fit(cell, wide+2)...)
			}
		}
		if !more {
			return out
		}
		out = append(out, l)
	}
}

func (m *Model) helpGroup(title, group string) []line {
	out := []line{{{" " + title, stTitle}}}
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
		if a.in == inLog {
			where = " (full log)"
		}
		what, more, _ := strings.Cut(h.Desc, ": ")
		if more != "" {
			more = "  " + more
		}
		out = append(out, line{{"   " + pad(k, 8), stKey}, {what, stText}, {more + where, stDim}})
	}
	return out
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

func (m *Model) helpSigns() []line {
	out := []line{{{" SIGNS", stTitle}}}
	for _, s := range model.States() {
		out = append(out, line{{"   " + m.th.g.sign(s) + " ", stateStyle(s)}, {pad(s.String(), 14), stateStyle(s)}})
	}
	for _, mk := range []model.Mark{model.MarkStale, model.MarkHeld, model.MarkUnverified, model.MarkWriteFailed, model.MarkConflict} {
		out = append(out, line{{"   " + string(rune(mk)) + " ", stWarn}, {"mark: " + mk.Word(), stText}})
	}
	return out
}
