package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// The TOML library tells the line of a syntax error only, not of a key. So the
// keys' lines are found here, by a walk over the document. On one that is not
// good TOML the walk may stop early, never panic. It comes before the library,
// since it is bounded and the library is not: nesting costs the library stack
// without limit, and a long dotted key time that grows with its square.

// maxDepth is far deeper than any setting lies.
const maxDepth = 16

// keyPath is a key from the top of the document down; elements of arrays
// (of tables too) stand in it as "[0]", "[1]" and so on.
type keyPath []string

func (p keyPath) with(last ...string) keyPath {
	return append(slices.Clip(p), last...)
}

func (p keyPath) id() string { return strings.Join(p, "\x00") }

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// positions knows the line where each key stands, from 1.
type positions struct {
	line map[string]int
	keys []keyPath // as they stand in the document, without elements of arrays
	deep int       // the first line with something nested deeper than maxDepth; 0: none
}

// of is the line of the key, or of the nearest one above it that has a line; 0
// for the document.
func (p *positions) of(path keyPath) int {
	for n := len(path); n > 0; n-- {
		if l, ok := p.line[path[:n].id()]; ok {
			return l
		}
	}
	return 0
}

// scan finds the keys of a good TOML document, as far as it is not too deep.
func scan(doc string) *positions {
	s := scanner{doc: doc, at: 1, pos: &positions{line: map[string]int{}}, arrays: map[string]int{}}
	s.document()
	return s.pos
}

type scanner struct {
	doc    string // what is left
	at     int    // its first line
	pos    *positions
	arrays map[string]int // tables so far in each array of tables
}

func (s *scanner) document() {
	var table keyPath
	for s.skip(" \t\r\n"); s.doc != "" && s.pos.deep == 0; s.skip(" \t\r\n") {
		before := len(s.doc)
		if s.take("[[") {
			table = s.header(true)
		} else if s.take("[") {
			table = s.header(false)
		} else {
			s.pair(table)
		}
		if len(s.doc) == before { // not TOML: do not stand still
			return
		}
	}
}

// header reads a table's name, after its opening brackets.
func (s *scanner) header(array bool) keyPath {
	line, names := s.at, s.name()
	if s.pos.deep > 0 {
		return nil
	}
	var path keyPath
	for i, n := range names {
		path = path.with(n)
		count, isArray := s.arrays[path.id()]
		switch {
		case i == len(names)-1 && array:
			s.arrays[path.id()] = count + 1
			path = path.with(index(count))
		case isArray: // [a.b] below [[a]] belongs to the last a
			path = path.with(index(count - 1))
		}
	}
	s.add(path, line)
	s.take("]")
	s.take("]")
	return path
}

// pair reads KEY = VALUE.
func (s *scanner) pair(table keyPath) {
	line := s.at
	path := table.with(s.name()...)
	s.skip(" \t")
	if s.pos.deep == 0 && s.take("=") {
		s.add(path, line)
		s.skip(" \t")
		s.value(path)
	}
}

func (s *scanner) add(path keyPath, line int) {
	s.pos.line[path.id()] = line
	for n := len(path) - 1; n > 0; n-- { // what it stands in begins here, if not before
		if _, ok := s.pos.line[path[:n].id()]; ok {
			break
		}
		s.pos.line[path[:n].id()] = line
	}
	s.pos.keys = append(s.pos.keys, path)
}

func (s *scanner) value(path keyPath) {
	switch {
	case len(path) > maxDepth:
		s.pos.deep = s.at
	case s.doc == "":
	case s.take("["):
		for i := 0; ; i++ {
			s.skip(" \t\r\n,")
			if s.doc == "" || s.pos.deep > 0 || s.take("]") {
				return
			}
			before := len(s.doc)
			element := path.with(index(i))
			s.pos.line[element.id()] = s.at
			s.value(element)
			if len(s.doc) == before {
				return
			}
		}
	case s.take("{"):
		for {
			s.skip(" \t\r\n,")
			if s.doc == "" || s.pos.deep > 0 || s.take("}") {
				return
			}
			before := len(s.doc)
			s.pair(path)
			if len(s.doc) == before {
				return
			}
		}
	case s.doc[0] == '"' || s.doc[0] == '\'':
		s.text()
	default:
		s.advance(until(s.doc, ",]}#\r\n"))
	}
}

// name reads a dotted key.
func (s *scanner) name() []string {
	var names []string
	for {
		s.skip(" \t")
		if s.doc != "" && (s.doc[0] == '"' || s.doc[0] == '\'') {
			names = append(names, unquote(s.text()))
		} else {
			n := until(s.doc, " \t.=]\r\n#")
			names = append(names, s.doc[:n])
			s.advance(n)
		}
		s.skip(" \t")
		if !s.take(".") {
			return names
		}
		if len(names) == maxDepth {
			s.pos.deep = s.at
			return nil
		}
	}
}

// text reads a string of any of the four kinds, with its quotes.
func (s *scanner) text() string {
	q := s.doc[:1]
	if triple := strings.Repeat(q, 3); strings.HasPrefix(s.doc, triple) {
		q = triple
	}
	n := len(q)
	for n < len(s.doc) && !strings.HasPrefix(s.doc[n:], q) {
		if s.doc[n] == '\\' && q[0] == '"' {
			n++
		}
		n++
	}
	n = min(n+len(q), len(s.doc))
	for len(q) == 3 && n < len(s.doc) && s.doc[n] == q[0] { // """a quote at the end""""
		n++
	}
	t := s.doc[:n]
	s.advance(n)
	return t
}

// unquote is the value of a quoted key, or the key as it stands.
func unquote(quoted string) string {
	var v struct{ K string }
	if _, err := toml.Decode("K = "+quoted, &v); err != nil {
		return quoted
	}
	return v.K
}

// skip passes over the characters, and over comments where newlines are among
// them.
func (s *scanner) skip(chars string) {
	for s.doc != "" {
		switch {
		case strings.IndexByte(chars, s.doc[0]) >= 0:
			s.advance(1)
		case s.doc[0] == '#' && strings.Contains(chars, "\n"):
			s.advance(until(s.doc, "\n"))
		case strings.HasPrefix(s.doc, "\ufeff"):
			s.advance(len("\ufeff"))
		default:
			return
		}
	}
}

func (s *scanner) take(prefix string) bool {
	if !strings.HasPrefix(s.doc, prefix) {
		return false
	}
	s.advance(len(prefix))
	return true
}

func (s *scanner) advance(n int) {
	s.at += strings.Count(s.doc[:n], "\n")
	s.doc = s.doc[n:]
}

func until(s, chars string) int {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return i
	}
	return len(s)
}
