package ui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// place is where a key means something.
type place uint8

const (
	inMain place = 1 << iota
	inText       // proxy, host, explain, ops, help
	inLog        // log full screen

	everywhere = inMain | inText | inLog
)

// action ties a binding to what it does. Update and the help are made from the
// same actions, so that neither can know a key that the other does not.
type action struct {
	b     key.Binding
	group string
	in    place
	hint  place // where the footer names it
	do    func(*Model, tea.KeyPressMsg) tea.Cmd
}

const (
	groupMove = "move"
	groupAct  = "act"
	groupLook = "look"
	groupLog  = "log"
)

func bind(keys []string, shown, desc string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, desc))
}

// quiet wraps a function that needs neither the key nor a command.
func quiet(f func(*Model)) func(*Model, tea.KeyPressMsg) tea.Cmd {
	return func(m *Model, _ tea.KeyPressMsg) tea.Cmd {
		f(m)
		return nil
	}
}

// newActions returns the keys of one session, in the order of the help. The
// order of those with a hint is the order of the footer.
func newActions() []action {
	k := func(keys ...string) []string { return keys }
	return []action{
		{bind(k("r"), "r", "reconcile: the selected or the marked"), groupAct, inMain | inText, inMain, quiet((*Model).reconcile)},
		{bind(k("R"), "R", "reconcile host: all its proxies"), groupAct, inMain | inText, 0, quiet((*Model).reconcileHost)},
		{bind(k("c"), "c", "reconnect: the host's link; asks when it is up"), groupAct, inMain | inText, inMain, quiet((*Model).reconnect)},
		{bind(k("d"), "d", "drain: take out of the rotation"), groupAct, inMain | inText, inMain, quiet((*Model).drain)},
		{bind(k("D"), "D", "undrain: put back"), groupAct, inMain | inText, 0, quiet((*Model).undrain)},
		{bind(k("x"), "x", "restart: the VM; asks"), groupAct, inMain | inText, 0, quiet((*Model).restart)},
		{bind(k("S"), "S", "start: the VM; asks"), groupAct, inMain | inText, 0, quiet((*Model).start)},
		{bind(k("T"), "T", "stop: the VM; asks"), groupAct, inMain | inText, 0, quiet((*Model).stop)},
		{bind(k("space"), "space", "mark: for r, d, x and the like"), groupAct, inMain, 0, quiet((*Model).toggleMark)},

		{bind(k("enter"), "enter", "detail: of the proxy or host"), groupMove, inMain, inMain, quiet((*Model).enter)},
		{bind(k("esc"), "esc", "back: one step; clears filter, marks"), groupMove, everywhere, inText | inLog, quiet((*Model).back)},
		{bind(k("up", "k"), "↑ k", "up"), groupMove, everywhere, 0, quiet(func(m *Model) { m.move(-1) })},
		{bind(k("down", "j"), "↓ j", "down"), groupMove, everywhere, 0, quiet(func(m *Model) { m.move(1) })},
		{bind(k("pgup", "ctrl+b"), "pgup", "page up"), groupMove, everywhere, 0, quiet(func(m *Model) { m.movePage(-1) })},
		{bind(k("pgdown", "ctrl+f"), "pgdn", "page down"), groupMove, everywhere, 0, quiet(func(m *Model) { m.movePage(1) })},
		{bind(k("g", "home"), "g", "first"), groupMove, everywhere, 0, quiet(func(m *Model) { m.moveEnd(-1) })},
		{bind(k("G", "end"), "G", "last: the log follows"), groupMove, everywhere, inLog, quiet(func(m *Model) { m.moveEnd(1) })},
		{bind(k("tab"), "tab", "next pane"), groupMove, inMain, 0, quiet(func(m *Model) { m.cyclePane(1) })},
		{bind(k("shift+tab"), "S-tab", "previous pane"), groupMove, inMain, 0, quiet(func(m *Model) { m.cyclePane(-1) })},
		{bind(k("1", "2", "3", "4", "5", "6", "7", "8", "9"), "1..9", "host by number"), groupMove, inMain, 0,
			func(m *Model, k tea.KeyPressMsg) tea.Cmd { m.hostByNumber(int(k.Code - '0')); return nil }},
		{bind(k("0"), "0", "proxies of all hosts"), groupMove, inMain, 0, quiet((*Model).toggleAll)},
		{bind(k("n"), "n", "next: that is not ready; in the log: hit"), groupMove, everywhere, 0, quiet(func(m *Model) { m.next(1) })},
		{bind(k("N"), "N", "previous"), groupMove, everywhere, 0, quiet(func(m *Model) { m.next(-1) })},

		{bind(k("/"), "/", "filter: in the log: search"), groupLook, inMain | inLog, inMain | inLog, (*Model).openInput},
		{bind(k("s"), "s", "sort: order of the rows"), groupLook, inMain, inMain, quiet((*Model).openSort)},
		{bind(k("e"), "e", "explain: why it is in this state"), groupLook, inMain | inText, inMain | inText, quiet((*Model).explain)},
		{bind(k("l"), "l", "log"), groupLook, inMain | inText, inMain, quiet((*Model).openLog)},
		{bind(k("L"), "L", "log of this proxy or host"), groupLook, inMain | inText, 0, quiet((*Model).openObjectLog)},
		{bind(k("o"), "o", "operations"), groupLook, inMain | inText, 0, quiet((*Model).openOps)},
		{bind(k("p"), "p", "pause the view"), groupLook, everywhere, 0, quiet((*Model).togglePause)},
		{bind(k("y"), "y", "copy: address, or what the page says"), groupLook, everywhere, inText, func(m *Model, _ tea.KeyPressMsg) tea.Cmd { return m.copy() }},
		{bind(k("m"), "m", "mouse on or off"), groupLook, everywhere, 0, quiet((*Model).toggleMouse)},

		{bind(k("v"), "v", "level: the least shown"), groupLog, inMain | inLog, inLog, quiet((*Model).cycleLevel)},
		{bind(k("w"), "w", "wrap: long lines"), groupLog, inLog, inLog, quiet((*Model).toggleWrap)},
		{bind(k("&"), "&", "only hits: lines with the search text"), groupLog, inLog, inLog, quiet((*Model).toggleOnly)},
		{bind(k("t"), "t", "time of day or age"), groupLog, inLog, 0, quiet((*Model).toggleTimes)},
		{bind(k("[", "left"), "[", "scroll left"), groupLog, inLog, 0, quiet(func(m *Model) { m.scrollSide(-1) })},
		{bind(k("]", "right"), "]", "scroll right"), groupLog, inLog, 0, quiet(func(m *Model) { m.scrollSide(1) })},

		{bind(k("?"), "?", "all keys"), groupLook, everywhere, everywhere, quiet((*Model).openHelp)},
		{bind(k("q"), "q", "quit: from the first screen"), groupMove, everywhere, inMain, func(m *Model, _ tea.KeyPressMsg) tea.Cmd { return m.quit() }},
		{bind(k("ctrl+c"), "ctrl+c", "quit at once"), groupMove, everywhere, 0, func(*Model, tea.KeyPressMsg) tea.Cmd { return tea.Quit }},
	}
}

// short is what the footer says of the key: the words before the colon.
func (a action) short() string {
	s, _, _ := strings.Cut(a.b.Help().Desc, ":")
	return s
}

// place returns where the keys go now.
func (m *Model) place() place {
	s := m.topScreen()
	switch {
	case s == nil:
		return inMain
	case s.log != nil:
		return inLog
	}
	return inText
}

// key handles a key press. A key that does nothing says so.
func (m *Model) key(msg tea.KeyPressMsg) tea.Cmd {
	m.dismiss()
	switch {
	case msg.String() == "ctrl+c":
		return tea.Quit
	case m.dialog != nil:
		m.dialogKey(msg)
		return nil
	case m.sorting:
		m.sortMenuKey(msg)
		return nil
	case m.asking:
		return m.inputKey(msg)
	}
	elsewhere := false
	for _, a := range m.actions {
		if !key.Matches(msg, a.b) {
			continue
		}
		if a.in&m.place() != 0 {
			return a.do(m, msg)
		}
		elsewhere = true
	}
	if elsewhere {
		m.hint(clean(msg.String()) + " does nothing on this page; ? lists the keys")
	} else {
		m.hint(clean(msg.String()) + " is not a key of the console; ? lists them")
	}
	return nil
}
