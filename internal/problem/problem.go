// Package problem is what is wrong with a user's file, in one line each: where,
// which setting, what is allowed, and what was probably meant. It is pure.
package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong, or suspicious, in a file: one line of text.
type Problem struct {
	// File is its name, as it was given; empty: it has none.
	File string
	// Line counts from 1; 0 when no line is at fault.
	Line int
	// Key says which setting, as in `proxy "p-01": port`; empty for the file.
	Key string
	// Msg says what is wrong and what is allowed.
	Msg string
}

// Error is the problem as one line: FILE:LINE: KEY: MSG.
func (p Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key)
		b.WriteString(": ")
	}
	b.WriteString(p.Msg)
	return b.String()
}

// Problems are all problems of one file, by line.
type Problems []Problem

// Error is one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Sorted orders problems by line; those of one line stay in the order found.
func Sorted(ps []Problem) Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return ps
}

// Listed joins what is allowed, and cuts a long list: a message is one line.
func Listed[S ~string](words []S) string {
	const most = 12
	var b strings.Builder
	for i, w := range words {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(words)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// Quoted is Listed with each word in quotes.
func Quoted[S ~string](words []S) string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = fmt.Sprintf("%q", string(w))
	}
	return Listed(q)
}

// Suggest is `; did you mean "x"?` with the word of allowed that got most
// likely was meant to be, or nothing when none is near.
func Suggest[S ~string](got string, allowed []S) string {
	const most = 200                       // to compare with; more would take its time
	best, bestAt := "", min(3, len(got)/2) // more letters wrong than right is no misspelling
	for _, a := range allowed[:min(most, len(allowed))] {
		if d := distance(strings.ToLower(got), strings.ToLower(string(a))); d <= bestAt && (best == "" || d < bestAt) {
			best, bestAt = string(a), d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is the number of letters to add, drop, change or swap with their
// neighbour that make a into b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if max(len(x), len(y)) > 64 { // no setting's name is that long
		return max(len(x), len(y))
	}
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row[0] = i + 1
		for j := range y {
			change := last[j]
			if x[i] != y[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
