package ui

import (
	"slices"

	"virdeck/model"
)

// opsPage lists the standing notices and what operators have asked for, newest
// first, from every session.
func (m *Model) opsPage(w int) []line {
	b := &pageBuf{m: m, w: w}
	h := m.snap.Health
	b.head("WITNESSES")
	b.kv("control", seg{h.Control.String(), stText}, seg{"  " + clean(h.ControlNote), stDim})
	switch {
	case h.Frozen:
		b.kv("rotation", seg{"frozen since " + age(m.at, h.FrozenSince) + ": " + clean(h.FrozenWhy), stBad})
	case h.BrakeOn:
		b.kv("rotation", seg{"braked since " + age(m.at, h.BrakeSince) + ": " + clean(h.BrakeNote), stWarn})
	default:
		b.kv("rotation", seg{"moves freely", stText})
	}
	b.head("NOTICES")
	if len(m.snap.Notices) == 0 {
		b.add(text("   none", stDim))
	}
	for _, n := range m.snap.Notices {
		st := stText
		switch n.Level {
		case model.NoticeInfo:
		case model.NoticeWarn:
			st = stWarn
		case model.NoticeAlert:
			st = stBad
		}
		b.wrapped(line{{"   " + pad(age(m.at, n.Since), 5), stDim}}, text(clean(n.Text), st))
		for _, l := range n.Plan {
			b.wrapped(line{{"         " + m.th.g.dot + " ", stDim}}, text(clean(l), stText))
		}
	}
	b.head("OPERATIONS")
	if len(m.snap.Ops) == 0 {
		b.add(text("   nobody has asked for anything", stDim))
	}
	for _, o := range slices.Backward(m.snap.Ops) {
		st, word := stText, clean(o.Result)
		switch o.State {
		case model.OpQueued, model.OpCanceled:
			st = stDim
		case model.OpRunning:
			st, word = stBusy, clean(o.Phase)
		case model.OpDone:
			st = stReady
		case model.OpFailed:
			st = stBad
		}
		lasted := age(m.at, o.Created)
		if !o.Ended.IsZero() {
			lasted = took(o.Ended.Sub(o.Created))
		}
		l := line{{pad(o.State.String(), 8), st}, {pad(lasted, 6), stDim}, {o.Command.Verb.String() + " ", stText},
			{clean(o.Command.Target()), stStrong}, {" by " + clean(orWord(o.Command.By, "?")), stDim}}
		if o.Joined > 0 {
			l = append(l, seg{" and " + count(o.Joined, "equal request", "equal requests"), stDim})
		}
		if word != "" {
			l = append(l, seg{"  " + word, stText})
		}
		b.wrapped(line{{"   " + b.clock(o.Created) + "  ", stDim}}, l)
	}
	return b.out
}
