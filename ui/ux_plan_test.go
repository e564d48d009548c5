package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"virdeck/model"
)

// The pages about managed VMs, compared with files.
func TestGoldenManaged(t *testing.T) {
	pages := map[string][]string{
		"plan":    {"P"},
		"managed": {"3", "g", "G", "/", "w", "e", "b", "-", "4", "enter", "enter"},
		"latched": {"3", "/", "w", "e", "b", "-", "5", "enter", "enter"},
		"why":     {"3", "/", "w", "e", "b", "-", "4", "enter", "e"},
		"pool":    {"3"},
		"vmhost":  {"3", "shift+tab", "enter"},
		"adopt":   {"3", "shift+tab", "A"},
		"reload":  {"ctrl+r"},
		"anew":    {"3", "space", "space", "space", "X"},
	}
	for size, wh := range map[string][2]int{"80x24": {80, 24}, "160x50": {160, 50}, "40x10": {40, 10}} {
		for page, keys := range pages {
			t.Run(page+"-"+size, func(t *testing.T) {
				c := newConsole(t, managedFleet(), wh[0], wh[1])
				c.press(keys...)
				valid(t, c)
				em := emulate(t, c.View().Content, wh[0], wh[1])
				golden(t, "vm-"+page+"-"+size+".txt", shown(em))
				picture(t, "vm-"+page+"-"+size, em, false)
			})
		}
	}
}

// The plan and a managed VM in each of the looks, in a dry run.
func TestGoldenManagedLooks(t *testing.T) {
	for _, l := range looks() {
		for page, keys := range map[string][]string{"plan": {"P"}, "managed": {"3", "/", "w", "e", "b", "-", "4", "enter", "enter"}} {
			for size, wh := range map[string][2]int{"80x24": {80, 24}, "160x50": {160, 50}} {
				name := page + "-" + l.name + "-" + size
				t.Run(name, func(t *testing.T) {
					snap := managedFleet()
					snap.DryRun = true
					l.golden(t, "vm-"+name, snap, wh, keys...)
				})
			}
		}
	}
}

// What is under way, due and waiting stands apart; each says why.
func TestPlan_groups(t *testing.T) {
	c := newConsole(t, managedFleet(), 160, 50)
	c.press("P")
	s := c.screen(t)
	order := []string{"CONFIGURATION FILE", "pool web: count 5 -> 6", "POOLS", "web    3     5", "UNDER WAY", "create         web-4", "DUE", "start          web-3", "WAITING", "replace        web-2", "remove orphan  home-web-9-77b0"}
	at := -1
	for _, w := range order {
		i := lineOf(s, w)
		if i <= at {
			t.Errorf("%q is on line %d, after %d:\n%s", w, i, at, s)
		}
		at = i
	}
	for _, words := range [][]string{
		{"web-4", "kvm3", "15s upload base image █████░░░░░░░ 43% 120/280 MB", "it is declared and does not exist"},
		{"web-3", "its domain does not run", "counted"},
		{"web-2", "waits: the budget of pool web is used up", "its template has changed"},
		{"web ", "5/5 in 1h, next 12m", "debian-small", "kvm3 5"},
		{"api ", "0/4 in 1h30m", "beelink 1  kvm2 1"},
		{"waits  web-2: is replaced when web-4"},
	} {
		if lineOf(s, words...) < 0 {
			t.Errorf("no %q in\n%s", words, s)
		}
	}
	c.press("/")
	c.typed("orphan")
	if s := c.screen(t); lineOf(s, "home-web-9-77b0") < 0 || lineOf(s, "web-2  ", "replace") >= 0 {
		t.Errorf("the filter does not filter:\n%s", s)
	}
	c.press("enter", "esc", "esc")
	if len(c.stack) != 0 {
		t.Error("esc does not clear the filter and then leave")
	}
}

func TestPlan_empty(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.press("P")
	if s := c.screen(t); lineOf(s, "nothing is to be done") < 0 || lineOf(s, "everything managed is as it is declared") < 0 {
		t.Errorf("\n%s", s)
	}
	// What an operator holds off is not as it is declared.
	c = at(t, "web-1", 80, 24)
	c.eng.publish(func(s *model.Snapshot) {
		s.Plan = nil
		p, _ := s.Proxy("web-1")
		p.Managed.Wish = "stop"
	})
	c.pass(pollEvery)
	c.press("P")
	if s := c.screen(t); lineOf(s, "stopped or removed by an operator, S makes or starts it: web-1") < 0 || lineOf(s, "everything managed is as it is declared") >= 0 {
		t.Errorf("\n%s", s)
	}
}

// A plan of thousands costs what its first page costs, and says what it leaves out.
func TestPlan_long(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	c.eng.publish(func(s *model.Snapshot) {
		for i := range 1000 {
			s.Plan = append(s.Plan, model.PlanItem{Host: "beelink", Proxy: model.ProxyName(fmt.Sprintf("web-%d", i)), Verb: model.PlanCreate, Why: "x", Wait: "8 other writes come first"})
		}
	})
	c.pass(pollEvery)
	c.press("P", "G")
	if s := c.screen(t); lineOf(s, "and 800 more: / finds one") < 0 {
		t.Errorf("\n%s", s)
	}
	c.press("/")
	c.typed("web-999")
	if s := c.screen(t); lineOf(s, "web-999", "waits: 8 other") < 0 {
		t.Errorf("\n%s", s)
	}
}

// That nothing is written is said on every page, at every width.
func TestDryRun_isSaidOnEveryPage(t *testing.T) {
	snap := managedFleet()
	snap.DryRun = true
	for _, keys := range [][]string{nil, {"enter"}, {"e"}, {"P"}, {"o"}, {"l"}, {"?"}, {"shift+tab", "enter"}} {
		for _, w := range []int{40, 60, 80, 100, 160} {
			c := newConsole(t, snap, w, 24)
			c.press(keys...)
			want := "DRY RUN"
			if w >= 100 {
				want = "D R Y   R U N"
			}
			if s := c.screen(t); lineOf(s, want) != 0 {
				t.Errorf("%v at %d:\n%s", keys, w, s)
			}
		}
	}
	c := newConsole(t, snap, 120, 30)
	for _, k := range []string{"X", "delete", "x"} {
		c.press("3", k)
		if s := c.foot(t); !strings.Contains(s, "this is a dry run: nothing is written to any host") || c.dialog != nil {
			t.Errorf("%s: %q", k, s)
		}
	}
}

func TestProgress_words(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	for _, tt := range []struct {
		p    model.Progress
		pct  int
		want string
	}{
		{model.Progress{Step: "upload base image", Done: 120_400_000, Total: 280_000_000}, 43, "upload base image 43% 120/280 MB"},
		{model.Progress{Step: "define the domain"}, -1, "define the domain"},
		{model.Progress{Step: "x", Done: 5, Total: 0}, -1, "x"},
		{model.Progress{Step: "x", Done: 300, Total: 200}, 100, "x 100% 0/0 kB"},
		{model.Progress{Step: "x", Done: -9, Total: 2_000_000}, 0, "x 0% 0/2 MB"},
		{model.Progress{Step: "x", Done: 1 << 62, Total: 1<<63 - 1}, 50, "x 50% 4611686018.4/9223372036.9 GB"},
		{model.Progress{Step: "x", Done: 12_000_000_000, Total: 40_000_000_000}, 30, "x 30% 12.0/40.0 GB"},
		{model.Progress{Step: "a\x1b[2Jb"}, -1, "a[2Jb"},
	} {
		if got := percent(tt.p); got != tt.pct {
			t.Errorf("%+v: %d%%, want %d%%", tt.p, got, tt.pct)
		}
		if got := stepWords(tt.p); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.p, got, tt.want)
		}
	}
	for pct, want := range map[int]string{-5: "░░░░", 0: "░░░░", 24: "░░░░", 25: "█░░░", 99: "███░", 100: "████", 1000: "████"} {
		if got := c.th.g.bar(pct, 4); got != want {
			t.Errorf("bar of %d%%: %q, want %q", pct, got, want)
		}
	}
	if got := newGlyphs(true).bar(50, 4); got != "##.." {
		t.Errorf("in ASCII: %q", got)
	}
	if got := c.progress(model.Progress{Step: "upload base image", Done: 1, Total: 4}, ago(90*time.Second)).plain(); got != "1m upload base image █░░░░░ 25% 0/0 kB" {
		t.Errorf("%q", got)
	}
}

// While a write runs, its step is in the table at every width.
func TestProgress_isSeenInTheTable(t *testing.T) {
	for w, want := range map[int][]string{
		80:  {"web-4", "· pending", "create 43%"},
		120: {"web-4", "· pending", "create 43%"},
		160: {"web-4", "· pending", "upload base image 43% 120/280 MB"},
	} {
		c := newConsole(t, managedFleet(), w, 40)
		c.press("3")
		if s := c.screen(t); lineOf(s, want...) < 0 {
			t.Errorf("at %d: no %q in\n%s", w, want, s)
		}
	}
	c := newConsole(t, managedFleet(), 80, 24)
	c.press("3", "/")
	c.typed("web-4")
	c.press("enter")
	if s := c.screen(t); lineOf(s, "why   create: upload base image 43% 120/280 MB") < 0 {
		t.Errorf("the reason does not say it:\n%s", s)
	}
	c.eng.publish(func(s *model.Snapshot) {
		s.Hosts[2].Proxies[3].Managed.Step.Done = 200_000_000
	})
	c.pass(pollEvery)
	if s := c.screen(t); lineOf(s, "upload base image 71% 200/280 MB") < 0 {
		t.Errorf("it stands still:\n%s", s)
	}
}

func TestBudget_words(t *testing.T) {
	c := newConsole(t, fleet(), 80, 24)
	for _, tt := range []struct {
		b           model.BudgetView
		short, long string
		out         bool
	}{
		{model.BudgetView{}, "-", "not known yet", false},
		{model.BudgetView{Used: 2, Of: 5, Window: time.Hour}, "2/5 in 1h", "2 of 5 replacements used in 1h", false},
		{model.BudgetView{Used: 1, Of: 1, Window: 10 * time.Minute, Next: clock().Add(90 * time.Second)}, "1/1 in 10m, next 1m", "1 of 1 replacement used in 10m: used up, the next is free in 1m", true},
		{model.BudgetView{Used: 0, Of: 0, Window: time.Hour}, "0/0 in 1h", "0: nothing is replaced unless an operator asks for it", true},
	} {
		short, long, out := c.budgetWords(tt.b)
		if short != tt.short || long != tt.long || out != tt.out {
			t.Errorf("%+v: %q, %q, %v", tt.b, short, long, out)
		}
	}
}
