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

// maxDepth is far deeper than anything in a scenario lies: what the TOML library
// reads goes as deep as the file does, and a stack does not.
const maxDepth = 16

// tooDeep returns the first line with something nested deeper than maxDepth, by
// brackets or by dots; 0: there is none. It is right for every document up to
// its first mistake, where the TOML library stops too.
func tooDeep(text string) int {
	skip := newSkipper(text)
	for skip.line() {
		if skip.deep > 0 {
			return skip.deep
		}
	}
	return skip.deep
}

// skipper goes through the lines on which a header or a key begins.
type skipper struct {
	rest   string
	next   int
	text   string // the line, without white space around it
	number int
	deep   int // the first line with something nested too deep; 0: none
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
	depth, dots := 0, 0 // of brackets, a header's are closed on its line; of one key
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
			dots = 0
			s.drop(1)
		case ']', '}':
			depth--
			s.drop(1)
		case '\n':
			s.drop(1)
			if depth <= 0 {
				return
			}
		case '.':
			dots++
			s.drop(1)
		case '=', ',':
			dots = 0
			s.drop(1)
		default:
			s.drop(1)
		}
		if s.deep == 0 && max(depth, dots) > maxDepth {
			s.deep = s.next
		}
	}
}

// quoted takes a text with its quotes; one in single quotes ends with its line,
// if not before, and one in three may have two more at its end.
func (s *skipper) quoted(q byte) {
	end, triple := string(q), strings.Repeat(string(q), 3)
	if strings.HasPrefix(s.rest, triple) {
		end = triple
	}
	s.drop(len(end))
	for s.rest != "" && !strings.HasPrefix(s.rest, end) {
		if s.rest[0] == '\n' && end != triple {
			return
		}
		if q == '"' && s.rest[0] == '\\' && len(s.rest) > 1 && s.rest[1] != '\n' {
			s.drop(1)
		}
		s.drop(1)
	}
	s.drop(min(len(end), len(s.rest)))
	for n := 0; n < 2 && end == triple && strings.HasPrefix(s.rest, string(q)); n++ {
		s.drop(1)
	}
}

func (s *skipper) drop(n int) {
	s.next += strings.Count(s.rest[:n], "\n")
	s.rest = s.rest[n:]
}
