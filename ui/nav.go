package ui

import (
	"fmt"
	"slices"

	"virdeck/model"
)

// move moves by lines in whatever has the keys.
func (m *Model) move(d int) {
	switch s := m.topScreen(); {
	case s != nil && s.log != nil:
		s.log.scroll(d)
	case s != nil:
		s.scroll(d)
	case m.focus == paneHosts:
		m.selectHost(func(l *list) { l.move(d) })
	case m.focus == paneProxies:
		m.moveRow(func(l *list) { l.move(d) })
	default:
		m.log.scroll(d)
	}
}

// movePage moves by a page.
func (m *Model) movePage(sign int) {
	page := func(h int) int { return sign * max(h-1, 1) }
	switch s := m.topScreen(); {
	case s != nil && s.log != nil:
		s.log.scroll(page(s.log.height))
	case s != nil:
		s.scroll(page(s.vp.Height()))
	case m.focus == paneHosts:
		m.selectHost(func(l *list) { l.move(page(l.height)) })
	case m.focus == paneProxies:
		m.moveRow(func(l *list) { l.move(page(l.height)) })
	default:
		m.log.scroll(page(m.log.height))
	}
}

// moveEnd moves to the first or the last line.
func (m *Model) moveEnd(sign int) {
	to := func(l *list) {
		if sign < 0 {
			l.goTo(0)
		} else {
			l.goTo(len(l.keys) - 1)
		}
	}
	switch s := m.topScreen(); {
	case s != nil && s.log != nil:
		s.log.end(sign)
	case s != nil:
		if sign < 0 {
			s.vp.GotoTop()
		} else {
			s.vp.GotoBottom()
		}
	case m.focus == paneHosts:
		m.selectHost(to)
	case m.focus == paneProxies:
		m.moveRow(to)
	default:
		m.log.end(sign)
	}
}

func (m *Model) cyclePane(d int) {
	m.focus = pane((int(m.focus) + d + int(paneCount)) % int(paneCount))
	if m.focus == paneLog && m.plan().log == 0 {
		m.focus = pane((int(m.focus) + d + int(paneCount)) % int(paneCount))
	}
}

// hostByNumber goes to a host by its place in the configuration, which is its
// number wherever the table shows it.
func (m *Model) hostByNumber(n int) {
	at := slices.IndexFunc(m.hostRows, func(r hostRow) bool { return r.num == n })
	if at < 0 {
		m.hint(fmt.Sprintf("there is no host %d", n))
		return
	}
	m.all = false
	name := m.hosts.sel
	m.selectHost(func(l *list) { l.goTo(at) })
	if m.hosts.sel == name {
		m.reindexProxies(true)
	}
}

// toggleAll shows the proxies of all hosts in one table, or of one again.
func (m *Model) toggleAll() {
	want := m.table.want
	m.all = !m.all
	if !m.all {
		// Back on the host of the row under the cursor, so that it stays in sight.
		if p, h := m.snap.Proxy(model.ProxyName(want)); p != nil {
			m.hosts.pick(string(h.Name))
		}
	}
	m.focus = paneProxies
	m.showScope(want)
}

// next goes to the next proxy that is neither ready nor drained, on this host
// and then on the others; in the log to the next hit.
func (m *Model) next(d int) {
	if l := m.searched(); l != nil {
		if !l.nextHit(d) {
			m.hint("no other hit; / sets the text")
		}
		return
	}
	if m.topScreen() != nil {
		m.hint("n jumps between proxies on the first screen, and between hits in the log")
		return
	}
	troubled := func(r row) bool {
		return r.gone.IsZero() && r.p.State != model.StateReady && r.p.State != model.StateDrained
	}
	for i := m.table.at + d; i >= 0 && i < len(m.rows); i += d {
		if troubled(m.rows[i]) {
			m.focus = paneProxies
			m.moveRow(func(l *list) { l.goTo(i) })
			return
		}
	}
	if !m.all && m.nextHost(d, troubled) {
		return
	}
	for i := range m.rows { // around the corner
		at := i
		if d < 0 {
			at = len(m.rows) - 1 - i
		}
		if at != m.table.at && troubled(m.rows[at]) {
			m.focus = paneProxies
			m.moveRow(func(l *list) { l.goTo(at) })
			return
		}
	}
	if r, ok := m.current(); ok && troubled(r) {
		m.hint("no other proxy is in trouble")
		return
	}
	m.hint("every proxy is ready or drained")
}

func (m *Model) nextHost(d int, troubled func(row) bool) bool {
	for k := 1; k < len(m.hostRows); k++ {
		i := ((m.hosts.at+d*k)%len(m.hostRows) + len(m.hostRows)) % len(m.hostRows)
		for _, p := range m.hostRows[i].h.Proxies {
			if !m.hostRows[i].gone.IsZero() || !troubled(row{p: p}) || !m.filter.match(p) {
				continue
			}
			m.selectHost(func(l *list) { l.goTo(i) })
			m.focus = paneProxies
			at := 0
			if d < 0 {
				at = len(m.rows) - 1
			}
			for at >= 0 && at < len(m.rows) && !troubled(m.rows[at]) {
				at += d
			}
			m.moveRow(func(l *list) { l.goTo(at) })
			return true
		}
	}
	return false
}
