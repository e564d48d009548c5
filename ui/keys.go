package ui

import (
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// place is where a key means something: a pane of the first screen, or a page.
type place uint16

const (
	inHosts   place = 1 << iota // the pane of the hosts
	inTable                     // the pane of the proxies
	inTail                      // the pane of the log
	inProxy                     // page of a proxy
	inHost                      // page of a host
	inWhy                       // explain, a proxy
	inWhyHost                   // explain, a host
	inOps                       // operations and notices
	inHelp                      // keys and signs
	inLog                       // log full screen
	inPlan                      // what would be done

	inLists    = inHosts | inTable
	inMain     = inLists | inTail
	inText     = inProxy | inHost | inWhy | inWhyHost | inOps | inHelp | inPlan
	anyLog     = inTail | inLog
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
	about := inProxy | inHost | inWhy | inWhyHost
	return []action{
		{bind(k("r"), "r", "reconcile: the selected or the marked"), groupAct, inLists | inText, inLists | about, quiet((*Model).reconcile)},
		{bind(k("R"), "R", "reconcile host: all its proxies"), groupAct, inLists | inText, 0, quiet((*Model).reconcileHost)},
		{bind(k("c"), "c", "reconnect: the host's link; asks when it is up"), groupAct, inLists | inText, inLists | inHost | inWhyHost, quiet((*Model).reconnect)},
		{bind(k("d"), "d", "drain: take out of the rotation"), groupAct, inLists | inText, inTable | inProxy | inWhy, quiet((*Model).drain)},
		{bind(k("D"), "D", "undrain: put back"), groupAct, inLists | inText, 0, quiet((*Model).undrain)},
		{bind(k("x"), "x", "restart: the VM; asks"), groupAct, inLists | inText, 0, quiet((*Model).restart)},
		{bind(k("S"), "S", "start: the VM; asks"), groupAct, inLists | inText, 0, quiet((*Model).start)},
		{bind(k("T"), "T", "stop: the VM; asks"), groupAct, inLists | inText, 0, quiet((*Model).stop)},
		{bind(k("X"), "X", "recreate: another VM in place of a managed one; asks"), groupAct, inLists | inText, 0, quiet((*Model).recreate)},
		{bind(k("delete"), "del", "delete: the VM of a managed one; asks"), groupAct, inLists | inText, 0, quiet((*Model).remove)},
		{bind(k("A"), "A", "adopt: a domain that no proxy declares; asks"), groupAct, inLists | inText, inHost, func(m *Model, _ tea.KeyPressMsg) tea.Cmd { return m.adopt() }},
		{bind(nil, ":release", "release: an adopted one; its VM goes on; asks"), groupAct, inLists | inText, 0, quiet((*Model).release)},
		{bind(nil, ":repin", "repin: another machine is this host from now on; asks"), groupAct, inLists | inText, 0, quiet((*Model).repin)},
		{bind(nil, ":manage", "manage: mark an adopted one as ours; asks"), groupAct, inLists | inText, 0, quiet((*Model).manage)},
		{bind(k("C"), "C", "cancel op: one that is queued; asks"), groupAct, inMain | inText, inOps, func(m *Model, _ tea.KeyPressMsg) tea.Cmd { return m.cancel() }},
		{bind(k("ctrl+r"), "ctrl+r", "reload: apply the configuration file; asks"), groupAct, everywhere, 0, quiet((*Model).reload)},
		{bind(k("space"), "space", "mark: for r, d, x and the like"), groupAct, inLists, 0, quiet((*Model).toggleMark)},

		{bind(k("enter"), "enter", "detail: of the proxy or host"), groupMove, inMain, inLists, quiet((*Model).enter)},
		{bind(k("esc"), "esc", "back: one step; clears filter, marks"), groupMove, everywhere, inText | inLog, quiet((*Model).back)},
		{bind(k("up", "k"), "↑ k", "up"), groupMove, everywhere, 0, quiet(func(m *Model) { m.move(-1) })},
		{bind(k("down", "j"), "↓ j", "down"), groupMove, everywhere, 0, quiet(func(m *Model) { m.move(1) })},
		{bind(k("pgup", "ctrl+b"), "pgup", "page up"), groupMove, everywhere, 0, quiet(func(m *Model) { m.movePage(-1) })},
		{bind(k("pgdown", "ctrl+f"), "pgdn", "page down"), groupMove, everywhere, 0, quiet(func(m *Model) { m.movePage(1) })},
		{bind(k("g", "home"), "g", "first"), groupMove, everywhere, 0, quiet(func(m *Model) { m.moveEnd(-1) })},
		{bind(k("G", "end"), "G", "last: the log follows"), groupMove, everywhere, anyLog, quiet(func(m *Model) { m.moveEnd(1) })},
		{bind(k("tab"), "tab", "next pane"), groupMove, inMain, inHosts | inTail, quiet(func(m *Model) { m.cyclePane(1) })},
		{bind(k("shift+tab"), "S-tab", "previous pane"), groupMove, inMain, 0, quiet(func(m *Model) { m.cyclePane(-1) })},
		{bind(k("1", "2", "3", "4", "5", "6", "7", "8", "9"), "1..9", "host by number"), groupMove, inMain, 0,
			func(m *Model, k tea.KeyPressMsg) tea.Cmd { m.hostByNumber(int(k.Code - '0')); return nil }},
		{bind(k("0"), "0", "proxies of all hosts"), groupMove, inMain, 0, quiet((*Model).toggleAll)},
		{bind(k("n"), "n", "next: that is not ready; in the log: hit"), groupMove, everywhere, 0, quiet(func(m *Model) { m.next(1) })},
		{bind(k("N"), "N", "previous"), groupMove, everywhere, 0, quiet(func(m *Model) { m.next(-1) })},

		{bind(k("/"), "/", "filter: also of this page; in the log: search"), groupLook, inMain | anyLog | inHelp | inPlan, inTable | anyLog | inHelp | inPlan, (*Model).openInput},
		{bind(k(":"), ":", "palette: an act, a host or a proxy by name"), groupLook, everywhere, 0, (*Model).openPalette},
		{bind(k("s"), "s", "sort: order of the rows"), groupLook, inLists, inTable, quiet((*Model).openSort)},
		{bind(k("e"), "e", "explain: why it is in this state"), groupLook, inLists | inText, inLists | inProxy | inHost, quiet((*Model).explain)},
		{bind(k("l"), "l", "log"), groupLook, inMain | inText, inMain, quiet((*Model).openLog)},
		{bind(k("L"), "L", "log of this proxy or host"), groupLook, inLists | inText, 0, quiet((*Model).openObjectLog)},
		{bind(k("P"), "P", "plan: what would be done, and why"), groupLook, inMain | inText, inLists | inProxy | inHost, quiet((*Model).openPlan)},
		{bind(k("o"), "o", "operations"), groupLook, inMain | inText, 0, quiet((*Model).openOps)},
		{bind(k("p"), "p", "pause the view"), groupLook, everywhere, 0, quiet((*Model).togglePause)},
		{bind(k("y"), "y", "copy: address, or what the page says"), groupLook, everywhere, inText, func(m *Model, _ tea.KeyPressMsg) tea.Cmd { return m.copy() }},
		{bind(k("m"), "m", "mouse on or off"), groupLook, everywhere, 0, quiet((*Model).toggleMouse)},
		{bind(k("B"), "B", "background: auto, dark or light"), groupLook, everywhere, 0, quiet((*Model).cycleGround)},

		{bind(k("v"), "v", "level: the least shown"), groupLog, inMain | inLog, anyLog, quiet((*Model).cycleLevel)},
		{bind(k("w"), "w", "wrap: long lines"), groupLog, anyLog, anyLog, quiet((*Model).toggleWrap)},
		{bind(k("&"), "&", "only hits: lines with the search text"), groupLog, anyLog, anyLog, quiet((*Model).toggleOnly)},
		{bind(k("t"), "t", "time of day or age"), groupLog, anyLog, 0, quiet((*Model).toggleTimes)},
		{bind(k("[", "left"), "[", "scroll left"), groupLog, anyLog, 0, quiet(func(m *Model) { m.scrollSide(-1) })},
		{bind(k("]", "right"), "]", "scroll right"), groupLog, anyLog, 0, quiet(func(m *Model) { m.scrollSide(1) })},
		{bind(k("ctrl+s"), "ctrl+s", "save: the lines shown, to a new file"), groupLog, anyLog, 0, func(m *Model, _ tea.KeyPressMsg) tea.Cmd { return m.saveLog() }},

		{bind(k("?"), "?", "all keys: and signs"), groupLook, everywhere, everywhere &^ inHelp, quiet((*Model).openHelp)},
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
	if s == nil {
		switch m.focus {
		case paneHosts:
			return inHosts
		case paneLog:
			return inTail
		case paneProxies, paneCount:
		}
		return inTable
	}
	switch s.kind {
	case scrProxy:
		return inProxy
	case scrHost:
		return inHost
	case scrExplain:
		if s.proxy == "" {
			return inWhyHost
		}
		return inWhy
	case scrOps:
		return inOps
	case scrPlan:
		return inPlan
	case scrHelp:
		return inHelp
	case scrLog:
	}
	return inLog
}

// key handles a key press. What a toast said goes with the page or the pane that
// it was about; an error stays until it is dismissed.
func (m *Model) key(msg tea.KeyPressMsg) tea.Cmd {
	m.dismiss()
	page, focus, said := m.topScreen(), m.focus, m.toast
	cmd := m.dispatch(msg)
	if said != nil && m.toast == said && !said.err && (m.topScreen() != page || m.focus != focus) {
		m.toast = nil
	}
	return cmd
}

// dispatch gives a key to what has the keys. A key that does nothing says so.
func (m *Model) dispatch(msg tea.KeyPressMsg) tea.Cmd {
	switch {
	case msg.String() == "ctrl+c":
		return tea.Quit
	case m.dialog != nil:
		m.dialogKey(msg)
		return nil
	case m.form != nil:
		return m.formKey(msg)
	case m.sorting:
		m.sortMenuKey(msg)
		return nil
	case m.asking:
		return m.inputKey(msg)
	}
	var elsewhere place
	here := m.place()
	for _, a := range m.actions {
		if !key.Matches(msg, a.b) {
			continue
		}
		if a.in&here != 0 {
			return a.do(m, msg)
		}
		elsewhere |= a.in
	}
	name := clean(msg.String())
	if elsewhere == 0 {
		m.hint(name + " is not a key of the console; ? lists them")
	} else {
		m.hint(m.notHere(name, elsewhere))
	}
	return nil
}

// notHere says why a key or an act that belongs elsewhere does nothing.
func (m *Model) notHere(name string, elsewhere place) string {
	switch here := m.place(); {
	case here == inTail && elsewhere&inTable != 0:
		return "the keys are on the log: tab goes to the proxies"
	case here&inMain != 0 && elsewhere == anyLog:
		return name + " is for the log: tab goes there, l opens it"
	}
	return name + " does nothing on this page; ? lists the keys"
}
