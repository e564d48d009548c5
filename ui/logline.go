package ui

import (
	"fmt"
	"log/slog"
	"time"

	"virdeck/logbuf"
)

// change is a record of a state that changed: it says what happened in an
// attribute, and from which state to which in two others. Its message is the
// same for all and says nothing more.
type change struct{ what, from, to string }

func changeOf(attrs []logbuf.Attr) (*change, []logbuf.Attr) {
	var c change
	rest := make([]logbuf.Attr, 0, len(attrs))
	for _, a := range attrs {
		switch a.Key {
		case "what":
			c.what = a.Value
		case "from":
			c.from = a.Value
		case "to":
			c.to = a.Value
		default:
			rest = append(rest, a)
		}
	}
	if c.what == "" {
		return nil, attrs
	}
	return &c, rest
}

func (c *change) draw(g glyphs, st styleID) line {
	l := line{}
	if c.from != c.to {
		l = append(l, seg{clean(c.from) + " " + g.arrow + " " + clean(c.to) + "  ", st})
	}
	return append(l, seg{clean(c.what), st})
}

// format draws one record, on several lines if wrapping is on.
func (l *logPane) format(m *Model, r *logbuf.Record, w int) []line {
	stamp := r.At.In(m.now.Location()).Format("15:04:05")
	if l.ages {
		stamp = fmt.Sprintf("%8s", age(m.now, r.At.Truncate(time.Second)))
	}
	sign, st := " ", stText
	switch {
	case r.Level >= slog.LevelError:
		sign, st = m.th.g.miss, stBad
	case r.Level >= slog.LevelWarn:
		sign, st = "!", stWarn
	case r.Level < slog.LevelInfo:
		st = stDim
	}
	head := line{{" " + stamp, stDim}, {" " + sign + " ", st}}
	object := clean(orWord(r.Proxy, r.Host))
	body := line{}
	if object != "" {
		body = append(body, seg{object + spaces(8-cells(object)), stStrong}, seg{" ", stText})
	}
	attrs := r.Attrs
	if change, rest := changeOf(attrs); change != nil {
		body, attrs = append(body, change.draw(m.th.g, st)...), rest
	} else {
		body = append(body, seg{clean(r.Message), st})
	}
	for _, a := range attrs {
		if a.Key == "evidence" { // long, and at hand on the proxy's page
			for _, item := range evidence(a.Value) {
				body = append(body, seg{" " + m.th.g.dot + " ", stRule}, seg{clean(item), stDim})
			}
			continue
		}
		body = append(body, seg{"  " + clean(a.Key) + "=", stDim}, seg{clean(a.Value), st})
	}
	if r.Proxy != "" && r.Host != "" && w >= 120 {
		body = append(body, seg{"  host=", stDim}, seg{clean(r.Host), stDim})
	}
	if l.text != "" {
		body = highlight(body, l.text)
	}
	room := max(w-head.width(), 1)
	if !l.wrap {
		return []line{append(head, skip(body, l.side)...)}
	}
	var out []line
	for n := 0; body.width() > 0 && n < 20; n++ {
		first, rest := splitWords(body, room)
		if len(out) == 0 {
			out = append(out, append(head, first...))
		} else {
			out = append(out, append(line{{spaces(head.width()), stText}}, first...))
		}
		body = rest
	}
	if len(out) == 0 {
		out = append(out, head)
	}
	return out
}
