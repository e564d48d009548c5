package ui

import (
	"fmt"
	"strings"
	"time"

	"virdeck/model"
)

// barCells is how long a bar of progress is in a window of w cells.
func barCells(w int) int {
	if w < 100 {
		return 6
	}
	return 12
}

// percent is how far a step has come, 0 to 100; -1 where it is not counted. What
// a host says of itself is not believed to make sense.
func percent(p model.Progress) int {
	if p.Total <= 0 {
		return -1
	}
	return int(float64(min(max(p.Done, 0), p.Total)) / float64(p.Total) * 100)
}

// bar draws a percentage on w cells, in signs that differ without colour.
func (g glyphs) bar(pct, w int) string {
	full := min(max(pct, 0), 100) * w / 100
	return strings.Repeat(g.full, full) + strings.Repeat(g.empty, w-full)
}

// amount writes how many bytes of how many, in one unit of three figures or so.
func amount(done, total int64) string {
	done = max(done, 0)
	switch {
	case total >= 10_000_000_000:
		return fmt.Sprintf("%.1f/%.1f GB", float64(done)/1e9, float64(total)/1e9)
	case total >= 1_000_000:
		return fmt.Sprintf("%d/%d MB", done/1_000_000, total/1_000_000)
	default:
		return fmt.Sprintf("%d/%d kB", done/1000, total/1000)
	}
}

// stepWords says in words how far a write has come: the step, and of one that is
// counted the share and the bytes.
func stepWords(p model.Progress) string {
	s := clean(p.Step)
	if n := percent(p); n >= 0 {
		s = strings.TrimSpace(fmt.Sprintf("%s %d%% %s", s, n, amount(p.Done, p.Total)))
	}
	return s
}

// progress is a write under way: since when, its step, and a bar where the step
// is counted.
func (m *Model) progress(p model.Progress, since time.Time) line {
	out := line{{orWord(age(m.at, since), "0s"), stDim}, {" " + clean(orWord(p.Step, "begun")), stBusy}}
	if n := percent(p); n >= 0 {
		out = append(out, seg{" ", stText}, seg{m.th.g.bar(n, barCells(m.w)), stBusy},
			seg{fmt.Sprintf(" %d%% ", n), stStrong}, seg{amount(p.Done, p.Total), stText})
	}
	return out
}

// budgetWords is a budget in short and in long, and whether it is used up.
func (m *Model) budgetWords(b model.BudgetView) (short, long string, out bool) {
	if b.Window <= 0 && b.Of <= 0 {
		return "-", "not known yet", false
	}
	short = fmt.Sprintf("%d/%d in %s", b.Used, b.Of, model.Length(b.Window))
	long = fmt.Sprintf("%d of %s used in %s", b.Used, count(b.Of, "replacement", "replacements"), model.Length(b.Window))
	if b.Of <= 0 {
		return short, "0: nothing is replaced unless an operator asks for it", true
	}
	if out = b.Used >= b.Of; !out {
		return short, long, false
	}
	in := orWord(m.until(b.Next), "a moment")
	return short + ", next " + in, long + ": used up, the next is free in " + in, true
}
