package ui

import (
	"image/color"
	"math"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// contrast is that of the guidelines for the web: 21 for black on white.
func contrast(a, b color.Color) float64 {
	lum := func(c color.Color) float64 {
		r, g, b, _ := c.RGBA()
		lin := func(v uint32) float64 {
			x := float64(v) / 0xffff
			if x <= 0.04045 {
				return x / 12.92
			}
			return math.Pow((x+0.055)/1.055, 2.4)
		}
		return 0.2126*lin(r) + 0.7152*lin(g) + 0.0722*lin(b)
	}
	x, y := lum(a), lum(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// The selected row can be read whatever the terminal's background is: every piece
// of it has a foreground and a background of ours, far enough apart.
func TestUX20_selectionIsReadableOnEveryGround(t *testing.T) {
	for name, look := range map[string]struct {
		ground  Background
		profile colorprofile.Profile
	}{
		"dark": {BackgroundDark, colorprofile.TrueColor}, "light": {BackgroundLight, colorprofile.TrueColor},
		"dark, 256": {BackgroundDark, colorprofile.ANSI256}, "light, 256": {BackgroundLight, colorprofile.ANSI256},
	} {
		c := newConsole(t, fleet(), 160, 40, func(o *Options) { o.Background = look.ground })
		c.Update(tea.ColorProfileMsg{Profile: look.profile})
		em := emulate(t, c.View().Content, 160, 40)
		y := lineOf(shown(em), "> p-04")
		for x := range 160 {
			cell := em.CellAt(x, y)
			if cell.Style.Bg == nil || cell.Style.Fg == nil {
				t.Fatalf("%s: cell %d %q has fg %v, bg %v", name, x, cell.Content, cell.Style.Fg, cell.Style.Bg)
			}
			if r := contrast(cell.Style.Fg, cell.Style.Bg); cell.Content != " " && r < 4.5 {
				t.Errorf("%s: cell %d %q has a contrast of %.1f", name, x, cell.Content, r)
			}
		}
	}
}

func TestUX20_backgroundByKey(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	auto := c.View().Content
	looks := map[string]bool{}
	for _, want := range []string{"dark", "light", "auto"} {
		c.press("B")
		if s := c.foot(t); s != " colours for a background: "+want {
			t.Errorf("%q", s)
		}
		c.toast = nil
		c.dirty = true
		looks[c.View().Content] = true
		if is := c.View().Content == auto; is == (want == "light") {
			t.Errorf("%s: the same as auto: %v", want, is)
		}
	}
	c.Update(tea.BackgroundColorMsg{Color: ansi.RGBColor{R: 255, G: 255, B: 255}})
	if c.View().Content == auto || len(looks) != 2 {
		t.Error("what the terminal says does not count in auto")
	}
}

func TestUX20_terminalSaysWhetherItIsLight(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	dark := c.View().Content
	c.Update(tea.BackgroundColorMsg{Color: ansi.RGBColor{R: 255, G: 255, B: 255}})
	light := c.View().Content
	if dark == light {
		t.Error("a light terminal gets the dark palette")
	}
	if ansi.Strip(dark) != ansi.Strip(light) {
		t.Error("the palettes differ in more than colours")
	}
	f := newConsole(t, fleet(), 120, 30, func(o *Options) { o.Background = BackgroundDark })
	f.Update(tea.BackgroundColorMsg{Color: ansi.RGBColor{R: 255, G: 255, B: 255}})
	if f.View().Content != dark {
		t.Error("a background set by hand is overruled")
	}
}

// A terminal that has ASCII alone gets nothing else, on any page.
func TestUX19_asciiOnEveryPage(t *testing.T) {
	for _, page := range [][]string{nil, {"?"}, {"e"}, {"enter"}, {"shift+tab", "enter"}, {"l"}, {"o"}, {":"}, {"s"}, {"x"}, {"0"}} {
		c := newConsole(t, fleet(), 160, 150, func(o *Options) { o.ASCII = true })
		c.press(page...)
		for l := range strings.SplitSeq(c.screen(t), "\n") {
			if i := strings.IndexFunc(l, func(r rune) bool { return r > 0x7e }); i >= 0 {
				t.Errorf("%v: %q", page, l)
			}
		}
	}
}
