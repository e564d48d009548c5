package ui

import (
	tea "charm.land/bubbletea/v2"

	"virdeck/model"
)

// about is the kind of thing that an act of the palette can be told by name.
type about int

const (
	aboutNothing about = iota
	aboutProxy
	aboutHost
)

// about returns what may follow the name of an act.
func (a action) about() about {
	switch a.short() {
	case "reconcile", "drain", "undrain", "restart", "start", "stop", "recreate", "delete", "release", "manage":
		return aboutProxy
	case "reconcile host", "reconnect", "repin":
		return aboutHost
	}
	return aboutNothing
}

// named is what an act was told to be about: it stands for cursor, page and marks
// while the act is asked for.
type named struct {
	proxy model.ProxyName
	host  model.HostName
}

// objects lists an act with everything that it can be about.
func (m *Model) objects(a action, add func(candidate)) {
	list := func(name, what string, on named) {
		add(candidate{name: a.short() + " " + clean(name), what: what, do: func(m *Model) tea.Cmd {
			m.named = on
			defer func() { m.named = named{} }()
			return a.do(m, tea.KeyPressMsg{})
		}})
	}
	for _, h := range m.snap.Hosts {
		switch a.about() {
		case aboutNothing:
		case aboutHost:
			list(string(h.Name), "host", named{host: h.Name})
		case aboutProxy:
			for _, p := range h.Proxies {
				list(string(p.Spec.Name), "proxy on "+clean(string(h.Name)), named{proxy: p.Spec.Name})
			}
		}
	}
}

// refused returns the word of the engine on a command that is not to be asked for
// in vain; empty if there is none.
func (m *Model) refused(c model.Command) string {
	if err := m.opts.Engine.Refuse(c); err != nil {
		return err.Error()
	}
	return ""
}
