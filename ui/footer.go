package ui

import (
	tea "charm.land/bubbletea/v2"
)

// footer is the last line: the input while it has the keys, else a toast, else
// the keys that matter here. The second result is the cell of the cursor, -1 for
// none.
func (m *Model) footer(w int) (line, int) {
	if m.asking {
		return m.inputLine(w)
	}
	if m.toast != nil {
		st := stStrong
		sign := " "
		if m.toast.err {
			st, sign = stBad, " ! "
		}
		return line{{sign, st}, {m.toast.text, st}}, -1
	}
	return m.hints(w), -1
}

// hints names the keys that have a hint here, as many as fit; the last one, the
// way to all keys, always.
func (m *Model) hints(w int) line {
	var all []line
	for _, a := range m.actions {
		if a.hint&m.place() != 0 {
			all = append(all, line{{a.b.Help().Key, stKey}, {" " + a.short(), stDim}})
		}
	}
	out := line{{" ", stText}}
	for i, h := range all {
		last := line{}
		if i < len(all)-1 && all[i][0].text != "?" {
			last = helpHint(all)
		}
		if len(last) > 0 {
			last = append(line{{"  ", stText}}, last...)
		}
		if out.width()+h.width()+last.width() > w {
			continue
		}
		out = append(append(out, h...), seg{"  ", stText})
	}
	return out
}

func helpHint(all []line) line {
	for _, h := range all {
		if h[0].text == "?" {
			return h
		}
	}
	return nil
}

// openInput gives the keys to the input: the filter of the table, or the search
// of the log.
func (m *Model) openInput(tea.KeyPressMsg) tea.Cmd {
	m.before = m.filter.src
	if s := m.topScreen(); s != nil && s.log != nil {
		m.before = s.log.text
	} else if m.focus == paneHosts {
		m.focus = paneProxies
	}
	m.input.SetValue(m.before)
	m.input.CursorEnd()
	m.asking = true
	return m.input.Focus()
}

// inputKey handles a key while the input has them.
func (m *Model) inputKey(msg tea.KeyPressMsg) tea.Cmd {
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
	if !m.asking {
		m.hint("paste goes into a filter: / opens it")
		return nil
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(tea.PasteMsg{Content: clean(s)})
	m.applyInput()
	return cmd
}

func (m *Model) closeInput() {
	m.asking = false
	m.input.Blur()
}

// applyInput lets the text take effect while it is typed.
func (m *Model) applyInput() {
	v := clean(m.input.Value())
	if s := m.topScreen(); s != nil && s.log != nil {
		s.log.search(v)
		return
	}
	m.setFilter(v)
}

func (m *Model) setFilter(v string) {
	m.filter = parseFilter(v)
	m.reindexProxies(false)
}

func (m *Model) inputLine(w int) (line, int) {
	right := text("enter keeps  esc clears ", stDim)
	if s := m.topScreen(); s != nil && s.log != nil {
		right = append(line{{s.log.hitWords() + "   ", stWarn}}, right...)
	} else {
		right = append(text(count(m.matching, "match", "matches")+"   ", stWarn), right...)
	}
	val := clean(m.input.Value())
	pos := min(m.input.Position(), len([]rune(m.input.Value())))
	head := clean(string([]rune(m.input.Value())[:pos]))
	room := max(w-right.width()-4, 10)
	shownHead := cutLeft(head, room, m.th.g.ell)
	shown := shownHead + cut(val[min(len(head), len(val)):], max(room-cells(shownHead), 0), "")
	l := line{{" / ", stKey}, {shown, stStrong}}
	return spread(l, right, w), 3 + cells(shownHead)
}
