package ui

import (
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/vt"

	"virdeck/internal/screenshot"
	"virdeck/model"
)

var (
	update = flag.Bool("update", false, "write the golden files anew")
	pngDir = flag.String("png", "", "directory to write pictures of the golden screens to")
)

// emulate puts a frame on a terminal in the process.
func emulate(t *testing.T, content string, w, h int) *vt.Emulator {
	t.Helper()
	em := vt.NewEmulator(w, h)
	if _, err := em.Write([]byte(strings.ReplaceAll(content, "\n", "\r\n"))); err != nil {
		t.Fatal(err)
	}
	return em
}

// shown returns the text on a terminal, without blanks at the ends of lines.
func shown(em *vt.Emulator) string {
	lines := strings.Split(em.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

func (c *console) screen(t *testing.T) string {
	t.Helper()
	return shown(emulate(t, c.View().Content, c.w, c.h))
}

// golden compares with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; -update writes it anew\n--- want\n%s\n--- got\n%s", path, want, got)
	}
}

func picture(t *testing.T, name string, em *vt.Emulator, light bool) {
	t.Helper()
	if *pngDir == "" {
		return
	}
	look := screenshot.Dark()
	if light {
		look = screenshot.Light()
	}
	img, err := screenshot.Draw(em, look)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(*pngDir, name+".png"))
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(f, img); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Screens that are compared with files, at the sizes that matter.
func TestGoldenScreens(t *testing.T) {
	sizes := map[string][2]int{"40x10": {40, 10}, "80x24": {80, 24}, "120x40": {120, 40}, "160x50": {160, 50}}
	pages := map[string][]string{
		"main":    nil,
		"down":    {"2"},
		"all":     {"0"},
		"detail":  {"j", "j", "j", "enter"},
		"host":    {"tab", "tab", "enter"},
		"explain": {"j", "j", "j", "e"},
		"help":    {"?"},
		"log":     {"l", "w"},
		"ops":     {"o"},
		"dialog":  {"c"},
		"demoted": {"e"},
		"palette": {":", "r"},
		"logpane": {"tab"},
		"filter":  {"/", "!", "r", "e", "a", "d", "y"},
	}
	for size, wh := range sizes {
		for page, keys := range pages {
			if size == "40x10" && page != "main" && page != "detail" {
				continue
			}
			if size == "120x40" && page != "main" {
				continue
			}
			t.Run(page+"-"+size, func(t *testing.T) {
				c := newConsole(t, fleet(), wh[0], wh[1])
				c.press(keys...)
				em := emulate(t, c.View().Content, wh[0], wh[1])
				golden(t, page+"-"+size+".txt", shown(em))
				picture(t, page+"-"+size, em, false)
			})
		}
	}
}

// look is a terminal and what the operator has set of the colours.
type look struct {
	name    string
	dark    bool
	profile colorprofile.Profile
	ascii   bool
}

func looks() []look {
	return []look{
		{"dark", true, colorprofile.TrueColor, false},
		{"light", false, colorprofile.TrueColor, false},
		{"nocolor", true, colorprofile.ASCII, false},
		{"ascii", true, colorprofile.TrueColor, true},
	}
}

// golden compares a screen in this look with a file, with its escape sequences.
func (l look) golden(t *testing.T, name string, snap *model.Snapshot, wh [2]int, keys ...string) {
	t.Helper()
	c := newConsole(t, snap, wh[0], wh[1], func(o *Options) {
		o.ASCII = l.ascii
		o.Background = BackgroundLight
		if l.dark {
			o.Background = BackgroundDark
		}
	})
	c.Update(tea.ColorProfileMsg{Profile: l.profile})
	c.press(keys...)
	content := c.View().Content
	golden(t, name+".ansi", content)
	em := emulate(t, content, wh[0], wh[1])
	picture(t, name, em, !l.dark)
	if l.profile == colorprofile.ASCII && strings.Contains(content, "38;") {
		t.Error("a colour in a terminal without")
	}
	if i := strings.IndexFunc(shown(em), func(r rune) bool { return r > 0x7e }); l.ascii && i >= 0 {
		t.Errorf("%q on an ASCII screen", shown(em)[i:])
	}
}

// The same screen in each of the looks.
func TestGoldenLooks(t *testing.T) {
	for _, l := range append(looks(), look{"indexed", true, colorprofile.ANSI256, false}, look{"sixteen", true, colorprofile.ANSI, false}) {
		t.Run(l.name, func(t *testing.T) { l.golden(t, "look-"+l.name, fleet(), [2]int{120, 30}) })
	}
}
