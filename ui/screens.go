package ui

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"

	"virdeck/model"
)

// screenKind is a page that is opened over the main screen.
type screenKind int

const (
	scrProxy screenKind = iota
	scrHost
	scrExplain
	scrOps
	scrLog
	scrHelp
	scrPlan
)

// screen is an open page. It is about an object known by name.
type screen struct {
	kind   screenKind
	proxy  model.ProxyName
	host   model.HostName
	vp     viewport.Model
	log    *logPane // scrLog only
	filter string   // scrHelp and scrPlan only

	lastProxy *model.ProxyView // what was known before the object vanished
	lastHost  *model.HostView
	plainText []string // lines as drawn, for copying
}

func (m *Model) topScreen() *screen {
	if len(m.stack) == 0 {
		return nil
	}
	return m.stack[len(m.stack)-1]
}

func (m *Model) push(s *screen) {
	s.vp = viewport.New(viewport.WithWidth(max(m.w, 1)), viewport.WithHeight(max(m.h-3, 1)))
	if s.log != nil {
		s.log.poll()
	}
	m.stack = append(m.stack, s)
}

func (s *screen) scroll(d int) {
	if d < 0 {
		s.vp.ScrollUp(-d)
	} else {
		s.vp.ScrollDown(d)
	}
}

// enter opens the detail of what is under the cursor.
func (m *Model) enter() {
	switch m.focus {
	case paneHosts:
		r, ok := m.hostRow()
		if !ok {
			m.hint("no host is selected")
			return
		}
		m.push(&screen{kind: scrHost, host: r.h.Name, lastHost: r.h})
	case paneProxies:
		r, ok := m.current()
		if !ok {
			m.hint("no proxy is selected")
			return
		}
		m.push(&screen{kind: scrProxy, proxy: r.p.Spec.Name, lastProxy: r.p, lastHost: r.h})
	case paneLog, paneCount:
		m.openLog()
	}
}

// back is one step back: close the page, else clear the filter, else the marks,
// else leave the table of all hosts.
func (m *Model) back() {
	switch {
	case len(m.stack) > 0 && m.topScreen().filter != "":
		m.topScreen().filter = ""
	case len(m.stack) > 0:
		m.stack = m.stack[:len(m.stack)-1]
	case !m.filter.empty():
		m.setFilter("")
	case len(m.marks) > 0:
		clear(m.marks)
	case m.focus == paneLog && m.log.text != "":
		m.log.search("")
	case m.all:
		m.toggleAll()
	case !m.log.follow:
		m.log.resume()
	default:
		m.hint("this is the first screen; q quits")
	}
}

func (m *Model) quit() tea.Cmd {
	if len(m.stack) > 0 {
		m.hint("esc goes back; q quits from the first screen")
		return nil
	}
	return tea.Quit
}

func (m *Model) explain() {
	s := m.topScreen()
	switch {
	case s != nil && s.kind == scrExplain:
		m.hint("this page explains already")
	case s != nil && s.proxy != "":
		m.push(&screen{kind: scrExplain, proxy: s.proxy, lastProxy: s.lastProxy, lastHost: s.lastHost})
	case s != nil && s.host != "":
		m.push(&screen{kind: scrExplain, host: s.host, lastHost: s.lastHost})
	case s != nil:
		m.hint("this page is not about one proxy or host")
	case m.focus == paneHosts:
		if r, ok := m.hostRow(); ok {
			m.push(&screen{kind: scrExplain, host: r.h.Name, lastHost: r.h})
		} else {
			m.hint("no host is selected")
		}
	default:
		if r, ok := m.current(); ok {
			m.push(&screen{kind: scrExplain, proxy: r.p.Spec.Name, lastProxy: r.p, lastHost: r.h})
		} else {
			m.hint("no proxy is selected")
		}
	}
}

func (m *Model) openOps()  { m.openOnce(scrOps) }
func (m *Model) openHelp() { m.openOnce(scrHelp) }
func (m *Model) openPlan() { m.openOnce(scrPlan) }

func (m *Model) openOnce(k screenKind) {
	if s := m.topScreen(); s != nil && s.kind == k {
		m.back()
		return
	}
	m.push(&screen{kind: k})
}

// drawScreen draws the page on top.
func (m *Model) drawScreen(c *canvas, s *screen) {
	rows := m.h - 3
	if s.log != nil {
		c.rule(text("log", stTitle), s.log.status(m.th.g)...)
		m.drawRecords(c, s.log, rows)
		return
	}
	title, body := m.page(s, m.w)
	s.vp.SetWidth(m.w)
	s.vp.SetHeight(max(rows, 1))
	drawn := make([]string, len(body))
	s.plainText = s.plainText[:0]
	for i, l := range body {
		c.buf.Reset()
		m.th.draw(&c.buf, l, m.w, plain)
		drawn[i] = c.buf.String()
		s.plainText = append(s.plainText, strings.TrimRight(l.plain(), " "))
	}
	s.vp.SetContentLines(drawn)
	var remarks []line
	if len(body) > rows {
		at := "top"
		switch {
		case s.vp.AtBottom():
			at = "end"
		case !s.vp.AtTop():
			at = fmt.Sprintf("%d%%", int(s.vp.ScrollPercent()*100))
		}
		remarks = append(remarks, text(at, stDim))
	}
	c.rule(title, remarks...)
	from := min(s.vp.YOffset(), len(drawn))
	c.lines = append(c.lines, drawn[from:min(from+rows, len(drawn))]...)
}

// page returns the title and the lines of a page.
func (m *Model) page(s *screen, w int) (line, []line) {
	switch s.kind {
	case scrProxy:
		p, h, gone := m.pageProxy(s)
		return m.crumbs(s, gone, "proxy", string(p.Spec.Name)), m.proxyDetail(p, h, w)
	case scrHost:
		h, gone := m.pageHost(s)
		return m.crumbs(s, gone, "host", string(h.Name)), m.hostDetail(h, w)
	case scrExplain:
		if s.proxy != "" {
			p, h, gone := m.pageProxy(s)
			return m.crumbs(s, gone, "why", string(p.Spec.Name)), m.explainProxy(p, h, w)
		}
		h, gone := m.pageHost(s)
		return m.crumbs(s, gone, "why", string(h.Name)), m.explainHost(h, w)
	case scrOps:
		return text("operations and notices", stTitle), m.opsPage(w)
	case scrHelp:
		return filtered("keys and signs", s.filter), m.helpPage(w, s.filter)
	case scrPlan:
		return filtered("plan", s.filter), m.planPage(w, s.filter)
	case scrLog:
	}
	return nil, nil
}

// filtered is the title of a page with its filter.
func filtered(title, filter string) line {
	out := text(title, stTitle)
	if filter != "" {
		out = append(out, seg{"  filter: ", stDim}, seg{clean(filter), stWarn})
	}
	return out
}

func (m *Model) crumbs(s *screen, gone bool, kind, name string) line {
	t := line{{kind + " ", stDim}, {clean(name), stTitle}}
	if s.proxy != "" && s.lastHost != nil {
		t = append(t, seg{" on " + clean(string(s.lastHost.Name)), stDim})
	}
	if gone {
		t = append(t, seg{"  gone: what was last known", stWarn})
	}
	return t
}

// pageProxy returns the proxy of a page, what was last known of it if it is gone.
func (m *Model) pageProxy(s *screen) (*model.ProxyView, *model.HostView, bool) {
	if p, h := m.snap.Proxy(s.proxy); p != nil {
		s.lastProxy, s.lastHost = p, h
		return p, h, false
	}
	return s.lastProxy, s.lastHost, true
}

func (m *Model) pageHost(s *screen) (*model.HostView, bool) {
	if h := m.snap.Host(s.host); h != nil {
		s.lastHost = h
		return h, false
	}
	return s.lastHost, true
}

// copy puts what the keys are on into the clipboard of the operator's terminal,
// and says what it was, so that it can be selected by hand where the terminal
// refuses.
func (m *Model) copy() tea.Cmd {
	s := m.topScreen()
	switch {
	case m.searched() != nil:
		lines, n := m.logText(m.searched())
		m.hint("copied " + count(n, "line", "lines") + " of the log")
		return tea.SetClipboard(lines)
	case s != nil:
		m.hint("copied " + count(len(s.plainText), "line", "lines"))
		return tea.SetClipboard(strings.Join(s.plainText, "\n") + "\n")
	case m.focus == paneHosts:
		r, ok := m.hostRow()
		if !ok {
			m.hint("no host is selected")
			return nil
		}
		what := publicURI(r.h.URI)
		if r.h.Link.State != model.LinkUp && r.h.Link.LastError != "" {
			what = r.h.Link.LastError
		}
		return m.copied(clean(orWord(what, string(r.h.Name))))
	}
	r, ok := m.current()
	if !ok {
		m.hint("no proxy is selected")
		return nil
	}
	ip := r.p.Spec.EffectiveHost(r.p.IP)
	if !ip.IsValid() {
		return m.copied(clean(string(r.p.Spec.Name)))
	}
	return m.copied(net.JoinHostPort(ip.String(), strconv.Itoa(int(r.p.Spec.Port))))
}

// logText is what a log pane shows, uncut, and how many lines that is.
func (m *Model) logText(l *logPane) (string, int) {
	var b strings.Builder
	n := 0
	for _, l := range l.visible(m, 1000, max(l.height, 1)) {
		b.WriteString(strings.TrimRight(l.plain(), " ") + "\n")
		n++
	}
	return b.String(), n
}

func (m *Model) copied(s string) tea.Cmd {
	m.hint("copied " + s)
	return tea.SetClipboard(s)
}
