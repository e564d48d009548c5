package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong in a file: one line of text.
type Problem struct {
	File string
	Line int    // from 1; 0 when no line is at fault
	Key  string // as in `step 3: whom`; empty for the file
	Msg  string // what is wrong, and what is allowed
}

// Error is FILE:LINE: KEY: MSG.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		_, _ = fmt.Fprintf(&b, ":%d", p.Line) // a builder never fails
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Msg)
	return b.String()
}

// Problems are all problems of a file, by line.
type Problems []Problem

// Error is one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return ps
}

// unknown says that a word is not among those allowed, and which was meant.
func unknown(what, got string, allowed []string) string {
	if near := nearest(got, allowed); near != "" {
		return fmt.Sprintf("unknown %s %q; did you mean %q?", what, got, near)
	}
	const most = 12
	list := strings.Join(allowed[:min(most, len(allowed))], ", ")
	if more := len(allowed) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	if list == "" {
		list = "none"
	}
	return fmt.Sprintf("unknown %s %q; allowed: %s", what, got, list)
}

// nearest is the word that was most likely meant, or "" when none is near.
func nearest(got string, allowed []string) string {
	best, bestAt := "", min(3, len(got)/2+1)
	for _, a := range allowed {
		if d := edits(strings.ToLower(got), strings.ToLower(a)); d < bestAt {
			best, bestAt = a, d
		}
	}
	return best
}

// edits counts the bytes to add, drop or change that make a into b.
func edits(a, b string) int {
	if len(a) > 64 || len(b) > 64 { // no word is so long
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
