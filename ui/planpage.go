package ui

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"virdeck/model"
)

// planShown bounds the items of one group on the page: a filter finds the others.
const planShown = 200

// planPage shows what is wanted and not yet so: what would be done and why,
// before it is done.
func (m *Model) planPage(w int, filter string) []line {
	b := &pageBuf{m: m, w: w}
	s := m.snap
	if s.DryRun {
		b.add(text("   a dry run: this is planned, and nothing is written to any host", stWarn))
	}
	b.reloadNotice()
	if len(s.Pools) > 0 {
		b.pools(s.Pools)
	}
	var under, due, wait []model.PlanItem
	for _, it := range s.Plan {
		switch {
		case !matchesPlan(it, filter):
		case !it.Since.IsZero():
			under = append(under, it)
		case it.Wait == "":
			due = append(due, it)
		default:
			wait = append(wait, it)
		}
	}
	switch {
	case len(s.Plan) == 0:
		b.head("PLAN")
		b.add(text("   nothing is to be done", stDim))
		b.add(m.heldOff(s))
	case len(under)+len(due)+len(wait) == 0:
		b.head("PLAN")
		b.add(text("   no item has these words; esc clears them", stDim))
	default:
		cols := m.planColumns(slices.Concat(under, due, wait), w)
		b.planGroup("UNDER WAY", "nothing", under, cols)
		b.planGroup("DUE", "nothing", due, cols)
		b.planGroup("WAITING", "nothing", wait, cols)
	}
	return b.out
}

// matchesPlan reports whether an item has every word of a filter.
func matchesPlan(it model.PlanItem, filter string) bool {
	all := strings.ToLower(strings.Join([]string{string(it.Verb), planTarget(it), string(it.Host), it.Why, it.Wait, it.Step.Step}, " "))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(filter)), func(w string) bool { return !strings.Contains(all, w) })
}

func planTarget(it model.PlanItem) string { return orWord(string(it.Proxy), it.Domain) }

// reloadNotice adds what the configuration file has that is not applied.
func (b *pageBuf) reloadNotice() {
	n, ok := b.m.reloadNotice()
	if !ok {
		return
	}
	b.head("CONFIGURATION FILE, not applied")
	st := stText
	if n.Level != model.NoticeInfo {
		st = stWarn
	}
	b.wrapped(line{{"   ", stText}}, text(clean(n.Text), st))
	for _, l := range n.Plan {
		b.wrapped(line{{"   " + b.m.th.g.dot + " ", stDim}}, text(clean(l), stText))
	}
	b.wrapped(line{{"   ", stText}}, text("ctrl+r reads and applies it, after a question", stDim))
}

// pools adds a line for each pool, and below it what the pool waits for.
func (b *pageBuf) pools(pools []model.PoolView) {
	const (
		pool = iota
		in
		declared
		members
		budget
		template
		placement
	)
	b.head("POOLS")
	cols := []col{
		pool:      {"POOL", 4, 4, 24, 99},
		in:        {"IN", 2, 3, 4, 98},
		declared:  {"OF", 2, 3, 4, 97},
		members:   {"MEMBERS", 7, 7, 7, 80},
		budget:    {"BUDGET", 8, 12, 26, 85},
		template:  {"TEMPLATE", 8, 8, 20, 60},
		placement: {"PLACEMENT", 9, 9, 200, 70},
	}
	for _, p := range pools {
		cols[pool].want = min(max(cols[pool].want, cells(clean(p.Name))), 24)
		cols[template].want = min(max(cols[template].want, cells(clean(p.Template))), 20)
		short, _, _ := b.m.budgetWords(p.Budget)
		cols[budget].want = min(max(cols[budget].want, cells(short)), 26)
		cols[placement].want = min(max(cols[placement].want, cells(placed(p))), 60)
	}
	for i := range cols[:placement] {
		cols[i].max = cols[i].want // no wider than what it has to say: columns stay together
	}
	cols[pool].min = min(cols[pool].want, 12)
	gap := gapFor(b.w) + 1
	lead := text("   ", stText)
	widths := allot(cols, b.w-len("   ")-1, gap)
	b.add(b.m.assemble(lead, widths, gap, titles(cols)))
	for _, p := range pools {
		b.add(b.m.assemble(lead, widths, gap, func(c, _ int) line {
			switch c {
			case pool:
				return text(clean(p.Name), stStrong)
			case in:
				st := stReady
				if p.In < p.Count {
					st = stWarn
				}
				return text(fmt.Sprint(p.In), st)
			case declared:
				return text(fmt.Sprint(p.Count), stText)
			case members:
				return text(fmt.Sprint(p.Members), stText)
			case budget:
				short, _, out := b.m.budgetWords(p.Budget)
				if out {
					return text(short, stWarn)
				}
				return text(short, stText)
			case template:
				return text(clean(p.Template), stDim)
			}
			return text(placed(p), stDim)
		}))
		for _, why := range p.Wait {
			b.wrapped(line{{"     waits  ", stDim}}, text(clean(why), stWarn))
		}
	}
}

// placed says how many members are on which host.
func placed(p model.PoolView) string {
	hosts := slices.SortedFunc(maps.Keys(p.Placement), func(a, b model.HostName) int { return compareNames(string(a), string(b)) })
	var out []string
	for _, h := range hosts {
		out = append(out, fmt.Sprintf("%s %d", clean(string(h)), p.Placement[h]))
	}
	return strings.Join(out, "  ")
}

// planColumns returns the widths of verb, target and host; in a narrow window the
// host goes, whose column has no width then.
func (m *Model) planColumns(items []model.PlanItem, w int) []int {
	cols := []col{{"", 4, 4, 13, 99}, {"", 4, 4, 0, 98}, {"", 4, 4, 0, 50}}
	for _, it := range items {
		for i, s := range []string{planVerb(it.Verb, w), planTarget(it), string(it.Host)} {
			cols[i].want = max(cols[i].want, cells(clean(s)))
		}
	}
	cols[0].want = min(cols[0].want, 13)
	cols[1].want = min(cols[1].want, max(w/5, 12))
	cols[2].want = min(cols[2].want, max(w/8, 8))
	for i := range cols {
		cols[i].min, cols[i].max = cols[i].want, cols[i].want
	}
	return allot(cols, w/2, 2)
}

// planGroup adds the items of one group, a row each.
func (b *pageBuf) planGroup(title, none string, items []model.PlanItem, widths []int) {
	b.head(title)
	if len(items) == 0 {
		b.add(text("   "+none, stDim))
		return
	}
	for _, it := range items[:min(len(items), planShown)] {
		head := b.m.assemble(text("   ", stText), widths, 2, func(c, _ int) line {
			switch c {
			case 0:
				return text(planVerb(it.Verb, b.w), planStyle(it.Verb))
			case 1:
				return text(clean(planTarget(it)), stStrong)
			}
			return text(clean(string(it.Host)), stText)
		})
		b.wrapped(append(head, seg{"  ", stText}), b.m.planWords(it))
	}
	if n := len(items) - planShown; n > 0 {
		b.add(text(fmt.Sprintf("   and %d more: / finds one", n), stDim))
	}
}

// planWords is how far an item has come, or what it waits for, and why it is
// wanted.
func (m *Model) planWords(it model.PlanItem) line {
	var out line
	switch {
	case !it.Since.IsZero():
		out = m.progress(it.Step, it.Since)
	case it.Wait != "":
		out = line{{"waits: ", stDim}, {clean(it.Wait), stWarn}}
	case it.Dry:
		out = text("not done: this is a dry run", stWarn)
	}
	if it.Why != "" {
		why := line{{clean(it.Why), stText}}
		if len(out) > 0 {
			why = append(line{{m.th.g.dot + " ", stDim}}, seg{clean(it.Why), stDim})
		}
		out = join("  ", out, why)
	}
	if it.Counted {
		out = append(out, seg{"  counted", stDim})
	}
	return out
}

// planVerb is the word for a verb in a window of w cells.
func planVerb(v model.PlanVerb, w int) string {
	if v == model.PlanOrphan && w < 100 {
		return "orphan"
	}
	return clean(string(v))
}

func planStyle(v model.PlanVerb) styleID {
	switch v {
	case model.PlanCreate, model.PlanStart, model.PlanStop, model.PlanRestart:
		return stBusy
	case model.PlanDelete, model.PlanReplace, model.PlanOrphan:
		return stDemoted
	case model.PlanDrain:
		return stWarn
	case model.PlanNothing:
	}
	return stText
}

// heldOff says why nothing is to be done: all is as it is declared, but for what an
// operator has stopped or removed.
func (m *Model) heldOff(s *model.Snapshot) line {
	var off []string
	for _, h := range s.Hosts {
		for _, p := range h.Proxies {
			if p.Managed != nil && p.Managed.Wish != "run" {
				off = append(off, clean(string(p.Spec.Name)))
			}
		}
	}
	if len(off) == 0 {
		return text("   everything managed is as it is declared", stDim)
	}
	return text("   stopped or removed by an operator, S makes or starts it: "+strings.Join(off, " "), stText)
}
