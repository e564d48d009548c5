package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// dialog asks before an act that interrupts something. It names the object and
// the consequence, and captures what the operator saw when the key was pressed.
// The confirming key is y, which triggers no act; the focus is on cancel.
type dialog struct {
	title    string
	body     []line
	yes      string // the act in one word, on its button
	onYes    bool   // focus
	wants    string // a name that must be typed before yes counts; empty: none
	typed    string // so far
	do       func(*Model)
	outdated func(*Model) string // why what was seen no longer holds; empty if it does
}

// dialogKey handles a key while a dialog is open.
func (m *Model) dialogKey(msg tea.KeyPressMsg) {
	d := m.dialog
	if d.wants != "" {
		m.typeKey(d, msg)
		return
	}
	switch msg.String() {
	case "y":
		m.confirm()
	case "esc", "n", "q":
		m.closeDialog()
	case "enter":
		if d.onYes {
			m.confirm()
		} else {
			m.closeDialog()
		}
	case "tab", "shift+tab", "left", "right", "h", "l", "up", "down":
		d.onYes = !d.onYes
	default:
		m.hint("answer first: y does it, esc cancels")
	}
}

// typeKey handles a key of a dialog that wants a name. Nothing typed, or esc, is
// no; only the whole name and enter are yes.
func (m *Model) typeKey(d *dialog, msg tea.KeyPressMsg) {
	switch msg.String() {
	case "esc":
		m.closeDialog()
	case "enter":
		switch d.typed {
		case d.wants:
			m.confirm()
		case "":
			m.closeDialog()
		default:
			m.hint("that is not the name: type " + d.wants + ", or esc")
		}
	case "backspace":
		if r := []rune(d.typed); len(r) > 0 {
			d.typed = string(r[:len(r)-1])
		}
	case "ctrl+u":
		d.typed = ""
	default:
		if t := clean(msg.Text); t != "" && len(d.typed) < 200 {
			d.typed += t
		}
	}
	d.onYes = d.typed == d.wants
}

func (m *Model) confirm() {
	d := m.dialog
	m.dialog = nil
	if d.outdated != nil {
		if why := d.outdated(m); why != "" {
			m.warn("not done: " + why)
			return
		}
	}
	d.do(m)
}

func (m *Model) closeDialog() {
	m.dialog = nil
	m.hint("nothing done")
}

// drawDialog returns the box of the dialog as lines of equal width.
func (m *Model) drawDialog(maxW int) []line {
	d := m.dialog
	limit := max(min(maxW-6, 66), 10)
	body := wrapLines(limit, text(d.title, stStrong))
	if m.h >= 14 {
		body = append(body, nil)
	}
	body = append(body, wrapLines(limit, d.body...)...)
	// The buttons are always in sight: what does not fit above them goes.
	room := max(m.h-5, 1)
	if d.wants != "" {
		room = max(room-2, 1)
	}
	if len(body) > room {
		body = body[:room]
	}
	if d.wants != "" {
		if len(body) < room {
			body = append(body, nil)
		}
		body = append(body, line{{"type ", stText}, {d.wants, stStrong}, {" and enter: ", stText}, {d.typed + "_", stWarn}})
	}
	w := 34
	for _, l := range body {
		w = max(w, l.width())
	}
	w = min(w, max(maxW-4, 1))
	yes, no := stText, stStrong
	yl, nl := "  ", "[ "
	yr, nr := "  ", " ]"
	if d.onYes {
		yes, no = stStrong, stText
		yl, nl, yr, nr = "[ ", "  ", " ]", "  "
	}
	key := " y"
	if d.wants != "" {
		key = " enter"
	}
	buttons := line{{nl, no}, {"cancel", no}, {" esc", stDim}, {nr, no}, {"   ", stText},
		{yl, yes}, {d.yes, yes}, {key, stWarn}, {yr, yes}}
	if len(body)+5 < m.h {
		body = append(body, nil)
	}
	return m.box(append(body, buttons), w)
}

// box frames lines, each cut or padded to w cells.
func (m *Model) box(lines []line, w int) []line {
	g := m.th.g
	bar := func(left, right string) line {
		return line{{left, stTitle}, {strings.Repeat(g.rule, w+2), stTitle}, {right, stTitle}}
	}
	out := []line{bar(g.corner[0], g.corner[1])}
	for _, l := range lines {
		row := line{{g.side, stTitle}, {" ", stText}}
		row = append(row, m.th.fit(l, w)...)
		out = append(out, append(row, seg{" ", stText}, seg{g.side, stTitle}))
	}
	return append(out, bar(g.corner[2], g.corner[3]))
}
