package ui

import (
	"fmt"

	"virdeck/model"
)

// explainProxy answers "why is it in this state?" in plain words.
func (m *Model) explainProxy(p *model.ProxyView, h *model.HostView, w int) []line {
	b := &pageBuf{m: m, w: w}
	b.kv("it is", seg{m.th.g.sign(p.State) + " " + p.State.String(), stateStyle(p.State)}, seg{" since " + age(m.at, p.Since), stDim})
	b.kv("because", seg{clean(orWord(p.Reason, "no reason given")), stText})
	b.kv("that means", seg{meaning(p), stText})
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
	b.kv("next", seg{m.whatNext(p, h), stText})
	b.head("HOW IT CAME TO THIS, newest first")
	b.events(p.Events, 8)
	return b.out
}

// meaning says what a state amounts to for the clients of the fleet.
func meaning(p *model.ProxyView) string {
	in := "It is out of the rotation: no client gets it."
	if p.Health.InRotation {
		in = "It is in the rotation: clients get it."
	}
	switch p.State {
	case model.StateDeleting:
		return "It is being removed. " + in
	case model.StateDrained:
		return "An operator took it out. Open connections may finish. " + in
	case model.StateFailed:
		return "A write to its host was refused for good, and no VM serves. It stays so until its declaration changes or it is reconciled by key."
	case model.StateDemoted:
		return "It was in the rotation and its probes failed by its own fault. " + in
	case model.StateTransient:
		return "The last look at it failed and says nothing about it. All that was known is kept. " + in
	case model.StateProvisioning:
		return "Its VM runs, and no source names an address yet. " + in
	case model.StatePending:
		return "It is declared, and nothing of it has been seen. " + in
	case model.StateUnproven:
		return fmt.Sprintf("It has an address and has not yet passed %d probes in a row. %s", p.Health.Rise, in)
	case model.StateReady:
		return "Its address is known and its probes pass. " + in
	}
	return in
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

// whatNext says what the program will do by itself, and what an operator can do.
func (m *Model) whatNext(p *model.ProxyView, h *model.HostView) string {
	look := ""
	if in := until(m.at, p.NextLook); in != "" {
		look = " The next look is in " + in + "."
	}
	if h != nil && !h.External && h.Link.State != model.LinkUp {
		s := fmt.Sprintf("The link of %s is %s", clean(string(h.Name)), h.Link.State)
		if in := until(m.at, h.Link.NextRetry); in != "" {
			s += ", dialled again in " + in
		}
		return s + "; c reconnects it now. Probes go on meanwhile."
	}
	switch p.State {
	case model.StateDrained:
		return "Nothing, until D puts it back."
	case model.StateDemoted, model.StateUnproven:
		return fmt.Sprintf("It enters the rotation after %s in a row (%d so far). r looks now.%s",
			count(p.Health.Rise, "pass", "passes"), p.Health.Passes, look)
	case model.StateFailed:
		return "r tries again." + look
	case model.StateTransient, model.StateProvisioning, model.StatePending:
		return "It is looked at again by itself; r looks now." + look
	case model.StateReady, model.StateDeleting:
	}
	return "Nothing needs doing." + look
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
		b.kv("next", seg{"It is dialled again " + orWord(prefixed("in ", until(m.at, h.Link.NextRetry)), "now") + "; c dials at once.", stText})
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
