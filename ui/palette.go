package ui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"virdeck/model"
)

// paletteRows is how many candidates are in sight.
const paletteRows = 8

// finder goes to a host or a proxy, or does an act, by name.
type finder struct {
	items []candidate    // those that match, best first
	at    int            // the one that enter takes
	host  model.HostName // domains of this one alone; empty: of all
}

// candidate is something that the palette can do.
type candidate struct {
	name, what string
	do         func(*Model) tea.Cmd
	goesOn     bool // the name of what it is about may follow
}

// completed is what tab makes of the beginning of a name.
func (c candidate) completed() string {
	if c.goesOn {
		return c.name + " "
	}
	return c.name
}

// openPalette gives the keys to the palette.
func (m *Model) openPalette(tea.KeyPressMsg) tea.Cmd { return m.openPaletteAt("", "") }

// openPaletteAt gives the keys to the palette, with the beginning of a name, and
// with the domains of one host alone if there is one.
func (m *Model) openPaletteAt(typed string, host model.HostName) tea.Cmd {
	m.palette = &finder{host: host}
	m.input.SetValue(typed)
	m.input.CursorEnd()
	m.asking = true
	m.fillPalette(typed)
	return m.input.Focus()
}

// paletteKey handles the keys that the palette has before its input.
func (m *Model) paletteKey(msg tea.KeyPressMsg) (cmd tea.Cmd, done bool) {
	p := m.palette
	switch msg.String() {
	case "esc":
		m.closeInput()
	case "up", "shift+tab":
		p.at = max(p.at-1, 0)
	case "down":
		p.at = max(min(p.at+1, len(p.items)-1), 0)
	case "tab":
		if len(p.items) > 0 {
			m.input.SetValue(p.items[p.at].completed())
			m.input.CursorEnd()
			m.fillPalette(m.input.Value())
		}
	case "enter":
		text := clean(m.input.Value())
		m.closeInput()
		if len(p.items) == 0 {
			m.hint("nothing is called " + text)
			return nil, true
		}
		return p.items[p.at].do(m), true
	default:
		return nil, false
	}
	return nil, true
}

// fillPalette lists what has a text in its name: those that begin with it first. A
// space at its end counts where there is something that goes on after it.
func (m *Model) fillPalette(typed string) {
	if m.findCandidates(strings.TrimLeft(typed, " ")); len(m.palette.items) == 0 {
		m.findCandidates(strings.TrimSpace(typed))
	}
}

func (m *Model) findCandidates(typed string) {
	typed = strings.ToLower(typed)
	var first, rest []candidate
	add := func(c candidate) {
		switch low := strings.ToLower(c.name); {
		case strings.HasPrefix(low, typed):
			first = append(first, c)
		case strings.Contains(low, typed):
			rest = append(rest, c)
		}
	}
	for _, a := range m.actions {
		if a.group == groupMove && a.in != everywhere || a.b.Help().Key == ":" || a.hidden() {
			continue
		}
		what := "by name"
		if len(a.b.Keys()) > 0 {
			what = "key " + a.b.Help().Key
		}
		act := candidate{name: a.short(), what: what, do: func(m *Model) tea.Cmd { return m.run(a) }, goesOn: a.about() != aboutNothing}
		object, on := strings.CutPrefix(typed, act.name+" ")
		if !act.goesOn || !on { // with the objects of every act the list would be too long
			add(act)
			continue
		}
		if object == "" { // enter means what is selected, until there is a name
			first = append(first, act)
		}
		m.objects(a, add)
	}
	for _, h := range m.snap.Hosts {
		add(candidate{name: clean(string(h.Name)), what: "host", do: func(m *Model) tea.Cmd { m.goToHost(h.Name); return nil }})
	}
	for _, h := range m.snap.Hosts {
		for _, p := range h.Proxies {
			add(candidate{name: clean(string(p.Spec.Name)), what: "proxy on " + clean(string(h.Name)),
				do: func(m *Model) tea.Cmd { m.goToProxy(p.Spec.Name); return nil }})
		}
	}
	for _, o := range m.queued() {
		add(candidate{name: cancelName(o), what: "queued by " + clean(orWord(o.Command.By, "?")), do: func(m *Model) tea.Cmd { m.askCancel(o.ID); return nil }})
	}
	for _, h := range m.snap.Hosts {
		if m.palette.host != "" && m.palette.host != h.Name {
			continue
		}
		for _, d := range adoptable(h) {
			add(candidate{name: "adopt " + visible(d), what: "domain on " + clean(string(h.Name)), do: func(m *Model) tea.Cmd { return m.openForm(h.Name, d) }})
		}
	}
	m.palette.items, m.palette.at = append(first, rest...), 0
}

// hidden reports whether an act makes no sense but by its key.
func (a action) hidden() bool {
	return slices.Contains([]string{"up", "down", "page up", "page down", "first", "last", "next", "previous", "back"}, a.short())
}

// run does what a key does, where it does something.
func (m *Model) run(a action) tea.Cmd {
	if a.in&m.place() == 0 {
		m.hint(m.notHere(a.short(), a.in))
		return nil
	}
	return a.do(m, tea.KeyPressMsg{})
}

// goToHost closes what is open and puts the cursor on a host.
func (m *Model) goToHost(name model.HostName) {
	if m.snap.Host(name) == nil {
		m.hint("host " + string(name) + " is gone")
		return
	}
	m.stack, m.all = nil, false
	m.focus = paneProxies
	was := m.hosts.sel
	m.selectHost(func(l *list) { l.pick(string(name)) })
	if m.hosts.sel == was {
		m.reindexProxies(true)
	}
}

// goToProxy closes what is open and puts the cursor on a proxy, wherever it is; a
// filter that hides it is cleared.
func (m *Model) goToProxy(name model.ProxyName) {
	p, h := m.snap.Proxy(name)
	if p == nil {
		m.hint(string(name) + " is gone")
		return
	}
	if !m.filter.match(p) {
		m.filter = filter{}
	}
	if m.all {
		m.stack, m.focus = nil, paneProxies
		m.reindexProxies(false)
	} else {
		m.goToHost(h.Name)
	}
	m.moveRow(func(l *list) { l.pick(string(name)) })
}

// drawPalette returns the box of candidates.
func (m *Model) drawPalette() []line {
	p := m.palette
	var lines []line
	from := max(min(p.at-paletteRows/2, len(p.items)-paletteRows), 0)
	name := 10
	for _, c := range p.items[from:min(from+paletteRows, len(p.items))] {
		name = max(name, min(cells(c.name), 28))
	}
	for i, c := range p.items[from:min(from+paletteRows, len(p.items))] {
		cur, st := "  ", stText
		if from+i == p.at {
			cur, st = "> ", stStrong
		}
		lines = append(lines, line{{cur, stStrong}, {pad(cut(c.name, name, m.th.g.ell), name), st}, {"  " + c.what, stDim}})
	}
	if len(lines) == 0 {
		lines = []line{text("nothing is called so", stDim)}
	}
	return m.box(lines, min(name+26, max(m.w-4, 1)))
}
