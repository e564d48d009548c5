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
	do       func(*Model)
	outdated func(*Model) string // why what was seen no longer holds; empty if it does
}

// dialogKey handles a key while a dialog is open.
func (m *Model) dialogKey(msg tea.KeyPressMsg) {
	d := m.dialog
	switch msg.String() {
	case "y":
		m.confirm()
	case "esc", "n", "q":
		m.closeDialog("nothing done")
	case "enter":
		if d.onYes {
			m.confirm()
		} else {
			m.closeDialog("nothing done")
		}
	case "tab", "shift+tab", "left", "right", "h", "l", "up", "down":
		d.onYes = !d.onYes
	default:
		m.hint("answer first: y does it, esc cancels")
	}
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

func (m *Model) closeDialog(msg string) {
	m.dialog = nil
	m.hint(msg)
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
	if room := max(m.h-5, 1); len(body) > room {
		body = body[:room]
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
	buttons := line{{nl, no}, {"cancel", no}, {" esc", stDim}, {nr, no}, {"   ", stText},
		{yl, yes}, {d.yes, yes}, {" y", stWarn}, {yr, yes}}
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
