package ui

import (
	"slices"
	"strings"
)

// evidence returns the items of a record's evidence, which the ring keeps as one
// text with a dot between two of them.
func evidence(text string) []string { return distinct(strings.Split(text, " · ")) }

// distinct drops items that are empty or say what the one before said.
func distinct(items []string) []string {
	out := make([]string, 0, len(items))
	for _, s := range items {
		if s = strings.TrimSpace(s); s != "" && (len(out) == 0 || out[len(out)-1] != s) {
			out = append(out, s)
		}
	}
	return slices.Clip(out)
}
