package ui

import (
	"net/url"
	"slices"
	"time"

	"virdeck/model"
)

// pageBuf builds the lines of a page.
type pageBuf struct {
	m   *Model
	w   int
	out []line
}

const keyWidth = 14 // of the names at the left of a page

func (b *pageBuf) add(l line) { b.out = append(b.out, l) }
func (b *pageBuf) gap()       { b.out = append(b.out, nil) }

func (b *pageBuf) head(s string) {
	if len(b.out) > 0 {
		b.gap()
	}
	b.add(line{{" " + s, stTitle}})
}

// kv adds a name and a value; a value that is too long goes on below itself.
func (b *pageBuf) kv(k string, parts ...seg) {
	var l line
	for _, p := range parts {
		if p.text != "" {
			l = append(l, p)
		}
	}
	b.wrapped(line{{"   " + k + spaces(keyWidth-cells(k)), stDim}}, l)
}

// wrapped adds a line after head, broken at spaces where it can be.
func (b *pageBuf) wrapped(head, l line) {
	room := max(b.w-head.width()-1, 10)
	for {
		first, rest := splitWords(l, room)
		b.add(append(slices.Clip(head), first...))
		if rest.width() == 0 {
			return
		}
		head, l = line{{spaces(head.width()), stText}}, rest
	}
}

// events adds events with their evidence, newest first, at most limit.
func (b *pageBuf) events(evs []model.Event, limit int) {
	if len(evs) == 0 {
		b.add(text("   none yet", stDim))
		return
	}
	for i := len(evs) - 1; i >= 0 && limit > 0; i-- {
		limit--
		e := evs[i]
		head := line{{"   " + b.clock(e.At), stDim}, {" " + pad(age(b.m.at, e.At), 4) + " ", stDim}}
		l := line{}
		if e.From != e.To {
			l = append(l, seg{clean(orWord(e.From, "new")) + " " + b.m.th.g.arrow + " ", stDim}, b.stateWord(e.To), seg{"  ", stText})
		}
		b.wrapped(head, append(l, seg{clean(e.What), stText}))
		for _, ev := range distinct(e.Evidence) {
			b.wrapped(line{{spaces(head.width()), stText}, {b.m.th.g.dot + " ", stDim}}, text(clean(ev), stDim))
		}
	}
}

// stateWord colours the word of a state, wherever the word comes from.
func (b *pageBuf) stateWord(s string) seg {
	for _, st := range model.States() {
		if st.String() == s {
			return seg{b.m.th.g.sign(st) + " " + s, stateStyle(st)}
		}
	}
	switch s {
	case model.LinkUp.String():
		return seg{s, stReady}
	case model.LinkDown.String():
		return seg{s, stBad}
	}
	return seg{clean(s), stText}
}

// clock writes an instant: the time of day, or the day of the month and
// the minute when it was not today.
func (b *pageBuf) clock(t time.Time) string {
	t = t.In(b.m.now.Location())
	if t.YearDay() == b.m.now.YearDay() && t.Year() == b.m.now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("02 15:04")
}

// publicURI is a connection URI without a password.
func publicURI(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return s
	}
	return u.Redacted()
}

func pad(s string, w int) string { return s + spaces(w-cells(s)) }
