package ui

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"virdeck/model"
)

// stateCell is sign and word at the left, mark letters and age at the right.
func (m *Model) stateCell(p *model.ProxyView, w int) line {
	st := stateStyle(p.State)
	var marks strings.Builder
	for _, mk := range p.Marks {
		marks.WriteRune(rune(mk))
	}
	tail := line{}
	if marks.Len() > 0 {
		tail = append(tail, seg{" " + marks.String(), stWarn})
	}
	if a := age(m.at, p.Since); a != "" && w >= 16 {
		width := 4
		if w >= 22 {
			width = 5
		}
		tail = append(tail, seg{spaces(width-len(a)) + a, stDim})
	}
	word := p.State.String()
	room := w - 2 - tail.width()
	if room < len(word) && tail.width() > 0 && room < 8 && len(tail) > 1 {
		tail = tail[:1]
		room = w - 2 - tail.width()
	}
	if room < len(word) && p.State == model.StateProvisioning {
		word = "provision."
	}
	word = cut(word, room, ".")
	out := line{{m.th.g.sign(p.State), st}, {" " + word, st}, {spaces(room - cells(word)), stText}}
	return append(out, tail...)
}

func (m *Model) addressCell(p *model.ProxyView, w int) line {
	ip := p.Spec.EffectiveHost(p.IP)
	if !ip.IsValid() {
		if p.Candidate.IsValid() {
			return text(firstFit(w, m.th.g.ell, "trying "+p.Candidate.String(), p.Candidate.String()), stWarn)
		}
		if l := m.writeCell(p, w); l != nil {
			return l
		}
		return text("-", stDim)
	}
	st := stText
	if p.Hold.Active {
		st = stWarn
	}
	s := ip.String()
	if p.Candidate.IsValid() && w >= len(s)+4 {
		return line{{s, st}, {m.th.g.arrow + shortAddr(p.Candidate, ip), stWarn}}
	}
	if len(s) > w {
		s = cutLeft(s, w, m.th.g.ell)
	}
	return text(s, st)
}

// shortAddr writes an address beside a chosen one: only what differs from it.
func shortAddr(a, chosen netip.Addr) string {
	if a.Is4() && chosen.Is4() {
		x, y := a.As4(), chosen.As4()
		if x[0] == y[0] && x[1] == y[1] && x[2] == y[2] {
			return "." + strconv.Itoa(int(x[3]))
		}
	}
	return a.String()
}

// sourceCell says in a word or two what a source last said.
func (m *Model) sourceCell(r row, src model.Source, w int) line {
	p := r.p
	o := p.Outcome(src)
	down := !r.h.External && r.h.Link.State != model.LinkUp
	old := ""
	if !o.At.IsZero() {
		old = " " + age(m.at, o.At)
	}
	switch o.Kind {
	case model.OutcomeNone:
		return text("-", stDim)
	case model.OutcomeNotApplicable:
		return text("n/a", stDim)
	case model.OutcomeEmpty:
		if m.fresh(o.At) && !down {
			old = ""
		}
		return text(firstFit(w, m.th.g.ell, "empty"+old, "empty"), stDim)
	case model.OutcomeNotAsked:
		if down {
			return text(firstFit(w, m.th.g.ell, "link down", "down"), stWarn)
		}
		return text(firstFit(w, m.th.g.ell, "not asked"+old, "not asked", "unasked", "n/ask"), stDim)
	case model.OutcomeFailed:
		if down && o.Code == 0 {
			return text(firstFit(w, m.th.g.ell, "link down", "down"), stWarn)
		}
		return text(firstFit(w, m.th.g.ell, failWords(o, old)...), stWarn)
	case model.OutcomeAddresses:
		if m.fresh(o.At) && !down {
			old = ""
		}
		return m.sourceAddresses(o, p, old, w)
	}
	return text(o.Kind.String(), stText)
}

// fresh reports whether an answer is as new as the polling promises.
func (m *Model) fresh(t time.Time) bool {
	limit := m.snap.Timing.AddressRefresh * 3 / 2
	return limit <= 0 || m.at.Sub(t) <= limit
}

func (m *Model) sourceAddresses(o model.Outcome, p *model.ProxyView, old string, w int) line {
	if len(o.Addresses) == 0 {
		return text("empty", stDim)
	}
	more := ""
	if n := len(o.Addresses) - 1; n > 0 {
		more = fmt.Sprintf(" +%d", n)
	}
	if slices.Contains(o.Addresses, p.IP) {
		s := shortAddr(p.IP, p.IP)
		if p.IP.Is6() {
			s = "same"
		}
		st := stText
		if old != "" {
			st = stDim
		}
		return text(firstFit(w, m.th.g.ell, s+more+old, s+more, s), st)
	}
	return text(firstFit(w, m.th.g.ell, otherAddress(o.Addresses[0], p.IP, more, old)...), stWarn)
}

// otherAddress writes an address that is not the chosen one, longest first. Only a
// part that tells it apart stands for the whole.
func otherAddress(a, chosen netip.Addr, more, old string) []string {
	s := a.String()
	out := []string{s + more + old, s + more, s}
	last := "IPv6"
	if a.Is4() {
		last = "." + strconv.Itoa(int(a.As4()[3]))
	}
	switch short := shortAddr(a, chosen); {
	case !chosen.IsValid():
		out = append(out, last+more+old, last+more, last)
	case short != s:
		out = append(out, short+more, short)
	default:
		out = append(out, "other"+more, "other")
	}
	return out
}

// failWords gives the failure of a source, longest first.
func failWords(o model.Outcome, old string) []string {
	short := ""
	switch o.Code {
	case 0:
		short = clean(o.Message)
		if short == "" {
			short = "failed"
		}
		return []string{short + old, short}
	case 86:
		short = "not up"
	case 74:
		short = "no channel"
	case 55:
		short = "not running"
	case 68, 112:
		short = "timeout"
	case 113:
		short = "refused"
	case 29, 88:
		short = "denied"
	case 42:
		short = "no domain"
	case 43:
		short = "no network"
	default:
		short = clean(o.Message)
	}
	code := strconv.Itoa(o.Code)
	return []string{code + " " + short + old, code + " " + short, code + " " + firstWord(short), "err " + code, code}
}

func firstWord(s string) string {
	w, _, _ := strings.Cut(s, " ")
	return w
}

// probeCell is latency, history and share of passes, or why the last probe
// failed.
func (m *Model) probeCell(p *model.ProxyView, w int) line {
	h := p.Health
	if !p.Spec.EffectiveHost(p.IP).IsValid() {
		return text("-", stDim)
	}
	if h.Last.Started.IsZero() {
		return text(firstFit(w, m.th.g.ell, "not yet probed", "not yet"), stDim)
	}
	if !h.Last.Passed {
		st := stBad
		if !h.Last.Culprit.ProxysFault() {
			st = stWarn
		}
		return text(firstFit(w, m.th.g.ell, failedProbe(h.Last)...), st)
	}
	lat := took(h.Last.Took)
	out := line{{spaces(5-len(lat)) + lat, stText}}
	if w < 9 {
		return text(lat, stText)
	}
	pct := ""
	if h.PassPercent >= 0 {
		pct = fmt.Sprintf(" %3d%%", h.PassPercent)
	}
	bars := min(w-6-len(pct), 10)
	if bars < 3 {
		bars, pct = min(w-6, 10), ""
	}
	out = append(out, seg{" ", stText})
	out = append(out, m.spark(h.Samples, bars)...)
	st := stDim
	if h.PassPercent < 100 {
		st = stWarn
	}
	return append(out, seg{pct, st})
}

// failedProbe says why a probe failed, longest first: the reason as it came, and
// then its meaning.
func failedProbe(r model.ProbeResult) []string {
	reason := clean(orWord(r.Reason, r.Culprit.String()))
	low := strings.ToLower(r.Reason)
	code := ""
	if r.Status >= 400 {
		code = strconv.Itoa(r.Status)
	}
	silent := strings.Contains(low, "timeout") || strings.Contains(low, "timed out") || strings.Contains(low, "no answer")
	switch r.Culprit {
	case model.CulpritCredentials:
		return []string{reason, "407"}
	case model.CulpritHop:
		switch {
		case strings.Contains(low, "refused"):
			return []string{reason, "refused"}
		case silent:
			return []string{reason, "timeout"}
		case strings.Contains(low, "route"):
			return []string{reason, "no route"}
		}
		return []string{reason, "unreachable", "no hop"}
	case model.CulpritWayOut:
		switch {
		case code != "":
			return []string{reason, code}
		case silent:
			return []string{reason, "timeout"}
		case strings.Contains(low, "closed"), strings.Contains(low, "reset"):
			return []string{reason, "closed"}
		}
		return []string{reason, "no way out", "no exit"}
	case model.CulpritSlow:
		return []string{reason, "too slow", "slow"}
	case model.CulpritAnswer:
		return []string{reason, "not a proxy", "answer"}
	case model.CulpritUs, model.CulpritTarget:
		return []string{r.Culprit.String() + ": " + reason, r.Culprit.String()}
	case model.CulpritNone:
	}
	return []string{reason}
}

// spark draws the newest n samples, one cell each. The scale is fixed, so that
// rows can be compared.
func (m *Model) spark(samples []model.Sample, n int) line {
	if n <= 0 {
		return nil
	}
	if len(samples) > n {
		samples = samples[len(samples)-n:]
	}
	out := line{}
	if pad := n - len(samples); pad > 0 {
		out = append(out, seg{spaces(pad), stText})
	}
	for _, s := range samples {
		switch {
		case s.Passed:
			out = append(out, seg{m.th.g.bars[barOf(s.Took)], stReady})
		case s.Culprit.ProxysFault():
			out = append(out, seg{m.th.g.miss, stBad})
		default:
			out = append(out, seg{m.th.g.miss, stWarn})
		}
	}
	return out
}

// barOf doubles from bar to bar: 25ms, 50ms, ... 1.6s and more.
func barOf(d time.Duration) int {
	b := 0
	for limit := 25 * time.Millisecond; d > limit && b < 7; limit *= 2 {
		b++
	}
	return b
}

// rotationCell is in or out, and what is remarkable about it.
func (m *Model) rotationCell(p *model.ProxyView, w int) line {
	h := p.Health
	word, st := "out", stDim
	if h.InRotation {
		word, st = "in", stReady
	} else if !p.Spec.EffectiveHost(p.IP).IsValid() && p.State != model.StateDrained {
		word = "-"
	}
	out := line{{word, st}}
	if w < len(word)+4 {
		return out
	}
	if op, ok := m.runningOp(p.Spec.Host, p.Spec.Name); ok && w >= 8 {
		out[0].text = pad(word, 3) // whether it serves is never hidden
		out = append(out, seg{" ", stText})
		words := m.opWords(op)
		if len(words) > 1 && out.width()+words.width() > w {
			// Who asked, and since when, is on the page of operations.
			words = text(firstFit(w-out.width(), m.th.g.ell, words[0].text, op.Command.Verb.String()+" "+age(m.at, op.Created),
				op.Command.Verb.String(), "busy"), stBusy)
		}
		return append(out, words...)
	}
	hold := fmt.Sprintf("held %d/%d", p.Hold.Polls, p.Hold.Of)
	var notes []string
	switch {
	case p.Hold.Active:
		notes = []string{hold, "held"}
	case h.Waiting != "":
		notes = []string{"waits: " + clean(h.Waiting), "waits"}
	case h.InRotation && p.State == model.StateTransient:
		notes = []string{"kept"}
	case p.State == model.StateUnproven:
		notes = []string{fmt.Sprintf("passes %d/%d", h.Passes, h.Rise), fmt.Sprintf("%d/%d", h.Passes, h.Rise)}
	default:
		return out
	}
	if w >= 13 {
		word = pad(word, 3) // notes stand below each other where there is room
		out[0].text = word
	}
	room := w - len(word) - 1
	return append(out, seg{" " + firstFit(room, m.th.g.ell, notes...), stWarn})
}

// runningOp returns the newest operation on a proxy, or on the host itself when
// no proxy is given, that has not ended.
func (m *Model) runningOp(h model.HostName, p model.ProxyName) (model.Op, bool) {
	for _, o := range slices.Backward(m.snap.Ops) {
		if o.Command.Host == h && o.Command.Proxy == p && (o.State == model.OpQueued || o.State == model.OpRunning) {
			return o, true
		}
	}
	return model.Op{}, false
}

// opWords says what is being done, since when and by whom.
func (m *Model) opWords(o model.Op) line {
	s := o.Command.Verb.String() + " " + age(m.at, o.Created)
	if o.State == model.OpQueued {
		s += " queued"
	}
	out := line{{s, stBusy}}
	if o.Command.By != "" {
		out = append(out, seg{" " + clean(o.Command.By), stDim})
	}
	return out
}
