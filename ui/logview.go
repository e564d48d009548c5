package ui

import (
	"log/slog"

	tea "charm.land/bubbletea/v2"
)

// drawLog draws the pane at the bottom of the main screen.
func (m *Model) drawLog(c *canvas, rows int) {
	c.rule(m.paneTitle(paneLog, "log"), m.log.status(m.th.g)...)
	m.hits = append(m.hits, hit{len(c.lines), paneLog, 0})
	m.drawRecords(c, m.log, rows)
}

func (m *Model) drawRecords(c *canvas, l *logPane, rows int) {
	lines := l.visible(m, m.w, rows)
	if len(lines) == 0 {
		lines = []line{text("   nothing logged", stDim)}
		if st := l.ring.Stats(); st.Len > 0 {
			lines = []line{text("   no record passes: v shows lower levels", stDim)}
		}
	}
	for i := range rows {
		if i < len(lines) {
			c.add(lines[i], plain)
		} else {
			c.add(nil, plain)
		}
	}
}

// logHere returns the log that keys are about, nil when none is.
func (m *Model) logHere() *logPane {
	if s := m.topScreen(); s != nil {
		return s.log
	}
	return m.log
}

func (m *Model) cycleLevel() {
	l := m.logHere()
	switch l.level {
	case slog.LevelDebug:
		l.level = slog.LevelInfo
	case slog.LevelInfo:
		l.level = slog.LevelWarn
	case slog.LevelWarn:
		l.level = slog.LevelError
	default:
		l.level = slog.LevelDebug
	}
	l.refill()
}

func (m *Model) toggleWrap() {
	l := m.logHere()
	l.wrap = !l.wrap
	l.side = 0
}

func (m *Model) toggleTimes() { l := m.logHere(); l.ages = !l.ages }

func (m *Model) toggleOnly() {
	l := m.logHere()
	if l.text == "" {
		m.hint("first / and a text")
		return
	}
	l.only = !l.only
	l.refill()
}

func (m *Model) scrollSide(d int) {
	l := m.logHere()
	if l.wrap {
		m.hint("lines are wrapped: w ends it")
		return
	}
	l.side = max(l.side+d*max(m.w/2, 1), 0)
}

func (m *Model) openLog() { m.push(&screen{kind: scrLog, log: newLogPane(m.opts.Ring)}) }

// openObjectLog opens the log of the proxy or host that the keys are on.
func (m *Model) openObjectLog() {
	l := newLogPane(m.opts.Ring)
	l.level = slog.LevelDebug
	s := m.topScreen()
	switch {
	case s != nil && s.proxy != "":
		l.proxy = s.proxy
	case s != nil && s.host != "":
		l.host = s.host
	case s == nil && m.focus == paneProxies:
		r, ok := m.current()
		if !ok {
			m.hint("no proxy is selected")
			return
		}
		l.proxy = r.p.Spec.Name
	default:
		r, ok := m.hostRow()
		if !ok {
			m.hint("no host is selected")
			return
		}
		l.host = r.h.Name
	}
	m.push(&screen{kind: scrLog, log: l})
}

// hit is a line of the last frame that the mouse can point at.
type hit struct {
	y    int
	pane pane
	row  int
}

func (m *Model) click(e tea.Mouse) {
	if e.Button != tea.MouseLeft || m.dialog != nil || m.form != nil || m.sorting || m.asking || m.topScreen() != nil {
		return
	}
	for _, h := range m.hits {
		if h.y != e.Y && (h.pane != paneLog || e.Y < h.y || e.Y >= m.h-1) {
			continue
		}
		m.focus = h.pane
		switch h.pane {
		case paneHosts:
			m.selectHost(func(l *list) { l.goTo(h.row) })
		case paneProxies:
			m.moveRow(func(l *list) { l.goTo(h.row) })
		case paneLog, paneCount:
		}
		return
	}
}

func (m *Model) wheel(e tea.Mouse) {
	d := 3
	switch e.Button {
	case tea.MouseWheelUp:
		d = -3
	case tea.MouseWheelDown:
	default:
		return
	}
	if m.dialog == nil && m.form == nil && !m.sorting && !m.asking {
		m.move(d)
	}
}

func (m *Model) toggleMouse() {
	m.mouse = !m.mouse
	if m.mouse {
		m.hint("mouse on: clicks select, the wheel scrolls; m gives it back to the terminal")
	} else {
		m.hint("mouse off: the terminal selects text again")
	}
}
