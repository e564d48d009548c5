package controller

import (
	"context"
	"errors"
	"strings"

	"virdeck/provider"
)

// words puts a read's error into what an operator reads beside the proxy's own
// name: without the nouns that the row shows already, and for a dead link
// without the call that happened to find it dead.
func words(err error) string {
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		return "the read overran its budget"
	}
	if errors.Is(err, provider.ErrLinkDown) {
		if _, rest, ok := strings.Cut(text, provider.ErrLinkDown.Error()); ok {
			return provider.ErrLinkDown.Error() + rest
		}
	}
	for _, noun := range []string{"host ", "domain "} {
		if rest, ok := strings.CutPrefix(text, noun); ok {
			if _, after, ok := strings.Cut(rest, ": "); ok {
				text = after
			}
		}
	}
	return text
}

// writeWords puts a write's error into what an operator reads beside the host's
// and the proxy's own names: what was being done, and the host's own words.
func writeWords(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it took longer than it may: " + err.Error()
	}
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "host "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			return after
		}
	}
	return text
}

// join puts two parts of a sentence together; without a second one there is
// nothing between them.
func join(first, sep, second string) string {
	if first == "" || second == "" {
		return first + second
	}
	return first + sep + second
}

// brackets puts a remark into brackets, if there is one.
func brackets(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}
