package scenario

import (
	"strconv"
	"strings"
)

// place is where a key stands: in the nth table of an array, or at the top when
// the table is empty. With an empty key it is the table's header.
type place struct {
	table string
	n     int
	key   string
}

// findLines returns the line of every key and header of a good TOML document
// whose tables are arrays of tables at the top, which is all that a scenario
// has. The TOML library does not tell lines of keys. On any other document it
// may miss some, and never panics.
func findLines(text string) map[place]int {
	lines := map[place]int{}
	count := map[string]int{}
	at := place{}
	skip := newSkipper(text)
	for skip.line() {
		line, number := skip.text, skip.number
		if name, ok := strings.CutPrefix(line, "[["); ok {
			name, _, _ = strings.Cut(name, "]")
			name = unquote(name)
			at = place{table: name, n: count[name]}
			count[name]++
			lines[at] = number
			continue
		}
		if name, ok := strings.CutPrefix(line, "["); ok {
			name, _, _ = strings.Cut(name, "]")
			at = place{table: unquote(name)}
			lines[at] = number
			continue
		}
		if key, _, ok := strings.Cut(line, "="); ok {
			at := at
			at.key = unquote(key)
			lines[at] = number
		}
	}
	return lines
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if u, err := strconv.Unquote(s); err == nil {
		return u
	}
	return strings.Trim(s, "'")
}

// skipper goes through the lines on which a header or a key begins.
type skipper struct {
	rest   string
	next   int
	text   string // the line, without white space around it
	number int
}

func newSkipper(text string) *skipper {
	return &skipper{rest: strings.TrimPrefix(text, "\ufeff"), next: 1}
}

func (s *skipper) line() bool {
	for s.rest != "" {
		start := s.rest
		s.number = s.next
		s.pass()
		s.text = strings.TrimSpace(start[:len(start)-len(s.rest)])
		if s.text != "" && s.text[0] != '#' {
			return true
		}
	}
	return false
}

// pass takes one line and, where a value goes on over several, all of them.
func (s *skipper) pass() {
	depth := 0 // of brackets; a header's are closed on its line
	for s.rest != "" {
		switch c := s.rest[0]; c {
		case '#':
			if i := strings.IndexByte(s.rest, '\n'); i >= 0 {
				s.drop(i)
			} else {
				s.drop(len(s.rest))
			}
		case '"', '\'':
			s.quoted(c)
		case '[', '{':
			depth++
			s.drop(1)
		case ']', '}':
			depth--
			s.drop(1)
		case '\n':
			s.drop(1)
			if depth <= 0 {
				return
			}
		default:
			s.drop(1)
		}
	}
}

func (s *skipper) quoted(q byte) {
	end := string(q)
	if triple := strings.Repeat(end, 3); strings.HasPrefix(s.rest, triple) {
		end = triple
	}
	s.drop(len(end))
	for s.rest != "" && !strings.HasPrefix(s.rest, end) {
		if q == '"' && s.rest[0] == '\\' && len(s.rest) > 1 {
			s.drop(1)
		}
		s.drop(1)
	}
	s.drop(min(len(end), len(s.rest)))
}

func (s *skipper) drop(n int) {
	s.next += strings.Count(s.rest[:n], "\n")
	s.rest = s.rest[n:]
}
