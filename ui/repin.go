package ui

import (
	"fmt"

	"virdeck/model"
)

// repin takes the machine that answers under a host's URI for that host, after a
// question that names both.
func (m *Model) repin() {
	h, why := m.hostHere()
	switch {
	case h == nil:
		m.hint(why)
		return
	case m.mayOnlyLook():
		return
	}
	cmd := model.Command{Verb: model.VerbRepin, Host: h.Name}
	if why := m.refused(cmd); why != "" {
		m.hint(why)
		return
	}
	shows, pinned := h.Shows, h.UUID
	m.dialog = &dialog{
		title: clean(fmt.Sprintf("Take another machine for %s?", h.Name)), yes: "repin",
		body: []line{
			text("answers: "+clean(shows), stText),
			text("pinned:  "+clean(pinned), stText),
			text("What it lists counts from then on. Proxies whose domain is not there and whose address does not serve are demoted; managed ones are made there, within the budget.", stText),
			text("What is on the pinned machine is left as it is.", stDim),
		},
		do: func(m *Model) { m.submit(cmd) },
		outdated: func(m *Model) string {
			now := m.live.Host(cmd.Host)
			switch {
			case now == nil:
				return fmt.Sprintf("host %s is gone", cmd.Host)
			case now.Shows != shows || now.UUID != pinned:
				return fmt.Sprintf("another machine answers for %s than when you asked", cmd.Host)
			}
			return ""
		},
	}
}
