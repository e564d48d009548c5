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

// splitWords divides l after at most w cells, at a space if there is one in the
// second half of them, and drops that space.
func splitWords(l line, w int) (first, rest line) {
	first, rest = split(l, w)
	if len(rest) == 0 || strings.HasPrefix(rest[0].text, " ") {
		return first, unspace(rest)
	}
	p := first.plain()
	i := strings.LastIndexByte(p, ' ')
	if i < 0 || cells(p[:i]) < w/2 {
		return first, rest
	}
	first, rest = split(l, cells(p[:i+1]))
	return first, unspace(rest)
}

// wrapLines breaks lines so that none is wider than w cells.
func wrapLines(w int, lines ...line) []line {
	var out []line
	for _, rest := range lines {
		for {
			var first line
			first, rest = splitWords(rest, w)
			out = append(out, first)
			if rest.width() == 0 {
				break
			}
		}
	}
	return out
}

func unspace(l line) line {
	for len(l) > 0 {
		l[0].text = strings.TrimLeft(l[0].text, " ")
		if l[0].text != "" {
			return l
		}
		l = l[1:]
	}
	return nil
}

// skip drops the first n cells of l.
func skip(l line, n int) line {
	if n <= 0 {
		return l
	}
	_, rest := split(l, n)
	return rest
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
