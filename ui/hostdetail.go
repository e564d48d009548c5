package ui

import (
	"fmt"
	"strings"

	"virdeck/model"
)

// hostDetail is the page of one host: its link, its domains, what happened.
func (m *Model) hostDetail(h *model.HostView, w int) []line {
	b := &pageBuf{m: m, w: w}
	l := h.Link
	if h.External {
		b.kv("kind", seg{"proxies with a fixed address and no VM: there is no link", stText})
	} else {
		b.kv("link", m.linkCell(h)...)
		if d := m.linkDetail(h); l.State == model.LinkUp && len(d) > 0 {
			b.kv("", d...)
		}
		if h.Misconfig != "" {
			b.kv("not used", seg{"its answers are not used: " + clean(h.Misconfig), stBad})
		}
		if h.Twin != "" {
			b.kv("read only", seg{clean(h.Twin), stWarn})
		}
		if h.ARPBroken {
			b.kv("arp", seg{"libvirt cannot read this host's neighbour table: ARP counts as empty here", stWarn})
		}
		if in := m.until(l.NextRetry); in != "" {
			b.kv("next dial", seg{"in " + in, stText})
		}
		if l.LastError != "" {
			st := stDim
			if l.State != model.LinkUp {
				st = stBad
			}
			b.kv("last error", seg{clean(l.LastError), st})
			b.kv("", seg{orWord(age(m.at, l.LastErrAt), "?") + " ago", stDim})
		}
		if l.EventsOff != "" {
			b.kv("events", seg{"missing, so changes are seen at the next look: " + clean(l.EventsOff), stWarn})
		}
		b.kv("uri", seg{clean(publicURI(h.URI)), stText})
		if l.Endpoint != "" {
			b.kv("endpoint", seg{clean(l.Endpoint), stText})
		}
		b.kv("uuid", seg{clean(orWord(h.UUID, "not known yet")), stDim})
		b.kv("calls", seg{fmt.Sprintf("%d of %d slots in use, %d of them abandoned", l.InFlight, l.Slots, l.Abandoned), stText})
		for i, n := range l.Calls {
			if n == (model.CallCount{}) {
				continue
			}
			b.kv("", seg{fmt.Sprintf("%s: %d answered, %d of them with an error; %d not asked, %d found no link, %d left by their caller",
				model.CallClass(i), n.Done, n.Failed, n.NotAsked, n.Down, n.Left), stDim})
		}
		if l.ClockKnown {
			b.kv("clock", seg{offset(l.ClockDiff) + " against ours", stText}, seg{fmt.Sprintf("  right to %.0fs; from the leases", l.ClockError.Seconds()), stDim})
		}
		b.kv("last look", seg{orWord(age(m.at, h.LastGood), "never"), stText}, seg{" ago", stDim})
		var src []string
		for _, s := range h.Sources {
			src = append(src, s.String())
		}
		b.kv("sources", seg{orWord(strings.Join(src, " "), "none"), stText})
		if h.Domains >= 0 {
			b.kv("domains", seg{count(h.Domains, "domain", "domains"), stText},
				seg{fmt.Sprintf(", %d not declared", len(h.Undeclared)), stText})
		}
		m.hostManaged(b, h)
	}
	b.kv("proxies", m.hostCounts(summarize(h))...)
	b.orphans(h.Orphans)
	b.undeclared(h)
	b.head("EVENTS")
	b.events(h.Events, 100)
	return b.out
}
