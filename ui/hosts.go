package ui

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"virdeck/model"
)

// Columns of the host table. The last ones make room for one text when a link
// is not up: why not, and when it is tried again.
const (
	hName = iota
	hLink
	hProxies
	hAgent
	hCalls
	hClock
	hDetail
)

func (m *Model) hostColumns() []col {
	name, proxies := 4, 8
	for _, r := range m.hostRows {
		name = max(name, cells(clean(string(r.h.Name))))
		proxies = max(proxies, m.hostCounts(r.sum).width())
	}
	name, proxies = min(name, 24), min(proxies, 30)
	return []col{
		hName:    {"HOST", min(name, 8), name, name, 99},
		hLink:    {"LINK", 8, 14, 14, 98},
		hProxies: {"PROXIES", min(proxies, 8), proxies, proxies, 97},
		hAgent:   {"AGENT", 5, 6, 8, 60},
		hCalls:   {"CALLS", 5, 5, 5, 50},
		hClock:   {"CLOCK", 5, 6, 6, 40},
		hDetail:  {"DETAIL", 6, 14, 200, 70},
	}
}

const hostPrefix = 3 // cursor and number

func (m *Model) hostHeader(w int) line {
	cols := m.hostColumns()
	gap := gapFor(w)
	lead := text(spaces(hostPrefix), stText)
	if m.focus == paneHosts {
		lead = line{{m.th.g.focus + spaces(hostPrefix-1), stTitle}}
	}
	l := m.assemble(lead, allot(cols, w-hostPrefix, gap), gap, titles(cols))
	if win := m.hosts.window(); win != "" {
		note := fmt.Sprintf("%s of %d ", win, len(m.hostRows))
		l = append(m.th.fit(l, w-len(note)), seg{note, stDim})
	}
	return l
}

func (m *Model) hostLine(i, w int, widths []int, gap int) line {
	r := m.hostRows[i]
	h := r.h
	mark := " "
	if i == m.hosts.at {
		mark = ">"
	}
	num := " "
	if r.num > 0 && r.num <= 9 {
		num = strconv.Itoa(r.num)
	}
	prefix := line{{mark, stStrong}, {num + " ", stDim}}
	if !r.gone.IsZero() {
		return append(prefix, seg{clean(string(h.Name)), stGone}, seg{"  gone " + age(m.now, r.gone) + " ago: no longer in the configuration", stDim})
	}
	cells3 := func(c, cw int) line {
		switch c {
		case hName:
			return text(clean(string(h.Name)), stStrong)
		case hLink:
			return m.linkCell(h)
		case hProxies:
			return m.hostCounts(r.sum)
		case hAgent:
			return agentSummary(r.sum, cw)
		case hCalls:
			st := stDim
			if h.Link.InFlight >= h.Link.Slots {
				st = stWarn
			}
			return text(fmt.Sprintf("%d/%d", h.Link.InFlight, h.Link.Slots), st)
		case hClock:
			return m.clockCell(h)
		}
		return whole(m.linkParts(h), cw)
	}
	if h.External || (h.Link.State == model.LinkUp && h.Misconfig == "") {
		if h.External {
			return m.assemble(prefix, only(widths, hProxies), gap, cells3)
		}
		return m.assemble(prefix, widths, gap, cells3)
	}
	head := m.assemble(prefix, only(widths, hProxies), gap, cells3)
	head = append(head, seg{spaces(gap), stText})
	return append(head, m.th.trim(m.linkDetail(h), w-head.width())...)
}

// only keeps the widths of the columns up to last.
func only(widths []int, last int) []int {
	return slices.Clone(widths[:last+1])
}

func (m *Model) linkCell(h *model.HostView) line {
	if h.External {
		return text("no link", stDim)
	}
	since := " " + age(m.at, h.Link.Since)
	if h.Link.Since.IsZero() {
		since = ""
	}
	switch h.Link.State {
	case model.LinkUp:
		switch {
		case h.Misconfig != "":
			return text("MISCONFIGURED", stBad)
		case h.Link.Suspect:
			return line{{"silent", stWarn}, {since, stDim}}
		}
		return line{{"up", stReady}, {since, stDim}}
	case model.LinkDown:
		return text("DOWN"+since, stBad)
	case model.LinkConnecting:
		return text("connecting"+since, stWarn)
	case model.LinkDraining:
		return text("draining"+since, stDim)
	}
	return text(h.Link.State.String(), stText)
}

// linkDetail is what there is to say beside the state: generation and round trip
// of a link that is up, else when it is dialled again and the last error as it
// came.
func (m *Model) linkDetail(h *model.HostView) line { return join("  ", m.linkParts(h)...) }

func (m *Model) linkParts(h *model.HostView) []line {
	l := h.Link
	var parts []line
	if op, ok := m.runningOp(h.Name, ""); ok {
		parts = append(parts, m.opWords(op))
	}
	if l.State == model.LinkUp {
		switch {
		case h.Misconfig != "":
			return append(parts, text(clean(h.Misconfig), stBad))
		case l.Suspect:
			parts = append(parts, text("silent: asking a second connection", stWarn))
		}
		gen := line{{fmt.Sprintf("gen %d", l.Generation), stDim}}
		if l.RoundTrip > 0 {
			gen = append(gen, seg{"  " + took(l.RoundTrip), stDim})
		}
		parts = append(parts, gen)
		if h.ARPBroken {
			parts = append(parts, text("ARP unreadable here", stWarn))
		}
		if n := len(h.Orphans); n > 0 {
			parts = append(parts, text(count(n, "orphan", "orphans"), stWarn))
		}
		if n := len(h.Undeclared); n > 0 {
			parts = append(parts, text(count(n, "undeclared domain", "undeclared domains"), stDim))
		}
		return parts
	}
	if l.Phase != "" {
		parts = append(parts, text(clean(l.Phase), stWarn))
	}
	if in := m.until(l.NextRetry); in != "" {
		parts = append(parts, text("retry "+in, stText))
	}
	if l.LastError != "" {
		parts = append(parts, text(clean(l.LastError), stBad))
	}
	return parts
}

// summary is what the tables say of the proxies of a host, counted once per
// snapshot and not once per frame.
type summary struct {
	states  model.Counts
	kept    int // transient and still in rotation
	agentOK int
	agents  int // agents that were asked, or should have been
}

func summarize(h *model.HostView) summary {
	s := summary{states: model.Counts{}}
	for _, p := range h.Proxies {
		s.states[p.State]++
		if p.State == model.StateTransient && p.Health.InRotation {
			s.kept++
		}
		switch p.Outcome(model.SourceAgent).Kind {
		case model.OutcomeAddresses, model.OutcomeEmpty:
			s.agentOK++
			s.agents++
		case model.OutcomeFailed, model.OutcomeNotAsked:
			s.agents++
		case model.OutcomeNone, model.OutcomeNotApplicable:
		}
	}
	return s
}

// whole joins as many parts as fit into w cells unharmed, the first one always.
func whole(parts []line, w int) line {
	var out line
	for i, p := range parts {
		if i > 0 && out.width()+2+p.width() > w {
			continue
		}
		out = join("  ", out, p)
	}
	return out
}

// hostCounts is the number of proxies by state, those that serve first.
func (m *Model) hostCounts(s summary) line {
	var out line
	for _, st := range slices.Backward(model.States()) {
		n := s.states[st]
		if n == 0 {
			continue
		}
		if len(out) > 0 {
			out = append(out, seg{" ", stText})
		}
		out = append(out, seg{fmt.Sprintf("%s %d", m.th.g.sign(st), n), stateStyle(st)})
		if st == model.StateTransient && s.kept == n {
			out = append(out, seg{" kept", stDim})
		}
	}
	if len(out) == 0 {
		return text("none", stDim)
	}
	return out
}

// agentSummary says how many agents answered when last asked.
func agentSummary(s summary, w int) line {
	switch {
	case s.agents == 0:
		return text("-", stDim)
	case s.agentOK == s.agents:
		return text("ok", stReady)
	}
	return text(firstFit(w, "", fmt.Sprintf("%d/%d ok", s.agentOK, s.agents), fmt.Sprintf("%d/%d", s.agentOK, s.agents)), stWarn)
}

func (m *Model) clockCell(h *model.HostView) line {
	if !h.Link.ClockKnown {
		return text("-", stDim)
	}
	diff, err := h.Link.ClockDiff, h.Link.ClockError
	if err > 0 && diff.Abs() <= err {
		return text(fmt.Sprintf("%s%.0fs", m.th.g.about, err.Seconds()), stDim) // right, as far as can be told
	}
	st := stDim
	if diff.Abs()-err >= 2*time.Second {
		st = stWarn
	}
	return text(offset(diff), st)
}
