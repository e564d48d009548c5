package scenario

import (
	"fmt"

	"virdeck/internal/problem"
)

// Problem is one thing wrong in a file: one line of text.
type Problem = problem.Problem

// Problems are all problems of a file, by line.
type Problems = problem.Problems

// unknown says that a word is not among those allowed, and which was meant.
func unknown(what, got string, allowed []string) string {
	text := fmt.Sprintf("unknown %s %q", what, got)
	if meant := problem.Suggest(got, allowed); meant != "" {
		return text + meant
	}
	list := problem.Listed(allowed)
	if list == "" {
		list = "none"
	}
	return text + "; allowed: " + list
}
