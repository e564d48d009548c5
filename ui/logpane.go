package ui

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"virdeck/logbuf"
	"virdeck/model"
)

// logPane is a window over the log ring. It keeps the sequence numbers of the
// records that pass its filter and formats only those that are visible. It never
// falls behind: it is at the tail, or it stands still and counts.
type logPane struct {
	ring   *logbuf.Ring
	level  slog.Level
	host   model.HostName  // only this host and its proxies, if set
	proxy  model.ProxyName // only this proxy, if set
	text   string          // search, lower case
	only   bool            // only records with the text
	wrap   bool
	ages   bool
	side   int // cells scrolled to the right
	height int // lines of the last frame

	seen   uint64   // newest record taken over
	seqs   []uint64 // records that pass, oldest first
	follow bool
	anchor uint64 // bottom record while not following
	fresh  int    // records that passed since
	hitSeq uint64 // the hit that n found
}

func newLogPane(r *logbuf.Ring) *logPane {
	return &logPane{ring: r, level: slog.LevelInfo, follow: true}
}

// poll takes over new records and reports whether anything visible may have
// changed.
func (l *logPane) poll() bool {
	changed := false
	for {
		recs := l.ring.After(l.seen, 512)
		if len(recs) == 0 {
			break
		}
		l.seen = recs[len(recs)-1].Seq
		for i := range recs {
			if l.match(&recs[i]) {
				l.seqs = append(l.seqs, recs[i].Seq)
				changed = true
				if !l.follow {
					l.fresh++
				}
			}
		}
	}
	if oldest := l.ring.Stats().Oldest; len(l.seqs) > 0 && l.seqs[0] < oldest {
		i, _ := slices.BinarySearch(l.seqs, oldest)
		l.seqs = slices.Delete(l.seqs, 0, i)
		changed = true
	}
	return changed
}

// refill starts over after the filter changed, at the same place.
func (l *logPane) refill() {
	fresh := l.fresh
	l.seen, l.seqs = 0, nil
	l.poll()
	l.fresh = fresh
}

func (l *logPane) match(r *logbuf.Record) bool {
	if r.Level < l.level {
		return false
	}
	if l.proxy != "" && r.Proxy != string(l.proxy) {
		return false
	}
	if l.host != "" && r.Host != string(l.host) {
		return false
	}
	return !l.only || l.text == "" || l.hit(r)
}

func (l *logPane) hit(r *logbuf.Record) bool {
	if l.text == "" {
		return false
	}
	if contains(r.Message, l.text) || contains(r.Host, l.text) || contains(r.Proxy, l.text) {
		return true
	}
	return slices.ContainsFunc(r.Attrs, func(a logbuf.Attr) bool {
		return contains(a.Key+"="+a.Value, l.text)
	})
}

func (l *logPane) search(v string) {
	l.text = strings.ToLower(strings.TrimSpace(v))
	l.hitSeq = 0
	if l.only {
		l.refill()
	}
}

func (l *logPane) hitWords() string {
	if l.text == "" {
		return ""
	}
	n := 0
	for _, seq := range l.seqs {
		if r, ok := l.ring.Get(seq); ok && l.hit(&r) {
			n++
		}
	}
	return count(n, "hit", "hits")
}

// bottom returns the index of the last visible record, -1 when there is none.
func (l *logPane) bottom() int {
	last := len(l.seqs) - 1
	if l.follow || last < 0 {
		return last
	}
	i, ok := slices.BinarySearch(l.seqs, l.anchor)
	if !ok {
		i-- // the anchor was dropped or filtered out: the one before it
	}
	return min(max(i, min(l.height-1, last)), last)
}

// scroll moves by records; up from the tail stops following.
func (l *logPane) scroll(d int) {
	if len(l.seqs) == 0 {
		return
	}
	last := len(l.seqs) - 1
	i := l.bottom() + d
	if i >= last && d > 0 {
		l.resume()
		return
	}
	if l.follow {
		l.fresh = 0
	}
	l.follow = false
	l.anchor = l.seqs[min(max(i, min(max(l.height-1, 0), last)), last)]
}

func (l *logPane) resume() { l.follow, l.fresh = true, 0 }

func (l *logPane) end(sign int) {
	if sign > 0 {
		l.resume()
		return
	}
	l.scroll(-len(l.seqs))
}

// nextHit puts the next record with the search text at the bottom, upwards for a
// positive d: in a log, next means older.
func (l *logPane) nextHit(d int) bool {
	if l.text == "" {
		return false
	}
	start := l.bottom() + 1
	if l.hitSeq != 0 {
		if i, ok := slices.BinarySearch(l.seqs, l.hitSeq); ok {
			start = i
		}
	} else if d < 0 {
		start = -1
	}
	for i := start - d; i >= 0 && i < len(l.seqs); i -= d {
		r, ok := l.ring.Get(l.seqs[i])
		if !ok || !l.hit(&r) {
			continue
		}
		if l.follow {
			l.fresh = 0
		}
		l.hitSeq = r.Seq
		l.follow = false
		l.anchor = l.seqs[min(max(i, min(max(l.height-1, 0), len(l.seqs)-1))+l.height/3, len(l.seqs)-1)]
		return true
	}
	return false
}

// status is what the title of the pane says about the view.
func (l *logPane) status(g glyphs) []line {
	var out []line
	if st := l.ring.Stats(); st.Dropped > 0 {
		out = append(out, text(fmt.Sprintf("%d older dropped", st.Dropped), stDim))
	}
	if l.host != "" {
		out = append(out, text("host "+clean(string(l.host)), stWarn))
	}
	if l.proxy != "" {
		out = append(out, text("proxy "+clean(string(l.proxy)), stWarn))
	}
	if l.text != "" {
		s := "search: "
		if l.only {
			s = "only: "
		}
		out = append(out, line{{s, stDim}, {clean(l.text), stWarn}})
	}
	out = append(out, text("level "+levelWord(l.level), stDim))
	switch {
	case l.follow:
		out = append(out, text("follows", stDim))
	case l.fresh > 0:
		out = append(out, text(fmt.Sprintf("%s %d new, G follows", g.down, l.fresh), stWarn))
	default:
		out = append(out, text("stopped, G follows", stWarn))
	}
	return out
}

func levelWord(l slog.Level) string { return strings.ToLower(l.String()) }

// visible returns the records that fill h lines of w cells, drawn.
func (l *logPane) visible(m *Model, w, h int) []line {
	l.height = h
	var out []line
	for i := l.bottom(); i >= 0 && len(out) < h; i-- {
		r, ok := l.ring.Get(l.seqs[i])
		if !ok {
			break
		}
		lines := l.format(m, &r, w)
		slices.Reverse(lines)
		out = append(out, lines...)
	}
	out = out[:min(len(out), h)]
	slices.Reverse(out)
	return out
}
