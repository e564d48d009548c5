package ui

import (
	"fmt"

	"virdeck/model"
)

// explainProxy answers "why is it in this state?" in plain words.
func (m *Model) explainProxy(p *model.ProxyView, h *model.HostView, w int) []line {
	b := &pageBuf{m: m, w: w}
	b.kv("it is", seg{m.th.g.sign(p.State) + " " + p.State.String(), stateStyle(p.State)}, seg{" since " + age(m.at, p.Since), stDim})
	b.kv("because", seg{orWord(reason(p), "no reason given"), stText})
	tale := m.story(p, h)
	b.kv("that means", seg{tale.is + " " + clients(p), stText})
	b.kv("virdeck", seg{tale.did, stText})
	look := ""
	if in := m.until(p.NextLook); in != "" {
		look = " The next look is in " + in + "."
	}
	b.kv("you can", seg{tale.can, stStrong}, seg{look, stDim})
	if p.Managed != nil {
		b.managedNow(p.Managed)
	}
	for _, mk := range p.Marks {
		b.kv("mark "+string(rune(mk)), seg{markMeaning(mk), stWarn})
	}
	if p.Hold.Active {
		b.kv("held", seg{fmt.Sprintf("the sources have named no address in %s. It is kept until %d have passed and a probe through it fails by its own fault.",
			count(p.Hold.Polls, "poll", "polls"), p.Hold.Of), stText})
	}
	if p.Health.Waiting != "" {
		b.kv("waits", seg{"it is due to leave the rotation and does not yet: " + clean(p.Health.Waiting), stWarn})
	}
	b.head("HOW IT CAME TO THIS, newest first")
	b.events(p.Events, 8)
	return b.out
}

// clients says what it amounts to for the clients of the fleet.
func clients(p *model.ProxyView) string {
	if p.Health.InRotation {
		return "It is in the rotation: clients get it."
	}
	return "It is out of the rotation: no client gets it."
}

func markMeaning(mk model.Mark) string {
	switch mk {
	case model.MarkStale:
		return "stale: looks at it fail, so what is shown is what was last known"
	case model.MarkHeld:
		return "held: the sources have gone quiet, its address is kept"
	case model.MarkUnverified:
		return "unverified: known from before a restart, not probed since"
	case model.MarkWriteFailed:
		return "write failed: the last change to its VM was refused, and it serves all the same"
	case model.MarkConflict:
		return "conflict: another proxy claims the same address"
	}
	return mk.Word()
}

// explainHost says why a link is as it is.
func (m *Model) explainHost(h *model.HostView, w int) []line {
	b := &pageBuf{m: m, w: w}
	switch {
	case h.External:
		b.kv("it is", seg{"a group of proxies with fixed addresses: there is no link that could fail", stText})
	case h.Link.State == model.LinkUp:
		b.kv("the link is", append(m.linkCell(h), append(line{{"  ", stText}}, m.linkDetail(h)...)...)...)
	default:
		b.kv("the link is", m.linkCell(h)...)
		b.kv("because", seg{clean(orWord(h.Link.LastError, "no error was given")), stBad})
		b.kv("that means", seg{"Nothing new is learned of its VMs. Its proxies keep address and rotation; probes, which do not use the link, go on.", stText})
		b.kv("next", seg{"It is dialled again " + orWord(prefixed("in ", m.until(h.Link.NextRetry)), "now") + "; c dials at once.", stText})
	}
	b.head("HOW IT CAME TO THIS, newest first")
	b.events(h.Events, 12)
	return b.out
}

func prefixed(p, s string) string {
	if s == "" {
		return ""
	}
	return p + s
}
