package ui

import (
	"fmt"
	"slices"
	"strings"

	"virdeck/logbuf"
	"virdeck/model"
)

// evidence returns the items of a record's evidence. The ring keeps a list as one
// text; the event that was logged with it still has the list, unless it is too
// old.
func (m *Model) evidence(r *logbuf.Record, text string) []string {
	if items := strings.Split(text, " · "); len(items) > 1 {
		return distinct(items)
	}
	for _, e := range m.eventsOf(r) {
		if len(e.Evidence) > 0 && fmt.Sprint(e.Evidence) == text {
			return distinct(e.Evidence)
		}
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inner, "]")
	}
	return []string{text}
}

func (m *Model) eventsOf(r *logbuf.Record) []model.Event {
	if r.Proxy == "" {
		if h := m.snap.Host(model.HostName(r.Host)); h != nil {
			return h.Events
		}
		return nil
	}
	if m.byNameOf != m.snap {
		m.byNameOf, m.byName = m.snap, map[model.ProxyName]*model.ProxyView{}
		for _, h := range m.snap.Hosts {
			for _, p := range h.Proxies {
				m.byName[p.Spec.Name] = p
			}
		}
	}
	if p := m.byName[model.ProxyName(r.Proxy)]; p != nil {
		return p.Events
	}
	return nil
}

// distinct drops items that are empty or say what the one before said.
func distinct(items []string) []string {
	out := make([]string, 0, len(items))
	for _, s := range items {
		if s = strings.TrimSpace(s); s != "" && (len(out) == 0 || out[len(out)-1] != s) {
			out = append(out, s)
		}
	}
	return slices.Clip(out)
}
