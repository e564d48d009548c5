package ui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// The smallest window in which the console can say enough.
const (
	minWidth  = 40
	minHeight = 10
)

// View implements tea.Model. It draws only when something has changed since the
// last time.
func (m *Model) View() tea.View {
	if m.dirty {
		m.frame = m.draw()
		m.dirty = false
	}
	return m.frame
}

func (m *Model) draw() tea.View {
	v := tea.View{AltScreen: true, WindowTitle: "virdeck " + clean(m.snap.Fleet)}
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	m.hits = m.hits[:0]
	switch {
	case m.w <= 0 || m.h <= 0:
		return v
	case m.w < minWidth || m.h < minHeight:
		v.Content = cut(fmt.Sprintf("virdeck needs %dx%d", minWidth, minHeight), m.w, "")
		return v
	}
	c := &canvas{m: m}
	c.add(m.header(m.w), plain)
	if s := m.topScreen(); s != nil {
		m.drawScreen(c, s)
	} else {
		m.drawMain(c)
	}
	for len(c.lines) < m.h-1 {
		c.add(nil, plain)
	}
	c.lines = c.lines[:m.h-1]
	if m.sorting {
		c.overlay(m.drawSort())
	}
	if m.palette != nil {
		c.overlay(m.drawPalette())
	}
	var caret *tea.Cursor
	switch {
	case m.dialog != nil:
		c.overlay(m.drawDialog(m.w))
	case m.form != nil:
		box, x, y := m.drawForm(m.w)
		left, top := c.overlay(box)
		caret = tea.NewCursor(min(left+x, m.w-1), min(top+y, m.h-2))
		caret.Blink = false
	}
	foot, cursor, above := m.footer(m.w)
	c.lines = c.lines[:max(len(c.lines)-len(above), 0)]
	for _, l := range above {
		c.add(l, plain)
	}
	c.add(foot, plain)
	if cursor >= 0 {
		v.Cursor = tea.NewCursor(min(cursor, m.w-1), m.h-1)
		v.Cursor.Blink = false
	} else if caret != nil {
		v.Cursor = caret
	}
	v.Content = strings.Join(c.lines, "\n")
	return v
}

// canvas collects the lines of a frame.
type canvas struct {
	m     *Model
	lines []string
	buf   strings.Builder
}

func (c *canvas) add(l line, v variant) {
	if isAlert(l) {
		l = append(c.m.th.trim(l, c.m.w), seg{spaces(c.m.w - l.width()), stAlert})
	}
	c.buf.Reset()
	c.m.th.draw(&c.buf, l, c.m.w, v)
	c.lines = append(c.lines, c.buf.String())
}

// rule is a line across with a title and, at its right, remarks. Remarks that do
// not fit go, the first ones first.
func (c *canvas) rule(title line, remarks ...line) {
	g := c.m.th.g
	left := line{{g.rule + " ", stRule}}
	left = append(left, title...)
	left = append(left, seg{" ", stText})
	for {
		right := join("  "+g.dot+"  ", remarks...)
		gap := c.m.w - left.width() - right.width()
		if len(right) > 0 {
			gap -= 3
		}
		if gap < 1 && len(remarks) > 0 {
			remarks = remarks[1:]
			continue
		}
		l := append(left, seg{strings.Repeat(g.rule, max(gap, 0)), stRule})
		if len(right) > 0 {
			l = append(l, seg{" ", stText})
			l = append(l, right...)
			l = append(l, seg{" ", stText}, seg{g.rule, stRule})
		}
		c.add(l, plain)
		return
	}
}

// overlay lays a box over the middle of the frame, and returns the cell of its
// upper left corner.
func (c *canvas) overlay(box []line) (x, y int) {
	if len(box) == 0 {
		return 0, 0
	}
	w := box[0].width()
	x, y = max((c.m.w-w)/2, 0), max((len(c.lines)-len(box))/2, 0)
	for i, l := range box {
		if y+i >= len(c.lines) {
			break
		}
		c.buf.Reset()
		c.m.th.draw(&c.buf, l, c.m.w, plain)
		under := c.lines[y+i]
		left := upTo(under, x)
		left += spaces(x - ansi.StringWidth(left))
		c.lines[y+i] = left + c.buf.String() + from(under, x+w)
	}
	return x, y
}

// heights divides the lines between header and footer.
type heights struct{ banners, hosts, table, look, log int }

// plan decides how high each pane is. The table gets what the largest host
// needs, so that nothing moves when another host is selected; what is left
// belongs to the log. Why the selected proxy is as it is has two lines wherever
// there is room, and more where lines are to spare.
func (m *Model) plan() heights {
	rest := m.h - 2
	p := heights{banners: min(len(m.banners(100)), max(1, m.h/8))}
	rest -= p.banners
	nh := len(m.hostRows)
	p.hosts = min(nh, max(1, rest/5))
	if nh <= 4 && rest >= 18 {
		p.hosts = nh
	}
	rest -= p.hosts + 1 + 2 // headers of both tables, rule
	switch {
	case rest >= 20:
		p.log, p.look = rest/4, lookShort
	case rest >= 11:
		p.log, p.look = 2, lookShort
	case rest >= 7:
		p.log = 2
	}
	rest -= p.look
	if p.log > 0 {
		rest -= p.log + 1
	}
	need := m.biggest + 1
	if m.all {
		need = m.proxies + 1
	}
	p.table = max(rest, 1)
	if p.log > 0 && need < p.table {
		give := p.table - max(need, 5)
		if give > 0 {
			p.table -= give
			if p.look > 0 && give+p.look >= lookMin {
				give += p.look
				p.look = min(give, lookMax)
				give -= p.look
			}
			p.log += give
		}
	}
	return p
}

func (m *Model) drawMain(c *canvas) {
	p := m.plan()
	for _, b := range m.banners(p.banners) {
		c.add(b, plain)
	}
	m.drawHosts(c, p.hosts)
	m.drawTable(c, p.table)
	if p.look > 0 {
		m.drawLook(c, p.look)
	}
	if p.log > 0 {
		m.drawLog(c, p.log)
	}
}

// paneTitle is the title of a pane, with a sign before it when it has the keys.
func (m *Model) paneTitle(p pane, s string) line {
	if m.focus == p {
		return line{{m.th.g.focus + " " + s, stTitle}}
	}
	return text(s, stStrong)
}

func (m *Model) drawHosts(c *canvas, rows int) {
	m.hosts.resize(rows)
	c.add(m.hostHeader(m.w), plain)
	if len(m.hostRows) == 0 {
		c.add(text("   no hosts are configured", stDim), plain)
		return
	}
	gap := gapFor(m.w)
	widths := allot(m.hostColumns(), m.w-hostPrefix, gap)
	from, to := m.hosts.visible()
	for i := from; i < to; i++ {
		m.hits = append(m.hits, hit{len(c.lines), paneHosts, i})
		c.add(m.hostLine(i, m.w, widths, gap), m.ground(i == m.hosts.at, paneHosts))
	}
}

func (m *Model) ground(on bool, p pane) variant {
	switch {
	case !on:
		return plain
	case m.focus == p:
		return selected
	}
	return resting
}

func (m *Model) drawTable(c *canvas, rows int) {
	m.table.resize(rows)
	c.rule(m.tableTitle(), m.tableRemarks()...)
	cols, widths, gap := m.tableWidths(m.w)
	c.add(m.assemble(text(spaces(tablePrefix), stText), widths, gap, titles(cols)), plain)
	from, to := m.table.visible()
	for i := from; i < to; i++ {
		m.hits = append(m.hits, hit{len(c.lines), paneProxies, i})
		c.add(m.rowLine(i, widths, gap), m.ground(i == m.table.at, paneProxies))
	}
	if len(m.rows) == 0 {
		for _, l := range m.emptyTable() {
			c.add(l, plain)
			to++
		}
	}
	for range rows - (to - from) {
		c.add(nil, plain)
	}
}

func (m *Model) tableTitle() line {
	name := "all hosts"
	if !m.all {
		name = orWord(clean(m.hosts.sel), "no host")
	}
	t := m.paneTitle(paneProxies, name+" / proxies")
	if r, ok := m.hostRow(); ok && !m.all && !r.h.External && !r.h.LastGood.IsZero() {
		limit := m.snap.Timing.Poll * 5 / 2
		if limit > 0 && m.at.Sub(r.h.LastGood) > limit {
			t = append(t, seg{"  stale: last look " + age(m.at, r.h.LastGood) + " ago", stWarn})
		}
	}
	return t
}

func (m *Model) tableRemarks() []line {
	var out []line
	name, _, _ := m.sort.word()
	arrow := m.th.g.down
	if m.reverse {
		arrow = m.th.g.up
	}
	out = append(out, text("sort "+name+" "+arrow, stDim))
	if len(m.marks) > 0 {
		out = append(out, text(fmt.Sprintf("%d marked", len(m.marks)), stWarn))
	}
	if w := m.table.window(); w != "" {
		out = append(out, text("rows "+w, stDim))
	}
	if m.filter.empty() {
		return append(out, text(count(m.total, "proxy", "proxies"), stDim))
	}
	return append(out, line{{"filter: ", stDim}, {m.filter.src, stWarn}},
		text(fmt.Sprintf("%d of %d", m.matching, m.total), stDim))
}

func (m *Model) emptyTable() []line {
	if !m.filter.empty() && m.total > 0 {
		out := []line{text("  no proxy matches the filter; esc clears it", stDim), text("  "+filterHelp, stDim)}
		if m.filter.wrong != "" {
			out = append([]line{text("  "+m.filter.wrong, stWarn)}, out...)
		}
		return out
	}
	if r, ok := m.hostRow(); ok && !r.gone.IsZero() {
		return []line{text("  this host is gone", stDim)}
	}
	return []line{text("  no proxies are declared here", stDim)}
}
