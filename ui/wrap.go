package ui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// split divides l after at most w cells, between characters.
func split(l line, w int) (first, rest line) {
	for i, s := range l {
		n := cells(s.text)
		if n <= w {
			first = append(first, s)
			w -= n
			continue
		}
		head := cut(s.text, w, "")
		if head != "" {
			first = append(first, seg{head, s.st})
		} else if len(first) == 0 {
			// A character wider than the line: drop it rather than never end.
			head = ansi.Truncate(s.text, 2, "")
		}
		if tail := s.text[len(head):]; tail != "" {
			rest = append(rest, seg{tail, s.st})
		}
		return first, append(rest, l[i+1:]...)
	}
	return first, nil
}

// skip drops the first n cells of l.
func skip(l line, n int) line {
	if n <= 0 {
		return l
	}
	_, rest := split(l, n)
	return rest
}

// wrapText breaks a clean text into lines of at most w cells, at spaces where
// there are some.
func wrapText(s string, w int) []string {
	if w <= 0 {
		return nil
	}
	return strings.Split(ansi.Wrap(s, w, " "), "\n")
}

// highlight marks every occurrence of a lower-case text within a piece.
func highlight(l line, lower string) line {
	var out line
	for _, s := range l {
		low := strings.ToLower(s.text)
		if len(low) != len(s.text) { // a letter whose case changes its length: no marking rather than a wrong one
			out = append(out, s)
			continue
		}
		at := 0
		for {
			i := strings.Index(low[at:], lower)
			if i < 0 {
				break
			}
			out = append(out, seg{s.text[at : at+i], s.st}, seg{s.text[at+i : at+i+len(lower)], stMatch})
			at += i + len(lower)
		}
		out = append(out, seg{s.text[at:], s.st})
	}
	return out
}
