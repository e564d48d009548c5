package ui

import "virdeck/model"

// Lines of the pane that shows what is under the cursor when a tall window has
// lines to spare: why it is in its state, without a key.
const (
	lookMin = 11
	lookMax = 16
	twoWide = 140 // from this width on, pages have two columns
)

func (m *Model) drawLook(c *canvas, rows int) {
	r, ok := m.current()
	if !ok {
		c.rule(text("nothing is selected", stDim))
		for range rows - 1 {
			c.add(nil, plain)
		}
		return
	}
	c.rule(line{{clean(r.key()) + " / why", stStrong}}, text("enter shows all", stDim))
	lines := m.lookLines(r.p, r.h)
	for i := range rows - 1 {
		if i < len(lines) {
			c.add(lines[i], plain)
		} else {
			c.add(nil, plain)
		}
	}
}

func (m *Model) lookLines(p *model.ProxyView, h *model.HostView) []line {
	lw, rw := m.columnsOf(m.w)
	left := &pageBuf{m: m, w: lw}
	m.detailState(left, p, h)
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
