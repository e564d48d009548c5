package ui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// A wide character that an edge cuts in two is a blank on the side that it was
// seen on: no line grows by it, and nothing beside it moves.
func TestEdgesCutWideCharacters(t *testing.T) {
	const under = "a界\x1b[7mb界\x1b[m界cd界界e"
	whole := ansi.Strip(under)
	for n := range ansi.StringWidth(under) + 2 {
		left, right := upTo(under, n), from(under, n)
		wantLeft, wantRight := "", ""
		at := 0
		for _, r := range whole {
			w := ansi.StringWidth(string(r))
			switch {
			case at+w <= n:
				wantLeft += string(r)
			case at >= n:
				wantRight += string(r)
			default:
				wantLeft, wantRight = wantLeft+" ", wantRight+" "
			}
			at += w
		}
		if got := ansi.Strip(left); got != wantLeft {
			t.Errorf("up to %d: %q, want %q", n, got, wantLeft)
		}
		if got := ansi.Strip(right); got != wantRight {
			t.Errorf("from %d: %q, want %q", n, got, wantRight)
		}
	}
}

func TestCutLeftFits(t *testing.T) {
	for w := range 12 {
		for _, tail := range []string{"", "…", "..."} {
			if got := cutLeft("a界b界界c界", w, tail); cells(got) > w {
				t.Errorf("%d cells with %q: %q", w, tail, got)
			}
		}
	}
}

// A box over lines of wide characters leaves each of them as wide as it was.
func TestOverlayOverWideCharacters(t *testing.T) {
	for shift := range 2 {
		c := newConsole(t, fleet(), 41-shift, 10)
		cv := &canvas{m: c.Model}
		cv.add(text(spaces(shift)+strings.Repeat("界", 20-shift)+"x", stText), plain)
		want := ansi.StringWidth(cv.lines[0])
		cv.overlay([]line{text("|box|", stText)})
		if got := ansi.StringWidth(cv.lines[0]); got != want {
			t.Errorf("shifted by %d: %d cells, want %d: %q", shift, got, want, ansi.Strip(cv.lines[0]))
		}
	}
}
