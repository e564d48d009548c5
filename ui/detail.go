package ui

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"virdeck/model"
)

// proxyDetail is the page of one proxy: all that is known of it, and from where.
func (m *Model) proxyDetail(p *model.ProxyView, h *model.HostView, w int) []line {
	lw, rw := m.columnsOf(w)
	left := &pageBuf{m: m, w: lw}
	m.detailState(left, p, h)
	m.detailManaged(left, p.Managed)
	left.head("ADDRESS SOURCES")
	left.matrix(p)
	m.detailHealth(left, p)
	right := &pageBuf{m: m, w: rw}
	right.conditions(p.Conditions)
	right.head("EVENTS")
	right.events(p.Events, 100)
	declared := right
	if lw != rw {
		declared = left
	} else {
		left.gap()
	}
	m.detailSpec(declared, p)
	return m.beside(left.out, right.out, lw, rw)
}

func (b *pageBuf) conditions(conds []model.Condition) {
	b.head("CONDITIONS")
	for _, c := range conds {
		st := stText
		if c.Status == model.CondUnknown {
			st = stWarn
		}
		b.wrapped(line{{"   " + pad(string(c.Type), 16) + pad(string(c.Status), 8), st}, {pad(age(b.m.at, c.Since), 5), stDim}},
			line{{clean(c.Reason), st}, {"  " + clean(c.Message), stDim}})
	}
	if len(conds) == 0 {
		b.add(text("   none yet", stDim))
	}
}

func (m *Model) detailState(b *pageBuf, p *model.ProxyView, h *model.HostView) {
	st := stateStyle(p.State)
	l := line{{m.th.g.sign(p.State) + " " + p.State.String(), st}, {" since " + age(m.at, p.Since), stDim}}
	for _, mk := range p.Marks {
		l = append(l, seg{"  " + string(rune(mk)) + " " + mk.Word(), stWarn})
	}
	b.kv("state", l...)
	b.kv("why", seg{orWord(reason(p), "no reason given"), stText})
	if p.ReadError != "" {
		b.kv("last read", seg{"failed since " + age(m.at, p.ReadFailed) + ": " + clean(p.ReadError), stWarn})
	}
	if h != nil && !h.External && h.Link.State != model.LinkUp {
		b.kv("link", append(m.linkCell(h), append(line{{"  ", stText}}, m.linkDetail(h)...)...)...)
	}
	ip := p.Spec.EffectiveHost(p.IP)
	switch {
	case p.Spec.Backing == model.BackingExternal:
		b.kv("address", seg{net.JoinHostPort(p.Spec.Address.String(), strconv.Itoa(int(p.Spec.Port))), stStrong}, seg{"  fixed by configuration", stDim})
	case ip.IsValid():
		b.kv("address", seg{net.JoinHostPort(ip.String(), strconv.Itoa(int(p.Spec.Port))), stStrong},
			seg{"  from " + p.IPSource.String() + ", confirmed " + age(m.at, p.IPAt) + " ago", stDim})
	default:
		b.kv("address", seg{"none known", stWarn})
	}
	if p.Candidate.IsValid() {
		b.kv("candidate", seg{p.Candidate.String(), stWarn}, seg{"  being proven beside it", stDim})
	}
	if p.Hold.Active {
		b.kv("held", seg{fmt.Sprintf("since %s: %s without an address, cleared after %d if probes fail", age(m.at, p.Hold.Since),
			count(p.Hold.Polls, "poll", "polls"), p.Hold.Of), stWarn}, seg{"  " + clean(p.Hold.Probe), stText})
	}
	if p.Spec.Backing != model.BackingExternal {
		note := clean(p.DomainNote)
		if note != "" {
			note = ": " + note
		}
		b.kv("domain", seg{clean(p.Spec.Domain), stText}, seg{"  " + p.Domain.String() + note, stText})
	}
	if op, ok := m.runningOp(p.Spec.Host, p.Spec.Name); ok {
		b.kv("operation", append(m.opWords(op), seg{" " + clean(op.Phase), stText})...)
	}
}

// matrix adds what each source last said.
func (b *pageBuf) matrix(p *model.ProxyView) {
	m := b.m
	b.add(text("   "+pad("SOURCE", 9)+pad("SAID", 15)+pad("AGE", 5)+pad("TOOK", 7)+"ADDRESSES, OR WHY NOT", stDim))
	for _, src := range model.Sources() {
		o := p.Outcome(src)
		won := " "
		if p.IP.IsValid() && p.IPSource == src && p.Spec.Backing != model.BackingExternal {
			won = m.th.g.arrow
		}
		word, st := kindWord(o.Kind)
		tk := ""
		if o.Took > 0 {
			tk = took(o.Took)
		}
		head := line{{" " + won + " ", stReady}, {pad(src.String(), 9), stStrong}, {pad(word, 15), st},
			{pad(age(m.at, o.At), 5), stDim}, {pad(tk, 7), stDim}}
		l := line{}
		for i, a := range o.Addresses {
			if i > 0 {
				l = append(l, seg{"  ", stText})
			}
			ast := stText
			if a == p.IP {
				ast = stReady
			}
			l = append(l, seg{a.String(), ast})
		}
		if o.Code != 0 {
			l = append(l, seg{"code " + strconv.Itoa(o.Code) + "  ", stWarn})
		}
		if o.Message != "" {
			if len(o.Addresses) > 0 {
				l = append(l, seg{"  ", stText})
			}
			l = append(l, seg{clean(o.Message), stText})
		}
		b.wrapped(head, l)
		if len(o.Ignored) > 0 {
			b.wrapped(line{{spaces(head.width()), stText}}, text("does not count: "+ignored(o.Ignored, m.th.g.ell), stDim))
		}
	}
}

// ignored lists addresses by the reason for which they do not count, on one line.
func ignored(igs []model.Ignored, ell string) string {
	by := map[string][]string{}
	var whys, out []string
	for _, ig := range igs {
		s := ig.Address.String()
		if ig.Address.Is6() && ig.Address.IsLinkLocalUnicast() {
			s = "fe80::" + ell
		}
		if _, ok := by[ig.Why]; !ok {
			whys = append(whys, ig.Why)
		}
		if !slices.Contains(by[ig.Why], s) {
			by[ig.Why] = append(by[ig.Why], s)
		}
	}
	for _, why := range whys {
		out = append(out, strings.Join(by[why], ", ")+" ("+clean(why)+")")
	}
	return strings.Join(out, ", ")
}

func kindWord(k model.OutcomeKind) (string, styleID) {
	switch k {
	case model.OutcomeNone:
		return "never asked", stDim
	case model.OutcomeAddresses:
		return "addresses", stReady
	case model.OutcomeEmpty:
		return "empty", stText
	case model.OutcomeFailed:
		return "failed", stWarn
	case model.OutcomeNotAsked:
		return "not asked", stWarn
	case model.OutcomeNotApplicable:
		return "not applicable", stDim
	}
	return k.String(), stText
}

func (m *Model) detailHealth(b *pageBuf, p *model.ProxyView) {
	b.head("HEALTH")
	h := p.Health
	in, st := "out", stWarn
	if h.InRotation {
		in, st = "in", stReady
	}
	b.kv("rotation", seg{in, st}, seg{" since " + orWord(age(m.at, h.Since), "the start"), stDim}, seg{"  " + clean(h.Reason), stText})
	if h.Waiting != "" {
		b.kv("waits", seg{clean(h.Waiting), stWarn})
	}
	if h.Last.Started.IsZero() {
		b.kv("last probe", seg{"none yet", stDim})
		return
	}
	l := line{{"passed", stReady}}
	if !h.Last.Passed {
		l = line{{"failed: " + clean(h.Last.Reason), stBad}, {"  fault of: " + h.Last.Culprit.String(), stText}}
	}
	l = append(l, seg{"  in " + took(h.Last.Took) + ", " + age(m.at, h.Last.Started) + " ago", stDim})
	if h.Last.Status != 0 {
		l = append(l, seg{"  status " + strconv.Itoa(h.Last.Status), stDim})
	}
	if h.Last.ExitIP.IsValid() {
		l = append(l, seg{"  exit " + h.Last.ExitIP.String(), stText})
	}
	b.kv("last probe", l...)
	if h.Last.Detail != "" && !h.Last.Passed {
		b.kv("detail", seg{clean(h.Last.Detail), stText})
	}
	b.kv("target", seg{clean(h.Last.Target), stDim})
	b.kv("in a row", seg{fmt.Sprintf("%s (rise %d), %s (fall %d)", count(h.Passes, "pass", "passes"), h.Rise,
		count(h.Fails, "fail", "fails"), h.Fall), stText})
	n := min(len(h.Samples), max(b.w-keyWidth-12, 0))
	if n == 0 {
		return
	}
	pct := ""
	if h.PassPercent >= 0 {
		pct = fmt.Sprintf("%d%% of %d passed", h.PassPercent, len(h.Samples))
	}
	b.kv("history", seg{pct, stText}, seg{"  bars: 25ms, doubling; " + m.th.g.miss + " failed", stDim})
	b.add(append(line{{spaces(keyWidth + 3), stText}}, m.spark(h.Samples, n)...))
}

func (m *Model) detailSpec(b *pageBuf, p *model.ProxyView) {
	b.head("DECLARED")
	s := p.Spec
	b.kv("backing", seg{s.Backing.String(), stText}, seg{"  pool " + clean(orWord(s.Pool, "(none)")), stText})
	b.kv("probe", seg{s.Probe.String() + " on port " + strconv.Itoa(int(s.Port)), stText},
		seg{"  credentials " + clean(s.Creds.String()), stText})
	if len(s.Labels) > 0 {
		var ls []string
		for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
			ls = append(ls, clean(k)+"="+clean(s.Labels[k]))
		}
		b.kv("labels", seg{strings.Join(ls, "  "), stText})
	}
	if p.UUID != "" {
		b.kv("uuid", seg{clean(p.UUID), stDim})
	}
	if p.Incarnation != "" {
		b.kv("incarnation", seg{clean(string(p.Incarnation)), stDim})
	}
	if !p.LastRead.IsZero() {
		next := ""
		if in := m.until(p.NextLook); in != "" {
			next = ", next in " + in
		}
		b.kv("looked at", seg{age(m.at, p.LastRead) + " ago" + next, stDim})
	}
}
