package ui

import (
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"

	"virdeck/model"
)

// styleID names what a piece of text is, not how it looks.
type styleID uint8

const (
	stText     styleID = iota
	stDim              // secondary
	stRule             // lines between panes
	stStrong           // what the eye should find first
	stTitle            // title of the pane that has the keys
	stKey              // a key in a hint
	stReady            // the states
	stBusy             // provisioning
	stUnproven         //
	stWarn             // transient, held, differing: look here
	stDemoted          //
	stBad              // failed, down, error
	stGone             // tombstones
	stAlert            // large letters, whole line
	stBadge            // DEMO, PAUSED
	stMatch            // search hit
	stCount
)

// variant is the ground a text stands on.
type variant uint8

const (
	plain    variant = iota
	selected         // the cursor's row, in the pane that has the keys
	resting          // the cursor's row in another pane
	variantCount
)

type sgr struct{ open, end string }

// theme holds what a session's terminal can show. It is a value of its session.
type theme struct {
	styles [variantCount][stCount]sgr
	g      glyphs
}

// glyphs are the signs that differ between Unicode and ASCII terminals. All are
// one cell wide.
type glyphs struct {
	ascii  bool
	rule   string
	ell    string
	dot    string // between parts of a line
	up     string // sort arrows and scroll hints
	down   string
	bars   []string
	miss   string // a failed probe in a chart
	corner [4]string
	side   string
	arrow  string
	about  string // before how far a number may be off
	focus  string // before the title of the pane that has the keys
	full   string // of a bar of progress
	empty  string
}

func newGlyphs(ascii bool) glyphs {
	if ascii {
		return glyphs{ascii: true, rule: "-", ell: ".", dot: "|", up: "^", down: "v", miss: "x",
			bars: []string{"_", "_", ".", ".", "-", "-", "=", "="}, corner: [4]string{"+", "+", "+", "+"},
			side: "|", arrow: ">", focus: ">", about: "~", full: "#", empty: "."}
	}
	return glyphs{rule: "─", ell: "…", dot: "·", up: "▲", down: "▼", miss: "×",
		bars: []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, corner: [4]string{"┌", "┐", "└", "┘"},
		side: "│", arrow: "→", focus: "»", about: "±", full: "█", empty: "░"}
}

// sign returns the one-cell sign of a state.
func (g glyphs) sign(s model.State) string {
	if !g.ascii {
		return s.Sign()
	}
	switch s {
	case model.StateDeleting:
		return "-"
	case model.StateDrained:
		return "o"
	case model.StateFailed:
		return "x"
	case model.StateDemoted:
		return "v"
	case model.StateTransient:
		return "~"
	case model.StateProvisioning:
		return "+"
	case model.StatePending:
		return "."
	case model.StateUnproven:
		return "?"
	case model.StateReady:
		return "*"
	}
	return " "
}

func stateStyle(s model.State) styleID {
	switch s {
	case model.StateDeleting, model.StateDrained, model.StatePending:
		return stDim
	case model.StateFailed:
		return stBad
	case model.StateDemoted:
		return stDemoted
	case model.StateTransient:
		return stWarn
	case model.StateProvisioning:
		return stBusy
	case model.StateUnproven:
		return stUnproven
	case model.StateReady:
		return stReady
	}
	return stText
}

// palette is one colour per meaning. The hues are told apart by people with any
// of the common colour blindnesses: bluish green, orange, blue, vermilion and
// reddish purple, at different lightness.
type palette struct {
	dim, rule, title, key, ready, busy, unproven, warn, demoted, bad, alertFg, alertBg, badgeFg, badgeBg, sel, selFg, selDim color.Color
}

func rgb(dark bool) palette {
	c := lipgloss.Color
	if dark {
		return palette{dim: c("#8b95a5"), rule: c("#4c5667"), title: c("#7cc7ff"), key: c("#c9d4e3"),
			ready: c("#35cfa0"), busy: c("#7aa7ff"), unproven: c("#5fd7e6"), warn: c("#ffb454"),
			demoted: c("#e88bd5"), bad: c("#ff7452"), alertFg: c("#1a1206"), alertBg: c("#ffb454"),
			badgeFg: c("#10131a"), badgeBg: c("#7cc7ff"), sel: c("#25374f"), selFg: c("#e8edf4"), selDim: c("#b4bfce")}
	}
	return palette{dim: c("#5a6472"), rule: c("#b3bcc8"), title: c("#0a58a8"), key: c("#2a3442"),
		ready: c("#007050"), busy: c("#1650c4"), unproven: c("#006c7d"), warn: c("#945500"),
		demoted: c("#97288a"), bad: c("#bd2808"), alertFg: c("#ffffff"), alertBg: c("#945500"),
		badgeFg: c("#ffffff"), badgeBg: c("#0a58a8"), sel: c("#d3e4fa"), selFg: c("#1c222c"), selDim: c("#48525f")}
}

// indexed picks from the 256 fixed colours by hand: rounding would turn the grey
// of the selection into teal.
func indexed(dark bool) palette {
	c := lipgloss.Color
	if dark {
		return palette{dim: c("246"), rule: c("240"), title: c("117"), key: c("254"), ready: c("79"), busy: c("111"),
			unproven: c("80"), warn: c("215"), demoted: c("176"), bad: c("209"),
			alertFg: c("16"), alertBg: c("215"), badgeFg: c("16"), badgeBg: c("117"), sel: c("237"), selFg: c("255"), selDim: c("250")}
	}
	return palette{dim: c("241"), rule: c("250"), title: c("25"), key: c("235"), ready: c("29"), busy: c("26"),
		unproven: c("24"), warn: c("94"), demoted: c("90"), bad: c("124"),
		alertFg: c("231"), alertBg: c("94"), badgeFg: c("231"), badgeBg: c("25"), sel: c("189"), selFg: c("234"), selDim: c("238")}
}

// sixteen keeps to the colours that every terminal has. There is no blue on dark:
// neither of the two can be read everywhere.
func sixteen(dark bool) palette {
	c := lipgloss.Color
	if dark {
		return palette{dim: c("7"), rule: c("8"), title: c("14"), key: c("15"), ready: c("10"), busy: c("14"),
			unproven: c("6"), warn: c("11"), demoted: c("13"), bad: c("9"),
			alertFg: c("0"), alertBg: c("11"), badgeFg: c("0"), badgeBg: c("14")}
	}
	return palette{dim: c("8"), rule: c("7"), title: c("4"), key: c("0"), ready: c("2"), busy: c("4"),
		unproven: c("6"), warn: c("3"), demoted: c("5"), bad: c("1"),
		alertFg: c("15"), alertBg: c("1"), badgeFg: c("15"), badgeBg: c("4")}
}

// newTheme returns the theme for a terminal. Without colours it leans on bold,
// faint and reverse; with sixteen the selection is reverse too, since no
// background of the sixteen suits every terminal.
func newTheme(dark bool, profile colorprofile.Profile, ascii bool) theme {
	t := theme{g: newGlyphs(ascii)}
	mono := profile == colorprofile.ASCII || profile == colorprofile.NoTTY
	few := profile == colorprofile.ANSI
	var p palette
	switch {
	case mono:
	case few:
		p = sixteen(dark)
	case profile == colorprofile.ANSI256:
		p = indexed(dark)
	default:
		p = rgb(dark)
	}
	base := lipgloss.NewStyle()
	fg := func(c color.Color) lipgloss.Style {
		if c == nil {
			return base
		}
		return base.Foreground(c)
	}
	block := func(f, b color.Color) lipgloss.Style {
		if b == nil {
			return base.Reverse(true).Bold(true)
		}
		return base.Foreground(f).Background(b).Bold(true)
	}
	all := [stCount]lipgloss.Style{
		stText: base, stDim: fg(p.dim).Faint(mono), stRule: fg(p.rule).Faint(mono), stStrong: base.Bold(true),
		stTitle: fg(p.title).Bold(true), stKey: fg(p.key).Bold(true), stReady: fg(p.ready), stBusy: fg(p.busy),
		stUnproven: fg(p.unproven), stWarn: fg(p.warn), stDemoted: fg(p.demoted).Bold(true),
		stBad: fg(p.bad).Bold(true), stGone: fg(p.dim).Strikethrough(true).Faint(mono),
		stAlert: block(p.alertFg, p.alertBg), stBadge: block(p.badgeFg, p.badgeBg), stMatch: block(p.alertFg, p.alertBg),
	}
	for id, s := range all {
		t.styles[plain][id] = sequences(s)
		t.styles[resting][id] = sequences(s)
		switch {
		case id == int(stAlert) || id == int(stBadge) || id == int(stMatch):
			t.styles[selected][id] = sequences(s)
		case mono || few:
			t.styles[selected][id] = sequences(base.Reverse(true).Bold(s.GetBold()).Strikethrough(s.GetStrikethrough()))
		default:
			// Both colours are given: which one the terminal's own text would have on
			// this ground nobody knows where it does not tell its background.
			switch _, none := s.GetForeground().(lipgloss.NoColor); {
			case none:
				s = s.Foreground(p.selFg)
			case id == int(stDim) || id == int(stGone) || id == int(stRule):
				s = s.Foreground(p.selDim)
			}
			t.styles[selected][id] = sequences(s.Background(p.sel))
		}
	}
	return t
}

// sequences finds what a style writes before and after a text, once, so that
// drawing a cell is joining three strings.
func sequences(s lipgloss.Style) sgr {
	before, after, _ := strings.Cut(s.Render("x"), "x")
	return sgr{before, after}
}
