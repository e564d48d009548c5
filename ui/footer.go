package ui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"virdeck/model"
)

// footer is the last line: the input while it has the keys, else a toast, else
// the keys that matter here. The second result is the cell of the cursor, -1 for
// none. A toast that needs several lines has the others above, over what the
// page says there: they are the third result.
func (m *Model) footer(w int) (foot line, cursor int, above []line) {
	if m.asking {
		foot, cursor = m.inputLine(w)
		return foot, cursor, nil
	}
	if m.toast != nil {
		lines := m.toastLines(w)
		last := len(lines) - 1
		return lines[last], -1, lines[:last]
	}
	return m.hints(w), -1, nil
}

// toastLines draws a toast. The way to all keys stays beside it.
func (m *Model) toastLines(w int) []line {
	st, sign := stStrong, " "
	if m.toast.err {
		st, sign = stBad, " ! "
	}
	help := line{{"  ", stText}, {"?", stKey}, {" all keys ", stDim}}
	lines := wrapLines(max(w-help.width()-len(sign), 10), text(m.toast.text, st))
	if limit := max(1, m.h/4); len(lines) > limit {
		lines = lines[:limit]
		lines[limit-1] = append(slices.Clip(lines[limit-1]), seg{" " + m.th.g.ell, st})
	}
	for i, l := range lines {
		lead := sign
		if i > 0 {
			lead = spaces(len(sign))
		}
		lines[i] = append(line{{lead, st}}, l...)
	}
	last := len(lines) - 1
	lines[last] = spread(lines[last], help, w)
	return lines
}

// hint is a key in the footer, with a shorter word for narrow windows.
type hint struct {
	key, long, brief string
	prio             int // those of the lowest go first
}

func (h hint) draw(word string) line { return line{{h.key, stKey}, {" " + word, stDim}} }

// rankHint gives the shorter word of a key and how much it matters.
func rankHint(key, long string, at place) hint {
	h := hint{key: key, long: long, brief: long}
	switch key {
	case "?":
		h.prio = 100
	case "esc":
		h.prio = 95
	case "q":
		h.prio = 90
	case "e":
		h.brief, h.prio = "why", 85
	case "l":
		h.prio = 80
	case "r":
		h.prio = 70
	case "enter":
		h.brief, h.prio = "open", 65
	case "/":
		if at&anyLog != 0 {
			h.long = "search"
		}
		h.brief, h.prio = "find", 60
	case "d":
		h.prio = 55
	case "c":
		h.brief, h.prio = "link", 40
		if at&(inHosts|inHost|inWhyHost) != 0 {
			h.prio = 75
		}
	case "tab":
		h.brief, h.prio = "pane", 35
	case "G":
		h.long, h.brief, h.prio = "follow", "end", 45
	case "v", "w":
		h.prio = 46
	default:
		h.prio = 30
	}
	return h
}

// hints names the keys of the place that has them. In a narrow window the words
// get shorter first, and then the keys that matter least go.
func (m *Model) hints(w int) line {
	var all []hint
	at := m.place()
	host, _ := m.hostHere()
	down := host != nil && !host.External && host.Link.State != model.LinkUp
	for _, a := range m.actions {
		if a.hint&at != 0 {
			h := rankHint(a.b.Help().Key, a.short(), at)
			if h.key == "c" && down {
				h.prio = 75
			}
			if h.key == "esc" { // where it always is
				all = slices.Insert(all, 0, h)
				continue
			}
			all = append(all, h)
		}
	}
	words := func(of func(hint) string) (line, int) {
		l := line{{" ", stText}}
		for i, h := range all {
			if i > 0 {
				l = append(l, seg{"  ", stText})
			}
			l = append(l, h.draw(of(h))...)
		}
		return l, l.width()
	}
	for {
		if l, n := words(func(h hint) string { return h.long }); n <= w {
			return l
		}
		_, n := words(func(h hint) string { return h.brief })
		if n > w && len(all) > 1 {
			least := slices.MinFunc(all, func(a, b hint) int { return a.prio - b.prio })
			all = slices.DeleteFunc(all, func(h hint) bool { return h == least })
			continue
		}
		// The long words of those that matter most, as far as they fit.
		long := map[string]bool{}
		for _, h := range slices.SortedStableFunc(slices.Values(all), func(a, b hint) int { return b.prio - a.prio }) {
			if more := cells(h.long) - cells(h.brief); n+more <= w {
				n += more
				long[h.key] = true
			}
		}
		l, _ := words(func(h hint) string {
			if long[h.key] {
				return h.long
			}
			return h.brief
		})
		return l
	}
}

// openInput gives the keys to the input: the filter of the table, or the search
// of the log.
func (m *Model) openInput(tea.KeyPressMsg) tea.Cmd {
	switch l, s := m.searched(), m.topScreen(); {
	case l != nil:
		m.before = l.text
	case s != nil:
		m.before = s.filter
	default:
		m.before = m.filter.src
		if m.focus == paneHosts {
			m.focus = paneProxies
		}
	}
	m.input.SetValue(m.before)
	m.input.CursorEnd()
	m.asking = true
	return m.input.Focus()
}

// inputKey handles a key while the input has them.
func (m *Model) inputKey(msg tea.KeyPressMsg) tea.Cmd {
	if m.palette != nil {
		if cmd, done := m.paletteKey(msg); done {
			return cmd
		}
	}
	switch msg.String() {
	case "enter":
		m.closeInput()
		return nil
	case "esc":
		m.input.SetValue("")
		m.applyInput()
		m.closeInput()
		return nil
	case "up", "down":
		m.closeInput()
		return nil
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	m.applyInput()
	return cmd
}

// paste puts a pasted text into the input, and opens none: a paste by mistake
// must not become keys.
func (m *Model) paste(s string) tea.Cmd {
	switch {
	case m.dialog != nil:
		m.hint("a question is answered by hand")
		return nil
	case m.form != nil:
		return m.form.paste(s)
	}
	if !m.asking {
		m.hint("paste goes into a filter: / opens it")
		return nil
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(tea.PasteMsg{Content: clean(s)})
	m.applyInput()
	return cmd
}

// searched returns the log that the input is about, nil when it is a filter.
func (m *Model) searched() *logPane {
	if s := m.topScreen(); s != nil {
		return s.log
	}
	if m.focus == paneLog {
		return m.log
	}
	return nil
}

func (m *Model) closeInput() {
	m.asking, m.palette = false, nil
	m.input.Blur()
}

// applyInput lets the text take effect while it is typed.
func (m *Model) applyInput() {
	v := clean(m.input.Value())
	if m.palette != nil {
		m.fillPalette(v)
		return
	}
	switch l, s := m.searched(), m.topScreen(); {
	case l != nil:
		l.search(v)
	case s != nil:
		s.filter = v
		s.vp.GotoTop()
	default:
		m.setFilter(v)
	}
}

func (m *Model) setFilter(v string) {
	m.filter = parseFilter(v)
	m.reindexProxies(false)
}

func (m *Model) inputLine(w int) (line, int) {
	found, keys, sign := "", "enter keeps  esc clears ", "/"
	switch l, s := m.searched(), m.topScreen(); {
	case m.palette != nil:
		keys, sign = "enter does it  tab completes  esc closes ", ":"
	case l != nil:
		found = l.hitWords()
	case s != nil:
	case m.filter.wrong != "":
		found = m.filter.wrong
	default:
		found = count(m.matching, "match", "matches")
	}
	right := line{{found + "   ", stWarn}, {keys, stDim}}
	if right.width() > w*2/3 {
		right = right[:1]
	}
	val := clean(m.input.Value())
	pos := min(m.input.Position(), len([]rune(m.input.Value())))
	head := clean(string([]rune(m.input.Value())[:pos]))
	room := max(w-right.width()-4, 10)
	shownHead := cutLeft(head, room, m.th.g.ell)
	shown := shownHead + cut(val[min(len(head), len(val)):], max(room-cells(shownHead), 0), "")
	l := line{{" " + sign + " ", stKey}, {shown, stStrong}}
	return spread(l, right, w), 3 + cells(shownHead)
}
