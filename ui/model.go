package ui

import (
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"virdeck/model"
)

const (
	pollEvery = 250 * time.Millisecond // how often the engine's snapshot is looked at
	holdOrder = 3 * time.Second        // how long rows keep their places after a cursor key
)

type tickMsg struct{}

// pane is a part of the main screen that can have the keys.
type pane int

const (
	paneHosts pane = iota
	paneProxies
	paneLog
	paneCount
)

// Model is the console of one session: a tea.Model. It must be used by one
// goroutine at a time, as a tea.Program does.
type Model struct {
	opts    Options
	actions []action
	th      theme
	bg      Background // what the operator says of the terminal's
	light   bool       // the terminal has said that its background is
	profile colorprofile.Profile
	w, h    int

	live *model.Snapshot // the engine's newest
	snap *model.Snapshot // the one shown; older than live while paused
	now  time.Time       // whole seconds: nothing on screen changes more often by age alone
	at   time.Time       // the instant that ages are told against: now, or when the view was paused

	pausedAt time.Time // zero: not paused
	missed   int       // objects that changed since

	focus     pane
	hosts     list
	hostRows  []hostRow
	hostsN    int          // those with a link
	hostsDown int          // of these, without one
	hostsHeld bool         // the hosts are in an order that was held
	counts    model.Counts // of the whole fleet
	proxies   int
	biggest   int // most proxies on one host: the table keeps this height for all
	table     list
	rows      []row
	total     int // proxies in scope, before the filter
	matching  int // after it
	all       bool
	lastSel   map[model.HostName]string
	marks     map[model.ProxyName]struct{}
	filter    filter
	sort      sortKey
	reverse   bool
	holdUntil time.Time // order of rows stands still until then
	held      bool      // the rows are in an order that was held
	nameW     int       // widest proxy name in scope
	addrW     int       // widest address in scope

	stack   []*screen // opened over the main screen, topmost last
	input   textinput.Model
	asking  bool    // the input has the keys
	named   named   // what an act is about, while it is asked for by name
	palette *finder // what the input is for; nil: a filter or a search
	before  string  // its text when it was opened
	dialog  *dialog
	form    *form // for an adoption; under the dialog that follows it
	sorting bool  // the sort menu has the keys
	toast   *toast
	pending []pending
	log     *logPane // at the bottom of the main screen
	mouse   bool
	hits    []hit // what the last frame drew where, for the mouse

	dirty bool
	frame tea.View
}

var _ tea.Model = (*Model)(nil)

// New returns a console. It reads one snapshot and does nothing else.
func New(opts Options) *Model {
	m := &Model{
		opts: opts.withDefaults(), actions: newActions(), bg: opts.Background,
		profile: colorprofile.TrueColor, focus: paneProxies, mouse: opts.Mouse, dirty: true,
		lastSel: map[model.HostName]string{}, marks: map[model.ProxyName]struct{}{},
	}
	m.paint()
	m.log = newLogPane(m.opts.Ring)
	m.input = textinput.New()
	m.input.CharLimit = 200
	m.input.KeyMap.Paste.SetEnabled(false) // it would read the clipboard of this machine, not of the terminal's
	m.live = m.opts.Engine.Snapshot()
	m.snap = m.live
	m.now = m.opts.Now().Truncate(time.Second)
	m.at = m.now
	if len(m.snap.Hosts) > 0 {
		m.hosts.want = string(m.snap.Hosts[0].Name) // whatever is down at the start
	}
	m.reindex()
	m.log.poll()
	return m
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return tea.Batch(tea.RequestBackgroundColor, tick()) }

func tick() tea.Cmd {
	return tea.Tick(pollEvery, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update implements tea.Model. It does no I/O and never blocks.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if _, ok := msg.(tickMsg); ok {
		m.poll()
		return m, tick()
	}
	m.dirty = true
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		m.light = !msg.IsDark()
		m.paint()
	case tea.ColorProfileMsg:
		m.profile = msg.Profile
		m.paint()
	case savedMsg:
		m.saved(msg)
	case tea.PasteMsg:
		return m, m.paste(msg.Content)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.MouseClickMsg:
		m.click(msg.Mouse())
	case tea.MouseWheelMsg:
		m.wheel(msg.Mouse())
	}
	return m, nil
}

// paint makes the theme anew.
func (m *Model) paint() {
	light := m.bg == BackgroundLight || m.bg == BackgroundAuto && m.light
	m.th = newTheme(!light, m.profile, m.opts.ASCII)
}

// cycleGround is for a terminal that does not say what its background is, or says
// it wrong.
func (m *Model) cycleGround() {
	switch m.bg {
	case BackgroundAuto:
		m.bg = BackgroundDark
	case BackgroundDark:
		m.bg = BackgroundLight
	case BackgroundLight:
		m.bg = BackgroundAuto
	}
	m.paint()
	m.hint("colours for a background: " + m.bg.String())
}

// poll takes over what has changed since the last look. Without a change nothing
// is drawn anew.
func (m *Model) poll() {
	clock := m.opts.Now()
	if sec := clock.Truncate(time.Second); !sec.Equal(m.now) {
		m.now = sec
		m.dirty = true
	}
	if m.pausedAt.IsZero() {
		m.at = m.now
	}
	if s := m.opts.Engine.Snapshot(); s != m.live {
		m.live = s
		m.dirty = true
		m.settleOps()
		if m.pausedAt.IsZero() {
			m.snap = s
			m.reindex()
		} else {
			m.missed = changes(m.snap, s)
		}
	}
	if (m.held || m.hostsHeld) && !m.orderHeld() {
		m.reindex()
		m.dirty = true
	}
	if m.log.poll() {
		m.dirty = true
	}
	if s := m.topScreen(); s != nil && s.log != nil && s.log.poll() {
		m.dirty = true
	}
	if m.toast != nil && m.toast.over(clock) {
		m.toast = nil
		m.dirty = true
	}
}

// orderHeld reports whether rows must keep their places: a hand is on the keys.
func (m *Model) orderHeld() bool {
	return m.dialog != nil || m.form != nil || m.sorting || m.opts.Now().Before(m.holdUntil)
}

// touch says that a cursor key was pressed.
func (m *Model) touch() { m.holdUntil = m.opts.Now().Add(holdOrder) }

// togglePause holds the view, or lets it run again.
func (m *Model) togglePause() {
	if m.pausedAt.IsZero() {
		m.pausedAt = m.now
		m.missed = 0
		return
	}
	m.pausedAt = time.Time{}
	m.at = m.now
	m.snap = m.live
	m.reindex()
}

// changes counts the hosts and proxies that an operator would see differently.
func changes(a, b *model.Snapshot) int {
	type face struct {
		state model.State
		marks string
		ip    string
		in    bool
	}
	look := func(p *model.ProxyView) face {
		f := face{state: p.State, ip: p.IP.String(), in: p.Health.InRotation}
		for _, mk := range p.Marks {
			f.marks += string(rune(mk))
		}
		return f
	}
	old := map[model.ProxyName]face{}
	links := map[model.HostName]model.LinkStatus{}
	for _, h := range a.Hosts {
		links[h.Name] = h.Link
		for _, p := range h.Proxies {
			old[p.Spec.Name] = look(p)
		}
	}
	n := 0
	for _, h := range b.Hosts {
		if l, ok := links[h.Name]; !ok || l.State != h.Link.State || l.Generation != h.Link.Generation {
			n++
		}
		delete(links, h.Name)
		for _, p := range h.Proxies {
			if f, ok := old[p.Spec.Name]; !ok || f != look(p) {
				n++
			}
			delete(old, p.Spec.Name)
		}
	}
	return n + len(old) + len(links)
}
