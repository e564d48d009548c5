package ui

import (
	"fmt"
	"slices"
)

// list is a cursor and a window over rows that are known by name. A refresh
// keeps the cursor on its row and that row on its line of the screen, as far as
// the ends of the list allow.
type list struct {
	keys   []string
	want   string // what the operator chose
	sel    string // where the cursor is: want, or the nearest row while want is not listed
	at     int    // index of sel; -1 when the list is empty
	top    int    // index of the first visible row
	height int    // visible rows
}

// set gives the list new rows.
func (l *list) set(keys []string) {
	ln, was := l.at-l.top, l.at
	l.keys = keys
	at := slices.Index(keys, l.want)
	if at < 0 {
		at = slices.Index(keys, l.sel)
	}
	if at < 0 {
		at = min(max(was, 0), len(keys)-1)
	}
	l.at, l.top = at, at-max(ln, 0)
	l.sel = ""
	if at >= 0 {
		l.sel = keys[at]
		if l.want == "" {
			l.want = l.sel
		}
	}
	l.clamp()
}

// resize sets the number of visible rows.
func (l *list) resize(h int) {
	l.height = max(h, 0)
	l.clamp()
}

// pick puts the cursor on a row, or does nothing when it is not listed.
func (l *list) pick(key string) {
	if at := slices.Index(l.keys, key); at >= 0 {
		l.goTo(at)
	}
}

// goTo puts the cursor on the row with an index, or the nearest one.
func (l *list) goTo(at int) {
	if len(l.keys) == 0 {
		return
	}
	l.at = min(max(at, 0), len(l.keys)-1)
	l.sel = l.keys[l.at]
	l.want = l.sel
	l.clamp()
}

func (l *list) move(d int) { l.goTo(l.at + d) }

// window names the rows in sight, counted from 1; empty when all are.
func (l *list) window() string {
	from, to := l.visible()
	if to-from >= len(l.keys) {
		return ""
	}
	if to-from <= 1 {
		return fmt.Sprint(to)
	}
	return fmt.Sprintf("%d-%d", from+1, to)
}

// rise scrolls to the top, as far as the cursor stays in sight.
func (l *list) rise() {
	l.top = 0
	l.clamp()
}

// visible returns the range of rows in the window.
func (l *list) visible() (from, to int) {
	return l.top, min(l.top+l.height, len(l.keys))
}

func (l *list) clamp() {
	if l.height > 0 && l.at >= 0 {
		l.top = min(max(l.top, l.at-l.height+1), l.at)
	}
	l.top = min(max(l.top, 0), max(len(l.keys)-l.height, 0))
}
