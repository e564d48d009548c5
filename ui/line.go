package ui

import (
	"slices"
	"strings"
)

// seg is a piece of clean text in one style.
type seg struct {
	text string
	st   styleID
}

// line is one line of the screen as pieces, not yet cut to a width. Cutting
// happens on plain text, before the styles go on.
type line []seg

func (l line) width() int {
	n := 0
	for _, s := range l {
		n += cells(s.text)
	}
	return n
}

func (l line) plain() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// text returns a line of one piece.
func text(s string, st styleID) line { return line{{s, st}} }

// trim returns l in at most w cells, with an ellipsis where something was lost.
func (t *theme) trim(l line, w int) line {
	if l.width() <= w {
		return l
	}
	out := make(line, 0, len(l))
	left := w - 1 // one cell for the ellipsis
	for i, s := range l {
		n := cells(s.text)
		if n <= left {
			out = append(out, s)
			left -= n
			continue
		}
		if strings.TrimSpace(l[i:].plain()) == "" {
			return append(out, seg{spaces(left + 1), s.st})
		}
		if left < 0 {
			return nil
		}
		head := cut(s.text, left, "")
		return append(out, seg{head + t.g.ell + spaces(left-cells(head)), s.st})
	}
	return out
}

// fit returns l cut or padded to exactly w cells.
func (t *theme) fit(l line, w int) line {
	if w <= 0 {
		return nil
	}
	out := t.trim(l, w)
	if pad := w - out.width(); pad > 0 {
		out = append(slices.Clip(out), seg{spaces(pad), stText})
	}
	return out
}

// draw appends l to b, in at most w cells; on a selected ground exactly w.
func (t *theme) draw(b *strings.Builder, l line, w int, v variant) {
	if v == selected {
		l = t.fit(l, w)
	} else {
		l = t.trim(l, w)
	}
	for _, s := range l {
		if s.text == "" {
			continue
		}
		q := t.styles[v][s.st]
		b.WriteString(q.open)
		b.WriteString(s.text)
		b.WriteString(q.end)
	}
}

// spread puts left and right at the two ends of w cells. The right end goes when
// both do not fit.
func spread(left, right line, w int) line {
	gap := w - left.width() - right.width()
	if gap < 1 {
		return left
	}
	out := append(line{}, left...)
	out = append(out, seg{spaces(gap), stText})
	return append(out, right...)
}

// join appends lines with a separator between those that are not empty.
func join(sep string, parts ...line) line {
	var out line
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		if len(out) > 0 {
			out = append(out, seg{sep, stDim})
		}
		out = append(out, p...)
	}
	return out
}
