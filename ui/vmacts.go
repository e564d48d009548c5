package ui

import (
	"cmp"
	"fmt"
	"strings"

	"virdeck/model"
)

// recreate has other VMs take the place of managed ones.
func (m *Model) recreate() {
	m.askManaged(model.VerbRecreate, "Make %s anew", "recreate", func(p *model.ProxyView) string {
		if foreign(p.Managed) {
			return fmt.Sprintf("%s was adopted: virdeck did not make its VM and cannot make it anew", p.Spec.Name)
		}
		return ""
	}, func(n int) string {
		return its(n, "It leaves the rotation at once, and what is open through it breaks (d drains it first); its VM is removed with its disk, and all that is on it is lost. Another VM with another identity takes its place.",
			"They leave the rotation at once, and what is open through them breaks (d drains them first); their VMs are removed with their disks, and all that is on them is lost. Other VMs with other identities take their places.")
	})
}

// remove removes managed VMs, which stay declared.
func (m *Model) remove() {
	m.askManaged(model.VerbDelete, "Delete the VM of %s", "delete", func(p *model.ProxyView) string {
		if p.Managed.Wish == "gone" {
			return fmt.Sprintf("%s is being removed, or was, already%s", p.Spec.Name, again(p.Managed))
		}
		return ""
	}, func(n int) string {
		return its(n, "It leaves the rotation and drains; then its VM is removed with the disk that virdeck made, and all that is on it is lost. It stays declared: S makes it again.",
			"They leave the rotation and drain; then their VMs are removed with the disks that virdeck made, and all that is on them is lost. They stay declared: S makes them again.")
	})
}

// foreignWords is what deleting means for VMs that virdeck did not make.
func foreignWords(names []string) string {
	return its(len(names), "It leaves the rotation and drains; then its domain is removed for good. virdeck did not make it: disks that it did not make stay, and it cannot be made again.",
		"They leave the rotation and drain; then their domains are removed for good. virdeck did not make them: disks that it did not make stay, and they cannot be made again.")
}

func its(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// mayWrite says why nothing can be written to any host from here; empty if it can.
func (m *Model) mayWrite() string {
	if m.live.DryRun {
		return "this is a dry run: nothing is written to any host"
	}
	return ""
}

// askManaged asks before a verb that removes VMs. One needs a yes; several need a
// name that has to be typed.
func (m *Model) askManaged(v model.Verb, title, word string, refuse func(*model.ProxyView) string, consequence func(n int) string) {
	if m.mayOnlyLook() {
		return
	}
	ps, why := m.targets()
	if w := m.mayWrite(); w != "" && len(ps) > 0 {
		ps, why = nil, w
	}
	var cmds []model.Command
	var others []string // whose VMs virdeck did not make
	uids, pools := map[model.ProxyName]string{}, map[string]bool{}
	for _, p := range ps {
		w := ""
		if p.Managed == nil {
			w = fmt.Sprintf("%s is %s: only VMs that virdeck made are removed or made anew", p.Spec.Name, p.Spec.Backing)
		} else {
			w = cmp.Or(refuse(p), m.refused(command(v, p)))
		}
		if w != "" {
			why = w
			continue
		}
		if foreign(p.Managed) {
			others = append(others, clean(string(p.Spec.Name)))
		}
		cmds = append(cmds, command(v, p))
		uids[p.Spec.Name], pools[p.Spec.Pool] = p.Managed.UID, true
	}
	if len(cmds) == 0 {
		m.hint(why)
		return
	}
	body := []line{text(consequence(len(cmds)-len(others)), stText)}
	switch {
	case len(others) == len(cmds):
		body = []line{text(foreignWords(others), stText)}
	case len(others) > 0:
		body = append(body, text(strings.Join(others, " ")+": "+foreignWords(others), stWarn))
	}
	d := &dialog{yes: word, title: fmt.Sprintf(title, cmds[0].Proxy) + fmt.Sprintf(" on %s?", cmds[0].Host)}
	if len(cmds) > 1 {
		d.title = strings.Replace(fmt.Sprintf(title, fmt.Sprintf("%d proxies", len(cmds)))+"?", "the VM of", "the VMs of", 1)
		d.wants = m.nameOf(pools)
		body = append(body, names(cmds))
	}
	if why != "" {
		body = append(body, text("Not among them: "+clean(why), stDim))
	}
	left, _ := m.remaining(cmds)
	body = append(body, left...)
	d.title, d.body = clean(d.title), append(body, m.budgetLines(v, cmds)...)
	d.do = func(m *Model) { m.submit(cmds...) }
	d.outdated = func(m *Model) string {
		for name, uid := range uids {
			p, _ := m.live.Proxy(name)
			switch {
			case p == nil:
				return fmt.Sprintf("%s is gone", name)
			case p.Managed == nil:
				return fmt.Sprintf("%s is not managed any more", name)
			case p.Managed.UID != uid:
				return fmt.Sprintf("%s has another VM since you asked", name)
			}
		}
		return ""
	}
	m.dialog = d
}

// nameOf is what must be typed before several VMs are removed: the name of the
// pool that they are all of, else that of the fleet.
func (m *Model) nameOf(pools map[string]bool) string {
	if len(pools) == 1 {
		for p := range pools {
			if p = clean(p); p != "" {
				return p
			}
		}
	}
	return orWord(clean(m.live.Fleet), "fleet")
}

// budgetLines say what a verb takes of the replacement budgets, and which hosts
// cannot be asked just now.
func (m *Model) budgetLines(v model.Verb, cmds []model.Command) (out []line) {
	done := map[model.HostName]bool{}
	for _, c := range cmds {
		h := m.live.Host(c.Host)
		if h == nil || done[c.Host] {
			continue
		}
		done[c.Host] = true
		if v == model.VerbRecreate && h.Budget.Window > 0 {
			short, _, _ := m.budgetWords(h.Budget)
			out = append(out, text(fmt.Sprintf("It counts against the budget of %s (%s), which does not hold what an operator asks for.", clean(string(h.Name)), short), stDim))
		}
		if why := m.linkNotUp(c.Host); why != "" {
			out = append(out, text("It waits: "+clean(why)+".", stWarn))
		}
	}
	return out
}

// release lets go of an adopted or promoted proxy, without touching its VM.
func (m *Model) release() {
	m.askOne(model.VerbRelease, func(p *model.ProxyView) string {
		switch {
		case p.Spec.Backing == model.BackingExternal:
			return string(p.Spec.Name) + " is external: take it out of the configuration"
		case p.Managed != nil && !foreign(p.Managed):
			return string(p.Spec.Name) + " was made by virdeck: take it out of the configuration, or delete it"
		case p.Managed != nil:
			return m.mayWrite()
		}
		return ""
	}, func(p *model.ProxyView) (string, []line) {
		domain := clean(p.Spec.Domain)
		if p.Managed != nil {
			return "Release %s?", []line{
				text("virdeck takes its mark off domain "+domain+" and changes nothing else of it. The VM goes on as it is.", stText),
				text("From then on it is adopted again: observed and probed, and not started, stopped or deleted by virdeck of its own accord.", stText)}
		}
		left, _ := m.remaining([]model.Command{command(model.VerbRelease, p)})
		return "Release %s?", append([]line{
			text("It leaves the rotation and is forgotten: its drain, its history, user and password. Domain "+domain+" is left as it is.", stText),
			text("One that the configuration declares is refused: take it out there.", stDim)}, left...)
	})
}

// manage marks the domain of an adopted proxy as ours.
func (m *Model) manage() {
	m.askOne(model.VerbManage, func(p *model.ProxyView) string {
		switch {
		case p.Managed != nil:
			return string(p.Spec.Name) + " is managed already"
		case p.Spec.Backing == model.BackingExternal:
			return string(p.Spec.Name) + " is external: it has no VM that could be marked"
		case m.mayWrite() != "":
			return m.mayWrite()
		}
		return m.cannotWrite(p)
	}, func(p *model.ProxyView) (string, []line) {
		return "Manage %s?", []line{
			text("virdeck writes its mark (fleet, controller, a new uid) into the metadata of domain "+clean(p.Spec.Domain)+", and changes nothing else of it now.", stText),
			text("From then on virdeck starts it again by itself when it stops, within the budget, and an operator can delete it: the domain goes then; disks that virdeck did not make stay.", stText),
			text("It is never made anew, since virdeck did not make it. :release takes the mark off again.", stDim)}
	})
}

// askOne asks before a verb about the one proxy under the cursor or on the page;
// marks do not count.
func (m *Model) askOne(v model.Verb, refuse func(*model.ProxyView) string, words func(*model.ProxyView) (string, []line)) {
	if m.mayOnlyLook() {
		return
	}
	p, why := m.here()
	if p != nil {
		why = cmp.Or(refuse(p), m.refused(command(v, p)))
	}
	if why != "" {
		m.hint(why)
		return
	}
	title, body := words(p)
	cmd, domain, backing := command(v, p), p.Spec.Domain, p.Spec.Backing
	m.dialog = &dialog{
		title: clean(fmt.Sprintf(title, fmt.Sprintf("%s on %s", p.Spec.Name, p.Spec.Host))), body: body, yes: v.String(),
		do: func(m *Model) { m.submit(cmd) },
		outdated: func(m *Model) string {
			now, _ := m.live.Proxy(cmd.Proxy)
			switch {
			case now == nil:
				return fmt.Sprintf("%s is gone", cmd.Proxy)
			case now.Spec.Domain != domain || now.Spec.Backing != backing:
				return fmt.Sprintf("%s is %s now, domain %s: not as it was when you asked", cmd.Proxy, now.Spec.Backing, now.Spec.Domain)
			}
			return ""
		},
	}
}
