package ui

import (
	"slices"
	"time"

	"virdeck/model"
)

// row is a line of the proxy table.
type row struct {
	p     *model.ProxyView
	h     *model.HostView
	gone  time.Time // since when the proxy is no longer in the snapshot; zero while it is
	stray bool      // shown only because the cursor is on it: the filter would hide it
}

func (r row) key() string { return string(r.p.Spec.Name) }

// hostRow is a line of the host table.
type hostRow struct {
	h    *model.HostView
	num  int // place in the configuration, from 1: what its key is called
	gone time.Time
	sum  summary
}

// troubled reports whether a host is not up, for whatever reason.
func (r hostRow) troubled() bool {
	return !r.h.External && (r.h.Link.State != model.LinkUp || r.h.Misconfig != "")
}

// reindex makes the rows of both tables from the snapshot shown.
func (m *Model) reindex() {
	m.reindexHosts()
	m.reindexProxies(true)
}

func (m *Model) reindexHosts() {
	was := m.hostRows
	m.counts, m.proxies, m.biggest = model.Counts{}, 0, 0
	rows := make([]hostRow, 0, len(m.snap.Hosts)+1)
	m.hostsN, m.hostsDown = 0, 0
	for i, h := range m.snap.Hosts {
		r := hostRow{h: h, num: i + 1, sum: summarize(h)}
		if !h.External {
			m.hostsN++
		}
		if !h.External && h.Link.State == model.LinkDown {
			m.hostsDown++
		}
		for st, n := range r.sum.states {
			m.counts[st] += n
		}
		m.proxies += len(h.Proxies)
		m.biggest = max(m.biggest, len(h.Proxies))
		rows = append(rows, r)
	}
	if m.hostsHeld = m.orderHeld(); m.hostsHeld {
		holdHosts(rows, was)
	} else {
		// Those that need a hand first, each kind in the order of the configuration.
		slices.SortStableFunc(rows, func(a, b hostRow) int { return boolCompare(!a.troubled(), !b.troubled()) })
	}
	keys := make([]string, 0, len(rows)+1)
	for _, r := range rows {
		keys = append(keys, string(r.h.Name))
	}
	// A host that vanished under the cursor stays as a tombstone, so that the
	// next key does not act on its neighbour.
	if m.hosts.sel != "" && !slices.Contains(keys, m.hosts.sel) {
		if i := slices.IndexFunc(was, func(r hostRow) bool { return string(r.h.Name) == m.hosts.sel }); i >= 0 {
			g := was[i]
			if g.gone.IsZero() {
				g.gone = m.now
			}
			i = min(i, len(rows))
			rows = slices.Insert(rows, i, g)
			keys = slices.Insert(keys, i, m.hosts.sel)
		}
	}
	m.hostRows = rows
	m.hosts.set(keys)
	if m.focus != paneHosts && !m.hostsHeld {
		m.hosts.rise() // what needs a hand is at the top, and to be seen
	}
}

// reindexProxies makes the rows of the proxy table. With keep, the row under the
// cursor stays although it vanished or no longer matches the filter.
func (m *Model) reindexProxies(keep bool) {
	was := m.rows
	var rows []row
	m.total, m.nameW, m.addrW = 0, 0, 0
	found := false
	var stray *row
	for _, h := range m.scope() {
		for _, p := range h.Proxies {
			m.total++
			m.nameW = max(m.nameW, cells(string(p.Spec.Name)))
			if ip := p.Spec.EffectiveHost(p.IP); ip.IsValid() {
				m.addrW = max(m.addrW, addrLen(ip))
			}
			here := string(p.Spec.Name) == m.table.sel
			found = found || here
			if m.filter.match(p) {
				rows = append(rows, row{p: p, h: h})
			} else if here && keep {
				stray = &row{p: p, h: h, stray: true}
			}
		}
	}
	if m.held = m.orderHeld(); m.held {
		holdOrderOf(rows, was)
	} else {
		sortRows(rows, m.sort, m.reverse)
	}
	m.matching = len(rows)
	i := slices.IndexFunc(was, func(r row) bool { return r.key() == m.table.sel })
	switch {
	case stray != nil:
		rows = slices.Insert(rows, placeOf(i, len(rows)), *stray)
	case !found && keep && i >= 0 && m.table.sel != "":
		g := was[i]
		if g.gone.IsZero() {
			g.gone = m.now
		}
		g.stray = false
		rows = slices.Insert(rows, placeOf(i, len(rows)), g)
	}
	m.rows = rows
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.key()
	}
	m.table.set(keys)
}

func placeOf(i, n int) int { return min(max(i, 0), n) }

// holdOrderOf puts rows in the order that they had; new ones follow in theirs.
func holdOrderOf(rows, was []row) {
	at := make(map[string]int, len(was))
	for i, r := range was {
		at[r.key()] = i
	}
	place := func(r row) int {
		if i, ok := at[r.key()]; ok {
			return i
		}
		return len(was)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return place(a) - place(b) })
}

// holdHosts puts hosts in the order that they had; new ones follow in theirs.
func holdHosts(rows, was []hostRow) {
	at := make(map[model.HostName]int, len(was))
	for i, r := range was {
		at[r.h.Name] = i
	}
	place := func(r hostRow) int {
		if i, ok := at[r.h.Name]; ok {
			return i
		}
		return len(was)
	}
	slices.SortStableFunc(rows, func(a, b hostRow) int { return place(a) - place(b) })
}

// scope returns the hosts whose proxies the table shows.
func (m *Model) scope() []*model.HostView {
	if m.all {
		return m.snap.Hosts
	}
	if r, ok := m.hostRow(); ok && r.gone.IsZero() {
		return []*model.HostView{r.h}
	}
	return nil
}

// hostRow returns the host under the cursor.
func (m *Model) hostRow() (hostRow, bool) {
	if m.hosts.at < 0 || m.hosts.at >= len(m.hostRows) {
		return hostRow{}, false
	}
	return m.hostRows[m.hosts.at], true
}

// current returns the proxy under the cursor.
func (m *Model) current() (row, bool) {
	if m.table.at < 0 || m.table.at >= len(m.rows) {
		return row{}, false
	}
	return m.rows[m.table.at], true
}

// selectHost moves the host cursor with f and shows that host's proxies, with
// the cursor where it was when that host was last shown.
func (m *Model) selectHost(f func(*list)) {
	old := m.hosts.sel
	m.lastSel[model.HostName(old)] = m.table.want
	f(&m.hosts)
	m.touch()
	if m.hosts.sel == old {
		return
	}
	m.reindexHosts() // drops a tombstone that was left
	if !m.all {
		m.showScope(m.lastSel[model.HostName(m.hosts.sel)])
	}
}

// showScope fills the table anew, with the cursor on want or on the first row.
func (m *Model) showScope(want string) {
	m.rows = nil
	h := m.table.height
	m.table = list{height: h, at: -1, want: want}
	hold := m.holdUntil
	m.holdUntil = time.Time{} // another scope has no order to hold
	m.reindexProxies(false)
	m.holdUntil = hold
}

// moveRow moves the cursor of the table with f; a row that was kept only for the
// cursor goes when it leaves.
func (m *Model) moveRow(f func(*list)) {
	old := m.table.sel
	r, ok := m.current()
	f(&m.table)
	m.touch()
	if ok && m.table.sel != old && (r.stray || !r.gone.IsZero()) {
		m.reindexProxies(false)
	}
}
