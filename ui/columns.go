package ui

// col is a column of a table with the widths that it can use. Columns with a
// higher prio stay longer and grow first.
type col struct {
	title          string
	min, want, max int
	prio           int
}

// allot divides w cells among columns with gap cells between them: it drops
// those of the lowest prio until the rest fits, then grows the others to what
// they want and after that to what they can use, by prio. A dropped column has
// width 0.
func allot(cols []col, w, gap int) []int {
	out := make([]int, len(cols))
	used := -gap
	for i, c := range cols {
		out[i] = c.min
		used += c.min + gap
	}
	for used > w {
		drop := -1
		for i, c := range cols {
			if out[i] > 0 && (drop < 0 || c.prio < cols[drop].prio) {
				drop = i
			}
		}
		if drop < 0 {
			return out
		}
		used -= out[drop] + gap
		out[drop] = 0
	}
	grow := func(to func(col) int) {
		for prio := 100; prio > 0 && used < w; prio-- {
			for i, c := range cols {
				if c.prio != prio || out[i] == 0 {
					continue
				}
				more := min(to(c)-out[i], w-used)
				if more > 0 {
					out[i] += more
					used += more
				}
			}
		}
	}
	grow(func(c col) int { return c.want })
	grow(func(c col) int { return c.max })
	return out
}

// gapFor returns the cells between columns.
func gapFor(w int) int {
	if w >= 110 {
		return 2
	}
	return 1
}

// assemble joins cells of the given widths; a zero width is left out.
func (m *Model) assemble(prefix line, widths []int, gap int, cell func(i, w int) line) line {
	out := append(line{}, prefix...)
	first := true
	for i, w := range widths {
		if w == 0 {
			continue
		}
		if !first {
			out = append(out, seg{spaces(gap), stText})
		}
		first = false
		out = append(out, m.th.fit(cell(i, w), w)...)
	}
	return out
}

func titles(cols []col) func(i, w int) line {
	return func(i, w int) line {
		if cols[i].title == "ROTATION" && w < len("ROTATION") {
			return text("ROT", stDim)
		}
		return text(cols[i].title, stDim)
	}
}
