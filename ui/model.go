package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"virdeck/model"
)

// pollEvery is how often the engine's snapshot is looked at.
const pollEvery = 250 * time.Millisecond

type tickMsg struct{}

// Model is the console of one session: a tea.Model. It must be used by one
// goroutine at a time, as a tea.Program does.
type Model struct {
	opts Options
	snap *model.Snapshot
}

var _ tea.Model = (*Model)(nil)

// New returns a console. It reads one snapshot and does nothing else.
func New(opts Options) *Model {
	m := &Model{opts: opts.withDefaults()}
	m.snap = m.opts.Engine.Snapshot()
	return m
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return tick() }

func tick() tea.Cmd {
	return tea.Tick(pollEvery, func(time.Time) tea.Msg { return tickMsg{} })
}

// Update implements tea.Model. It does no I/O and never blocks.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tickMsg:
		m.snap = m.opts.Engine.Snapshot()
		return m, tick()
	case tea.KeyPressMsg:
		if s := msg.String(); s == "q" || s == "ctrl+c" {
			return m, tea.Quit
		}
	}
	return m, nil
}

// View implements tea.Model.
func (m *Model) View() tea.View {
	v := tea.NewView("virdeck " + m.snap.Fleet)
	v.AltScreen = true
	return v
}
