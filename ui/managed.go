package ui

import (
	"fmt"
	"slices"
	"strings"

	"virdeck/model"
)

// reason is why a proxy is in its state: while its VM is written to, how far that
// has come.
func reason(p *model.ProxyView) string {
	v := p.Managed
	if v == nil || v.Write == "" {
		return clean(p.Reason)
	}
	return clean(v.Write) + ": " + orWord(stepWords(v.Step), "begun")
}

// writeCell is a write under way for a cell that has nothing else to say; empty
// if there is none.
func (m *Model) writeCell(p *model.ProxyView, w int) line {
	v := p.Managed
	if v == nil || v.Write == "" {
		return nil
	}
	verb, step := clean(v.Write), clean(v.Step.Step)
	texts := []string{orWord(step, verb), verb}
	if n := percent(v.Step); n >= 0 {
		pct := fmt.Sprintf(" %d%%", n)
		texts = []string{step + pct, verb + pct, pct[1:]}
	}
	return text(firstFit(w, m.th.g.ell, texts...), stBusy)
}

// foreign reports whether a managed VM was adopted first: virdeck did not make it,
// and cannot make it again.
func foreign(v *model.ManagedView) bool { return v.Adopted }

// again says whether a VM that is gone can be made again.
func again(v *model.ManagedView) string {
	if foreign(v) {
		return "; virdeck did not make it, and cannot make it again"
	}
	return "; S makes it again"
}

// managedStory is for those whose VM is being written to, or waits for that.
func (m *Model) managedStory(p *model.ProxyView) story {
	v := p.Managed
	why := "it is declared"
	if v.Plan != "" {
		why = clean(v.Plan)
	}
	switch {
	case v.Write != "":
		return story{
			is:  fmt.Sprintf("%s: %s, for %s so far.", writeWords(v.Write), orWord(stepWords(v.Step), "begun"), orWord(age(m.at, v.WriteFrom), "0s")),
			did: "virdeck does that by itself. It goes on where it was if it is interrupted.",
			can: "Wait; P shows the whole plan, enter its history.",
		}
	case v.Latched:
		return story{
			is:  "A write for its VM failed for good: " + clean(v.LastError) + ".",
			did: "virdeck does not try again by itself until its spec changes.",
			can: "Mend what the host says, then r tries again.",
		}
	case v.Wish == "gone" && p.State != model.StateDeleting && foreign(v):
		return story{is: "An operator had its domain removed.", did: "It is left so: virdeck did not make it, and cannot make it again.", can: "Take it out of the configuration."}
	case v.Wish == "gone" && p.State != model.StateDeleting:
		return story{is: "An operator had its VM deleted; it stays declared.", did: "It is left so.", can: "S makes it again, after a question."}
	case v.LastError != "":
		again := "virdeck tries again by itself"
		if in := m.until(v.RetryAt); in != "" {
			again += " in " + in
		}
		return story{is: "The last write for its VM failed: " + clean(v.LastError) + ".", did: again + ".", can: "r tries now; enter shows the host's words."}
	case p.State == model.StateDeleting:
		return story{is: "It is being removed.", did: "It leaves the rotation first: " + why + ".", can: "Nothing needs doing; P shows the plan."}
	}
	return story{is: "Its VM is not there yet.", did: "It is to be made: " + why + ".", can: "Wait; P shows what is planned and what it waits for. r looks now."}
}

// writeWords says what a write does.
func writeWords(verb string) string {
	switch verb {
	case "create":
		return "Its VM is being made"
	case "start":
		return "Its VM is being started"
	case "delete":
		return "Its VM is being removed"
	}
	return "Its VM is being written to"
}

// managedHint says where more of a managed VM's failure is told.
func managedHint(p *model.ProxyView) string {
	if p.Managed == nil {
		return ""
	}
	return " enter shows it in full."
}

// detailManaged adds what belongs to a managed proxy alone.
func (m *Model) detailManaged(b *pageBuf, v *model.ManagedView) {
	if v == nil {
		return
	}
	b.head("MANAGED VM")
	b.managedNow(v)
	switch {
	case v.Wish == "":
	case v.Built:
		b.kv("wish", seg{clean(v.Wish), stText}, seg{"  " + wishWords(v), stDim})
	default:
		b.kv("wish", seg{clean(v.Wish), stText}, seg{"  it was never complete yet", stDim})
	}
	made := ""
	if !v.CreatedAt.IsZero() {
		made = "  since " + age(m.at, v.CreatedAt)
	}
	if foreign(v) {
		b.kv("template", seg{"none: virdeck did not make this VM, and cannot make it anew", stText})
	} else {
		b.kv("template", seg{clean(v.Template), stText})
		b.kv("spec", specWords(v)...)
	}
	o := v.Owner
	if o.Zero() {
		b.kv("mark", seg{"none has been read", stDim})
	} else {
		b.kv("mark", seg{"fleet " + clean(o.Fleet) + ", phase " + clean(string(o.Phase)), stText}, seg{", created " + age(m.at, o.CreatedAt) + " ago", stDim})
		b.kv("", seg{"controller " + clean(o.Controller), stDim})
		if o.UID != v.UID {
			b.kv("", seg{"its uid is another: " + clean(o.UID), stWarn})
		}
	}
	b.kv("uid", seg{clean(v.UID), stDim}, seg{made, stDim})
}

// managedNow adds what is done to a managed VM, what is wanted, and what failed.
func (b *pageBuf) managedNow(v *model.ManagedView) {
	m := b.m
	if v.Write != "" {
		b.kv("under way", append(line{{clean(v.Write) + " ", stBusy}}, m.progress(v.Step, v.WriteFrom)...)...)
	}
	if v.Plan != "" {
		plan := v.Plan
		if v.LastError != "" { // it stands below, on its own
			plan = strings.TrimSuffix(plan, ": "+v.LastError)
		}
		b.kv("plan", seg{clean(plan), stText})
	} else if v.Write == "" {
		b.kv("plan", seg{"nothing is to be done", stDim})
	}
	if v.LastError == "" {
		return
	}
	st := stWarn
	if v.Latched {
		st = stBad
	}
	b.kv("last error", seg{clean(v.LastError), st})
	fails := ""
	if v.Fails > 1 {
		fails = fmt.Sprintf("; %d writes failed in a row", v.Fails)
	}
	switch in := m.until(v.RetryAt); {
	case v.Latched:
		b.kv("next try", seg{"none before its spec changes, or r asks for one" + fails, stBad})
	case in != "":
		b.kv("next try", seg{"in " + in + fails, stText})
	case fails != "":
		b.kv("", seg{strings.TrimPrefix(fails, "; "), stText})
	}
}

func wishWords(v *model.ManagedView) string {
	switch v.Wish {
	case "run":
		return "it is to be there and to run"
	case "stop":
		return "an operator stopped it; S starts it"
	case "gone":
		return "it is to be removed, or was" + again(v)
	}
	return ""
}

// specWords compares what a VM is made of with what it should be.
func specWords(v *model.ManagedView) line {
	out := line{{"wanted " + clean(orWord(v.SpecHash, "?")), stText}}
	switch v.BuiltHash {
	case "":
		return append(out, seg{", built none yet", stDim})
	case v.SpecHash:
		return append(out, seg{", built the same", stDim})
	}
	return append(out, seg{", built " + clean(v.BuiltHash) + ": another", stWarn})
}

// hostManaged adds the replacement budget of a host, and the domains with our
// mark that nobody declares.
func (m *Model) hostManaged(b *pageBuf, h *model.HostView) {
	if h.External {
		return
	}
	if h.Budget.Window > 0 {
		_, long, out := m.budgetWords(h.Budget)
		st := stText
		if out {
			st = stWarn
		}
		b.kv("budget", seg{long, st})
	}
	if len(h.Orphans) > 0 {
		b.kv("orphans", seg{count(len(h.Orphans), "domain", "domains") + " with our mark that no proxy owns", stWarn})
	}
}

// orphans lists the domains with our mark that no proxy owns.
func (b *pageBuf) orphans(os []model.OrphanView) {
	if len(os) == 0 {
		return
	}
	b.head("ORPHANS: our mark, and no proxy owns them")
	for _, o := range os {
		l := line{{visible(o.Domain), stStrong}}
		if o.Owner.Proxy != "" {
			l = append(l, seg{"  made for " + clean(string(o.Owner.Proxy)), stText})
		}
		if !o.First.IsZero() {
			l = append(l, seg{"  found " + age(b.m.at, o.First) + " ago", stDim})
		}
		if o.Wait != "" {
			l = append(l, seg{"  still there: ", stDim}, seg{clean(o.Wait), stWarn})
		}
		b.wrapped(line{{"   ", stText}}, l)
	}
}

// undeclared lists the domains that no proxy declares.
func (b *pageBuf) undeclared(h *model.HostView) {
	if len(h.Undeclared) == 0 {
		return
	}
	free := adoptable(h)
	b.head("DOMAINS THAT NO PROXY DECLARES")
	if n := len(b.out) - 1; len(free) > 0 {
		b.out[n] = append(b.out[n], seg{": ", stDim}, seg{"A", stKey}, seg{" adopts one", stDim})
	}
	for _, d := range h.Undeclared {
		l := text(visible(d), stText)
		if !slices.Contains(free, d) {
			l = append(l, seg{"  an orphan: see above", stDim})
		}
		b.wrapped(line{{"   ", stText}}, l)
	}
}

// visible is a name from outside, or words where nothing of it can be seen.
func visible(s string) string { return orWord(clean(s), "(a name of invisible characters)") }
