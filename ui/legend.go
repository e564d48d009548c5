package ui

import (
	"strings"

	"virdeck/model"
)

// term is one thing that the screen shows, and what it means; more is secondary.
type term struct {
	show line
	is   string
	more string
}

// legend explains every sign, mark, word and column, in sections.
func (m *Model) legend() []section {
	g := m.th.g
	t := func(s, is string) term { return term{show: text(s, stText), is: is} }
	w := func(s, is string) term { return term{show: text(s, stWarn), is: is} }
	states := section{title: "STATE"}
	for _, s := range []model.State{model.StateReady, model.StateTransient, model.StateProvisioning, model.StateUnproven, model.StateDemoted,
		model.StateDrained, model.StatePending, model.StateFailed, model.StateDeleting} {
		states.terms = append(states.terms, term{text(g.sign(s)+" "+s.String(), stateStyle(s)), stateMeaning(s), ""})
	}
	marks := section{title: "MARKS beside a state"}
	for _, mk := range []model.Mark{model.MarkHeld, model.MarkStale, model.MarkUnverified, model.MarkWriteFailed, model.MarkConflict} {
		_, is, _ := strings.Cut(markMeaning(mk), ": ")
		marks.terms = append(marks.terms, term{text(string(rune(mk))+" "+mk.Word(), stWarn), is, ""})
	}
	bars := strings.Join(g.bars[:4], "")
	return []section{states, marks,
		{title: "LEASE AGENT ARP: what each source last said", terms: []term{
			t(".21", "the chosen address, its last part; +1: and another one"),
			w("10.0.0.77", "another address than the chosen one; other: not even of its network"),
			t("empty", "it answered, and knows no address"),
			w("86 not up", "libvirt's error code: 86 the agent, 55 not running, 68 timeout, 1 internal"),
			t("n/a", "it cannot know this VM, or is turned off"),
			w("not asked", "there was no room to ask, for a reason of ours"),
			w("link down", "the host could not be asked"),
			t("-", "never asked"),
			t("4s", "after any of these: how old it is"),
		}},
		{title: "PROBE: a real request through the proxy", terms: []term{
			t("34ms", "how long the last one took"),
			{text(bars+" "+g.miss, stReady), "one bar a probe, newest at the right: up to 25ms, then twice as much a step; " + g.miss + " failed", ""},
			t("98%", "share of those shown that passed"),
			w("407", "wants other credentials than configured"),
			w("refused", "nobody listens; timeout: no answer in time"),
			w("502", "the proxy answers, and does not get out"),
			w("not a proxy", "something else answers"),
			w("target: us:", "the target's fault, or this machine's: counts against no proxy"),
		}},
		{title: "ROTATION", terms: []term{
			t("in, out", "whether clients get it; - it has no address"),
			w("kept", "in, though its VM cannot be read just now"),
			w("passes 1/2", "probes passed in a row, of those needed to enter"),
			w("held 0/3", "address polls that named none, of those after which it may be cleared"),
			w("waits", "due to leave, until a witness says whose fault it is"),
			t("stop 2s root", "what an operator has asked for, since when, who"),
		}},
		{title: "HOSTS", terms: []term{
			t("LINK", "the one connection: up, connecting, DOWN, silent, MISCONFIGURED; since when"),
			t("PROXIES", "how many in which state; kept: in rotation all the same"),
			t("AGENT", "4/5 ok: so many guest agents answered when last asked"),
			t("CALLS", "1/4: calls under way, of those allowed at once"),
			t("CLOCK", "the host's against ours, from the leases; "+g.about+"1s: right, as far as can be told"),
			t("gen 3", "third connection since the start; 2.1ms: its round trip"),
			w("retry 3s", "dialled again in; then the last error, verbatim"),
		}},
		{title: "PLAN AND MANAGED VMs", terms: []term{
			{text(g.bar(43, 4)+" 43%", stBusy), "how far a step has come, where its bytes are counted", ""},
			t("2/5 in 1h", "replacements used, of those allowed in that time: per pool, and per host"),
			t("IN 3 OF 5", "members in the rotation, of those declared; MEMBERS: those that are there"),
			t("counted", "it counts against the replacement budget"),
			w("waits", "why it is not done yet"),
			w("1 orphan", "a domain with our mark that no proxy owns: removed after a grace"),
		}},
		{title: "OTHER SIGNS", terms: []term{
			t(">", "the cursor"),
			w("*", "marked: r, d, x and the like act on all marked"),
			{text(g.focus, stTitle), "this pane has the keys", ""},
			w("!", "in the log: a warning; in a line at the bottom: an error, until a key"),
			{text(g.miss, stBad), "in the log: an error", ""},
			t(g.dot, "in the log: evidence, an item each"),
			t(g.arrow, "from one state to another; on a proxy's page: this source named the address"),
		}},
	}
}

func stateMeaning(s model.State) string {
	switch s {
	case model.StateDeleting:
		return "is being removed"
	case model.StateDrained:
		return "taken out by an operator"
	case model.StateFailed:
		return "a change to its VM was refused for good, and no VM serves"
	case model.StateDemoted:
		return "was in rotation, and is out on evidence"
	case model.StateTransient:
		return "the last read of its VM failed and says nothing: all is kept, rotation too"
	case model.StateProvisioning:
		return "its VM runs, and no source names an address yet"
	case model.StatePending:
		return "declared, and not seen running"
	case model.StateUnproven:
		return "has an address, and has not passed enough probes"
	case model.StateReady:
		return "its address is known, its probes pass: in rotation"
	}
	return ""
}
