package ui

import (
	"fmt"
	"slices"
	"strings"

	"virdeck/model"
)

// header is the first line: the fleet, its hosts and how many of them are down,
// its proxies by state, badges, the clock. What does not fit gives way in steps:
// first the name of the program, then the numbers of proxies and of hosts that are
// up, then words beside signs, then the clock. That a host is down never goes.
func (m *Model) header(w int) line {
	name := line{{clean(orWord(m.snap.Fleet, "fleet")), stTitle}}
	prog := line{{" virdeck", stStrong}, {"  ", stText}}
	dry := line{}
	if m.snap.DryRun {
		dry = line{{" ", stText}, {" " + letters("DRY RUN", w) + " ", stAlert}, {" ", stText}}
	}
	hosts := text("  "+count(m.hostsN, "host", "hosts"), stText)
	short := line{}
	if m.hostsDown > 0 {
		down := fmt.Sprintf("%d DOWN", m.hostsDown)
		hosts = append(hosts, seg{", ", stText}, seg{down, stBad})
		short = line{{"  ", stText}, {down, stBad}}
	}
	proxies := text("  "+count(m.proxies, "proxy", "proxies"), stText)
	const last = 6
	for level := range last + 1 {
		l := append(slices.Clone(dry), seg{" ", stText})
		if level < 1 {
			l = append(slices.Clone(dry), prog...)
		}
		l = append(l, name...)
		switch {
		case level < 2:
			l = append(append(l, hosts...), proxies...)
		case level < 5 && m.hostsDown > 0:
			l = append(l, hosts...)
		default:
			l = append(l, short...)
		}
		l = append(l, seg{"  ", stText})
		words := level
		if level >= 5 {
			words = level - 1
		}
		l = append(l, m.stateCounts(words)...)
		right := m.badges()
		if w >= 60 && level < 5 {
			right = append(right, seg{" " + m.now.Format("15:04:05"), stDim})
		}
		right = append(right, seg{" ", stText})
		if l.width()+right.width()+1 <= w || level == last {
			return spread(l, right, w)
		}
	}
	return nil
}

// stateCounts is every state that some proxy has, worst last so that the eye
// finds "ready" where it always is. From level 3 on words are short, from 4 on
// only those in need of attention have one, at 5 none has.
func (m *Model) stateCounts(level int) line {
	var out line
	for _, s := range []model.State{model.StateReady, model.StateUnproven, model.StateProvisioning, model.StatePending,
		model.StateDrained, model.StateDeleting, model.StateTransient, model.StateDemoted, model.StateFailed} {
		n := m.counts[s]
		if n == 0 {
			continue
		}
		if len(out) > 0 {
			out = append(out, seg{spaces(2 - level/4), stText})
		}
		word := " " + s.String()
		switch {
		case level >= 5:
			word = ""
		case level >= 3 && s == model.StateProvisioning:
			word = " prov."
		}
		if level == 4 && (s == model.StateDrained || s == model.StatePending || s == model.StateDeleting) {
			word = ""
		}
		out = append(out, seg{fmt.Sprintf("%s %d%s", m.th.g.sign(s), n, word), stateStyle(s)})
	}
	if len(out) == 0 {
		return text("no proxies", stDim)
	}
	return out
}

func (m *Model) badges() line {
	var out line
	add := func(s string) { out = append(out, seg{" " + s + " ", stBadge}, seg{" ", stText}) }
	if m.opts.Demo || m.snap.Demo {
		add("DEMO")
	}
	if m.opts.ReadOnly {
		add("READ ONLY")
	}
	if m.mouse {
		add("MOUSE")
	}
	if !m.pausedAt.IsZero() {
		s := "PAUSED " + age(m.now, m.pausedAt)
		if m.missed > 0 {
			s += fmt.Sprintf(", +%s", count(m.missed, "change", "changes"))
		}
		add(s)
	}
	return out
}

// banners are the lines under the header: what the witnesses say and the
// notices. At most limit of them.
func (m *Model) banners(limit int) []line {
	var out []line
	h := m.snap.Health
	if h.Frozen {
		out = append(out, line{{" " + letters("ROTATION FROZEN", m.w), stAlert},
			{"  since " + age(m.at, h.FrozenSince) + ": " + clean(orWord(h.FrozenWhy, "control and targets fail")) +
				". Nobody enters or leaves.", stAlert}})
	}
	if h.BrakeOn {
		out = append(out, line{{" " + letters("BRAKE", m.w), stAlert},
			{"  since " + age(m.at, h.BrakeSince) + ": " + clean(orWord(h.BrakeNote, "several demotions wait for witnesses")), stAlert}})
	}
	for _, level := range []model.NoticeLevel{model.NoticeAlert, model.NoticeWarn, model.NoticeInfo} {
		for _, n := range m.snap.Notices {
			if n.Level != level {
				continue
			}
			if n.Reload {
				n.Text = "ctrl+r: " + n.Text
			}
			switch level {
			case model.NoticeAlert:
				out = append(out, line{{" " + clean(n.Text), stAlert}})
			case model.NoticeWarn:
				out = append(out, line{{" ! " + clean(n.Text), stWarn}})
			case model.NoticeInfo:
				out = append(out, line{{" " + clean(n.Text), stDim}})
			}
		}
	}
	if len(out) > limit && limit > 0 {
		more := len(out) - limit + 1
		out = out[:limit-1]
		out = append(out, line{{" ! " + count(more, "more notice", "more notices") + ": o lists them", stWarn}})
	}
	if limit <= 0 {
		return nil
	}
	return out
}

// letters writes a word large, as far as a terminal can, where that leaves room
// for the reason.
func letters(s string, w int) string {
	if w < 100 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// isAlert reports whether a line is to be filled to the edge.
func isAlert(l line) bool { return len(l) > 0 && l[0].st == stAlert }
