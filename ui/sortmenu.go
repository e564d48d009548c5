package ui

import tea "charm.land/bubbletea/v2"

func (m *Model) openSort() { m.sorting = true }

// sortMenuKey handles a key while the sort menu is open. The key of the present
// order turns it round.
func (m *Model) sortMenuKey(msg tea.KeyPressMsg) {
	k := msg.String()
	for _, s := range sortKeys() {
		name, key, _ := s.word()
		if k != key {
			continue
		}
		m.reverse = s == m.sort && !m.reverse
		m.sort = s
		m.sorting = false
		m.holdUntil = m.opts.Now() // the new order at once
		m.reindexProxies(true)
		m.hint("sorted by " + name)
		return
	}
	m.sorting = false
	if k != "esc" && k != "q" && k != "enter" {
		m.hint(clean(k) + " is no order; s shows them again")
	}
}

func (m *Model) drawSort() []line {
	lines := []line{text("Sort by", stStrong), nil}
	for _, s := range sortKeys() {
		name, key, what := s.word()
		cur := "  "
		if s == m.sort {
			cur = "> "
		}
		lines = append(lines, line{{cur, stStrong}, {key + "  ", stKey}, {pad(name, 10), stText}, {what, stDim}})
	}
	return m.box(append(lines, nil, text("the same again turns it round; esc closes", stDim)), 42)
}
