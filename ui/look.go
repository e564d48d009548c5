package ui

import (
	"strings"

	"virdeck/model"
)

// Lines of the pane that shows what is under the cursor: why it is in its state,
// without a key. In a low window it has the reason and what can be done, in a tall
// one, with lines to spare, the sources and the last events too.
const (
	lookShort = 3
	lookMin   = 12
	lookMax   = 17
	twoWide   = 140 // from this width on, pages have two columns
)

func (m *Model) drawLook(c *canvas, rows int) {
	r, ok := m.current()
	var lines []line
	switch {
	case !ok:
		c.rule(text("nothing is selected", stDim))
	case rows < lookMin:
		c.rule(line{{clean(r.key()) + " / why", stStrong}}, text("e explains", stDim))
		lines = m.lookShort(r)
	default:
		c.rule(line{{clean(r.key()) + " / why", stStrong}}, text("enter shows all", stDim))
		lines = m.lookLines(r.p, r.h)
	}
	for i := range rows - 1 {
		if i < len(lines) {
			c.add(lines[i], plain)
		} else {
			c.add(nil, plain)
		}
	}
}

// lookShort is the reason and what can be done.
func (m *Model) lookShort(r row) []line {
	if !r.gone.IsZero() {
		return []line{text(" why   it is no longer declared", stDim)}
	}
	tale := m.story(r.p, r.h)
	return []line{
		{{" why   ", stDim}, {orWord(reason(r.p), tale.is), stText}},
		{{" next  ", stDim}, {sentences(tale.can, m.w-8), stText}},
	}
}

// sentences returns as many whole sentences of a text as fit into w cells, the
// first one always.
func sentences(s string, w int) string {
	out := ""
	for part := range strings.SplitSeq(s, ". ") {
		next := strings.TrimPrefix(out+". "+part, ". ")
		if out != "" && cells(next)+1 > w {
			return out + "."
		}
		out = next
	}
	return out
}

func (m *Model) lookLines(p *model.ProxyView, h *model.HostView) []line {
	lw, rw := m.columnsOf(m.w)
	left := &pageBuf{m: m, w: lw}
	m.detailState(left, p, h)
	left.kv("you can", seg{m.story(p, h).can, stText})
	left.matrix(p)
	right := &pageBuf{m: m, w: rw}
	right.events(p.Events, 4)
	return m.beside(left.out, right.out, lw, rw)
}

// columnsOf returns the widths of the columns of a page: two of them in a wide
// window, else one, told by an rw that is equal to lw.
func (m *Model) columnsOf(w int) (lw, rw int) {
	if w < twoWide {
		return w, w
	}
	return w * 48 / 100, w - w*48/100 - 1
}

// beside puts two columns next to each other, or below each other when there is
// only one.
func (m *Model) beside(left, right []line, lw, rw int) []line {
	if lw == rw {
		return append(left, right...)
	}
	out := make([]line, max(len(left), len(right)))
	for i := range out {
		if i < len(left) {
			out[i] = left[i]
		}
		if i < len(right) && len(right[i]) > 0 {
			out[i] = append(m.th.fit(out[i], lw), right[i]...)
		}
	}
	return out
}
