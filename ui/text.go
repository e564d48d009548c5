package ui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Bounds on texts from outside: a megabyte of error message must not make a
// frame slow, nor a heap of combining marks draw over its neighbours.
const (
	maxOutside   = 8 << 10 // bytes
	maxCombining = 2       // marks on one character
)

// clean makes a text from outside safe to draw on one line. It strips what can
// steer a terminal or disguise a text (C0, C1, ESC, DEL, bidi controls and other
// invisible format characters, variation selectors), turns line breaks and tabs
// into spaces, and replaces bad UTF-8 by U+FFFD. Everything that came from a
// host, a guest, a client, a configuration or a log goes through it.
func clean(s string) string {
	if len(s) > maxOutside {
		s = s[:maxOutside]
	}
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	combining := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			b.WriteByte(' ')
			combining = 0
		case r == utf8.RuneError && n <= 1:
			b.WriteRune(utf8.RuneError)
			combining = 0
		case invisible(r):
		case unicode.In(r, unicode.Mn, unicode.Me):
			if combining++; combining <= maxCombining {
				b.WriteRune(r)
			}
		default:
			combining = 0
			b.WriteRune(r)
		}
	}
	return b.String()
}

func invisible(r rune) bool {
	switch {
	case unicode.IsControl(r): // C0, DEL, C1
		return true
	case unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs): // bidi, zero width, tags, private use
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef: // variation selectors change widths
		return true
	case r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0: // fillers: letters that show nothing
		return true
	}
	return false
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// cells returns the width of a clean text in terminal cells.
func cells(s string) int {
	if isPlain(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// cut shortens a clean text to at most w cells, with tail where it was cut.
func cut(s string, w int, tail string) string {
	if w <= 0 {
		return ""
	}
	if cells(s) <= w {
		return s
	}
	if w <= cells(tail) {
		return ansi.Truncate(s, w, "")
	}
	return ansi.Truncate(s, w, tail)
}

// cutLeft shortens a clean text to at most w cells and keeps its end.
func cutLeft(s string, w int, tail string) string {
	n := cells(s)
	if w <= 0 {
		return ""
	}
	if n <= w {
		return s
	}
	t := cells(tail)
	if w <= t {
		return from(s, n-w)
	}
	return tail + from(s, n-w+t)
}

// upTo returns the first n cells of s, which may hold sequences, and from what
// stands behind them. A wide character that the edge cuts in two is a blank on
// either side: ansi leaves it out on the left, and keeps it whole on the right.
func upTo(s string, n int) string {
	out := ansi.Truncate(s, n, "")
	if w := ansi.StringWidth(out); w < n && w < ansi.StringWidth(s) {
		return ansi.Truncate(s, n, " ")
	}
	return out
}

func from(s string, n int) string {
	rest := ansi.StringWidth(s) - n
	out := ansi.TruncateLeft(s, n, "")
	switch {
	case rest <= 0:
		return ""
	case ansi.StringWidth(out) == rest:
		return out
	case rest == 1: // nothing follows that the blank could stand before
		return " "
	}
	return ansi.TruncateLeft(s, n+1, " ")
}

// firstFit returns the first text that fits into w cells, else the last one cut.
func firstFit(w int, tail string, texts ...string) string {
	for _, s := range texts {
		if cells(s) <= w {
			return s
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return cut(texts[len(texts)-1], w, tail)
}

func spaces(n int) string { return strings.Repeat(" ", max(n, 0)) }

// lessNatural orders names as people do: p-2 before p-10.
func lessNatural(a, b string) bool {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			na, nb := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if len(na) != len(nb) {
				return len(na) < len(nb)
			}
			if na != nb {
				return na < nb
			}
			if da != db {
				return da < db
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return a[0] < b[0]
		}
		a, b = a[1:], b[1:]
	}
	return len(a) < len(b)
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
