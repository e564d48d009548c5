package ui

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"virdeck/logbuf"
	"virdeck/model"
)

// valid fails when a frame is broken: more lines than the window, or a line that
// is wider.
func valid(t testing.TB, c *console) {
	t.Helper()
	content := c.View().Content
	if c.w <= 0 || c.h <= 0 {
		if content != "" {
			t.Fatalf("%dx%d draws %q", c.w, c.h, content)
		}
		return
	}
	lines := strings.Split(content, "\n")
	if len(lines) > c.h || (c.w >= minWidth && c.h >= minHeight && len(lines) != c.h) {
		t.Fatalf("%dx%d has %d lines", c.w, c.h, len(lines))
	}
	for i, l := range lines {
		if n := ansi.StringWidth(l); n > c.w {
			t.Fatalf("%dx%d: line %d is %d cells wide: %q", c.w, c.h, i, n, ansi.Strip(l))
		}
		if strings.Contains(l, "\r") || !utf8.ValidString(l) {
			t.Fatalf("line %d: %q", i, l)
		}
	}
}

func TestUX19_everyStateHasSignWordAndItsOwnLook(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	signs := map[string]model.State{}
	for _, s := range model.States() {
		p := proxy("p", "h", s, "10.0.0.1")
		got := c.stateCell(p, 22).plain()
		if !strings.HasPrefix(got, s.Sign()+" "+s.String()) {
			t.Errorf("%s draws %q", s, got)
		}
		if ansi.StringWidth(s.Sign()) != 1 {
			t.Errorf("the sign of %s is not one cell", s)
		}
		if other, ok := signs[c.th.g.sign(s)]; ok {
			t.Errorf("%s and %s have one sign", s, other)
		}
		signs[c.th.g.sign(s)] = s
	}
}

func TestUX21_everySizeHasAWholeFrame(t *testing.T) {
	pages := [][]string{nil, {"enter"}, {"c"}, {"s"}, {"l"}, {"?"}, {"0"}, {"/", "x"}, {":", "r"}, {"tab"}, {"e"}, {"f5"}}
	for _, keys := range pages {
		c := newConsole(t, fleet(), 120, 40)
		c.press(keys...)
		for w := 0; w <= 200; w += 1 + w/60 {
			for _, h := range []int{0, 1, 2, 9, 10, 11, 12, 14, 17, 24, 33, 60} {
				c.Update(tea.WindowSizeMsg{Width: w, Height: h})
				valid(t, c)
			}
		}
		for h := range 61 {
			for _, w := range []int{39, 40, 80, 130, 160} {
				c.Update(tea.WindowSizeMsg{Width: w, Height: h})
				valid(t, c)
			}
		}
	}
}

func TestUX21_tooSmallSaysSo(t *testing.T) {
	c := newConsole(t, fleet(), 39, 10)
	if s := c.screen(t); !strings.HasPrefix(s, "virdeck needs 40x10") {
		t.Errorf("%q", s)
	}
	c = newConsole(t, fleet(), 40, 10)
	if s := c.screen(t); lineOf(s, "> p-04", "demoted", "out") < 0 || lineOf(s, "1 beelink", "up 26h") < 0 {
		t.Errorf("40x10 lacks the essentials:\n%s", s)
	}
}

// storm drives a console with random keys, sizes, time and snapshots.
func storm(t testing.TB, seed uint64, steps int) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	ring := logbuf.NewRing(50)
	c := &console{eng: &fakeEngine{snap: fleet()}, now: clock()}
	if seed%2 == 1 {
		c.eng.snap = managedFleet()
	}
	c.Model = New(Options{Engine: c.eng, Ring: ring, Now: func() time.Time { return c.now }})
	var keys []string
	for _, a := range c.actions {
		for _, k := range a.b.Keys() {
			if k != "q" && k != "ctrl+c" {
				keys = append(keys, k)
			}
		}
	}
	keys = append(keys, "y", "esc", "enter", "esc", "backspace", "f5", "ü", "界", "a", ":")
	for range steps {
		switch n := rnd.IntN(20); {
		case n < 13:
			c.Update(keyPress(keys[rnd.IntN(len(keys))]))
		case n < 14:
			c.Update(tea.WindowSizeMsg{Width: rnd.IntN(201), Height: rnd.IntN(61)})
		case n < 15:
			c.Update(tea.MouseClickMsg{X: rnd.IntN(200), Y: rnd.IntN(60), Button: tea.MouseLeft})
		case n < 16:
			c.Update(tea.PasteMsg{Content: "state:re\x1b[2J界"})
		case n < 18:
			c.now = c.now.Add(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			ring.Append(logbuf.Record{At: c.now, Message: "m\x9b2J", Proxy: "p-01"})
			c.Update(tickMsg{})
		case n < 19:
			c.eng.finish(model.OpState(rnd.IntN(5)), "result")
			c.Update(tickMsg{})
		default:
			c.eng.publish(func(s *model.Snapshot) {
				if rnd.IntN(4) == 0 {
					*s = *fleet()
				}
				if len(s.Hosts) > 0 {
					h := s.Hosts[rnd.IntN(len(s.Hosts))]
					switch rnd.IntN(3) {
					case 0:
						h.Proxies = nil
					case 1:
						h.Link.State = model.LinkState(rnd.IntN(4))
					default:
						s.Hosts = s.Hosts[:rnd.IntN(len(s.Hosts))+1]
						for _, p := range h.Proxies {
							p.State = model.States()[rnd.IntN(9)]
						}
					}
				}
			})
			c.Update(tickMsg{})
		}
		valid(t, c)
	}
}

func TestUX21_anyKeyInAnyStateKeepsTheFrameWhole(t *testing.T) {
	for seed := range uint64(12) {
		storm(t, seed, 300)
	}
}

func FuzzConsole(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { storm(t, seed, 500) })
}

// Between two ticks without a change the view is the very same.
func TestUX22_idleDrawsNothing(t *testing.T) {
	c := newConsole(t, fleet(), 120, 30)
	c.pass(time.Second)
	frame := c.View().Content
	for range 3 {
		c.now = c.now.Add(pollEvery)
		c.Update(tickMsg{})
		if c.dirty {
			t.Fatal("a tick without a change draws")
		}
	}
	c.now = c.now.Add(pollEvery)
	c.Update(tickMsg{})
	was, is := strings.Split(frame, "\n"), strings.Split(c.View().Content, "\n")
	changed := 0
	for i := range was {
		if was[i] != is[i] {
			changed++
		}
	}
	// A second is over: the clock, the ages below a minute, and nothing else.
	if changed == 0 || changed > 6 {
		t.Errorf("%d lines changed with the second", changed)
	}
}

func TestAgesGrowInSteps(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 999 * time.Millisecond: "0s", 59 * time.Second: "59s", 60 * time.Second: "1m",
		59*time.Minute + 59*time.Second: "59m", time.Hour: "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d", 800 * time.Hour: "33d",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                            "plain",
		"a\x1b[31mred\x1b[0m":              "a[31mred[0m",
		"\x1b]52;c;QUJD\x07x":              "]52;c;QUJDx",
		"c1 \u009b2J\u0090q\u009cend":      "c1 2Jqend",
		"raw c1 \x9b2J":                    "raw c1 \ufffd2J",
		"two\nlines\ttab\r":                "two lines tab ",
		"\u202eevil\u202c\u2066x":          "evilx",
		"zero\u200bwidth\ufeff":            "zerowidth",
		"heart\u2764\ufe0f":                "heart\u2764",
		"bad \xff\xfe utf8":                "bad \ufffd\ufffd utf8",
		"del\x7f":                          "del",
		"zalgo a\u0301\u0302\u0303\u0304b": "zalgo a\u0301\u0302b",
		"wide 界":                           "wide 界",
		"tag\U000e0041":                    "tag",
		"line\u2028sep":                    "line sep",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := clean(strings.Repeat("x", 1<<20)); len(got) != maxOutside {
		t.Errorf("a megabyte becomes %d bytes", len(got))
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31m\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if r < 0x20 || (r >= 0x7f && r < 0xa0) || invisible(r) {
				t.Errorf("%q in %q", r, got)
			}
		}
		if ansi.Strip(got) != got {
			t.Errorf("%q holds a sequence", got)
		}
	})
}

// Everything that comes from outside, filled with what could steer a terminal:
// nothing of it reaches the screen, on any page.
func TestHostileTextsAreInert(t *testing.T) {
	evil := "x\x1b]52;c;QUJD\x07\x1b[2J\u009b31m\u202e\x9b\x00\x7fz"
	s := fleet()
	s.Fleet = evil
	s.Notices = []model.Notice{{Level: model.NoticeAlert, Text: evil}, {Level: model.NoticeInfo, Text: evil}}
	s.Health = model.FleetHealth{Frozen: true, FrozenWhy: evil, BrakeOn: true, BrakeNote: evil, ControlNote: evil}
	s.Ops = []model.Op{{ID: 1, Command: model.Command{Verb: model.VerbRestart, Host: "beelink", Proxy: model.ProxyName(evil), By: evil}, State: model.OpRunning, Phase: evil, Result: evil}}
	for _, h := range s.Hosts {
		h.Misconfig, h.UUID, h.Undeclared, h.URI = evil, evil, []string{evil}, evil
		h.Link.LastError, h.Link.Phase, h.Link.Endpoint = evil, evil, evil
		h.Events = []model.Event{{From: evil, To: evil + "2", What: evil, Evidence: []string{evil}}}
		for _, p := range h.Proxies {
			p.Reason, p.DomainNote, p.ReadError, p.UUID, p.Incarnation = evil, evil, evil, evil, model.Incarnation(evil)
			p.Spec.Domain, p.Spec.Pool, p.Spec.Labels = evil, evil, map[string]string{evil: evil}
			p.Spec.Creds.User = evil
			p.Hold.Active, p.Hold.Probe = true, evil
			p.Health.Reason, p.Health.Waiting = evil, evil
			p.Health.Last.Passed, p.Health.Last.Reason, p.Health.Last.Detail, p.Health.Last.Target = false, evil, evil, evil
			p.Events, p.Conditions = h.Events, []model.Condition{{Type: "T", Status: "True", Reason: evil, Message: evil}}
			for i := range p.Outcomes {
				p.Outcomes[i].Kind, p.Outcomes[i].Message, p.Outcomes[i].Code = model.OutcomeFailed, evil, 38
				p.Outcomes[i].Ignored = []model.Ignored{{Address: ip("10.0.0.1"), Why: evil}}
			}
		}
		h.Proxies[0].Spec.Name = model.ProxyName(evil)
	}
	ring := logbuf.NewRing(4)
	ring.Append(logbuf.Record{At: clock(), Host: evil, Proxy: evil, Message: evil, Attrs: []logbuf.Attr{{Key: evil, Value: evil}}})
	for _, keys := range [][]string{nil, {"0"}, {"enter"}, {"e"}, {"l"}, {"L"}, {"l", "w"}, {"o"}, {"shift+tab", "enter"}, {"shift+tab", "e"}, {"2", "shift+tab", "enter"},
		{"x"}, {"c"}, {"d"}, {"y"}, {"r"}, {":"}, {":", "x", "5"}, {"tab", "y"}, {"?"}} {
		for _, wh := range [][2]int{{80, 24}, {160, 50}} {
			c := newConsole(t, s, wh[0], wh[1], func(o *Options) { o.Ring = ring })
			c.press(keys...)
			valid(t, c)
			v := c.View()
			for _, text := range []string{ansi.Strip(strings.ReplaceAll(v.Content, "\n", "")), v.WindowTitle} {
				for _, r := range text {
					if r < 0x20 || (r >= 0x7f && r < 0xa0) || r == 0x202e {
						t.Fatalf("%v: %q on the screen", keys, r)
					}
				}
			}
			// Every sequence in the frame is one of ours: SGR.
			for rest := v.Content; ; {
				_, after, ok := strings.Cut(rest, "\x1b")
				if !ok {
					break
				}
				end := strings.IndexFunc(after[1:], func(r rune) bool { return r != ';' && r != ':' && (r < '0' || r > '9') })
				if after[0] != '[' || after[1+end] != 'm' {
					t.Fatalf("%v: sequence %q", keys, after[:min(len(after), 20)])
				}
				rest = after
			}
		}
	}
}

func BenchmarkView(b *testing.B) {
	for _, n := range []int{50, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := &console{eng: &fakeEngine{snap: big(n)}, now: clock()}
			c.Model = New(Options{Engine: c.eng, Ring: crafted(), Now: func() time.Time { return c.now }})
			c.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
			c.press("G")
			b.ReportAllocs()
			for b.Loop() {
				c.Update(keyPress("k"))
				c.View()
			}
		})
	}
}

// What a new snapshot costs: all rows are filtered and sorted.
func BenchmarkReindex(b *testing.B) {
	for _, n := range []int{50, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := &console{eng: &fakeEngine{snap: big(n)}, now: clock()}
			c.Model = New(Options{Engine: c.eng, Now: func() time.Time { return c.now }})
			b.ReportAllocs()
			for b.Loop() {
				c.reindex()
			}
		})
	}
}

func TestWindowOfALongListIsNamed(t *testing.T) {
	c := newConsole(t, big(312), 80, 24)
	c.press("G")
	if s := c.screen(t); lineOf(s, "rows 301-312", "312 proxies") < 0 {
		t.Errorf("\n%s", s)
	}
	many := fleet()
	for i := range 40 {
		many.Hosts = append(many.Hosts, &model.HostView{Name: model.HostName(fmt.Sprintf("h-%02d", i)), Link: model.LinkStatus{State: model.LinkUp}})
	}
	c = newConsole(t, many, 80, 24)
	c.press("shift+tab", "G")
	if s := c.screen(t); lineOf(s, "HOST", "of 44") < 0 || lineOf(s, ">  h-39") < 0 {
		t.Errorf("\n%s", s)
	}
}
