package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"virdeck/model"
)

// reconnect replaces the link of a host: at once when it is not up, since
// nothing is lost by it, and after a question when it is.
func (m *Model) reconnect() {
	h, why := m.hostHere()
	switch {
	case h == nil:
		m.hint(why)
		return
	case h.External:
		m.hint("external proxies have no link: nothing to reconnect")
		return
	case m.mayOnlyLook():
		return
	}
	cmd := model.Command{Verb: model.VerbReconnect, Host: h.Name, SeenGen: h.Link.Generation}
	switch h.Link.State {
	case model.LinkDown, model.LinkConnecting:
		m.submit(cmd)
		return
	case model.LinkDraining:
		m.hint(fmt.Sprintf("the link of %s is being closed for good", h.Name))
		return
	case model.LinkUp:
	}
	gen := h.Link.Generation
	body := []line{
		text(fmt.Sprintf("The link is up since %s (generation %d).", age(m.now, h.Link.Since), gen), stText),
		text(interrupted(h.Link.InFlight), stText),
		text(serving(h), stText),
	}
	m.dialog = &dialog{
		title: "Reconnect the libvirt link of " + clean(string(h.Name)) + "?", body: body, yes: "reconnect",
		do: func(m *Model) { m.submit(cmd) },
		outdated: func(m *Model) string {
			now := m.live.Host(cmd.Host)
			switch {
			case now == nil:
				return fmt.Sprintf("host %s is gone", cmd.Host)
			case now.Link.Generation != gen:
				return fmt.Sprintf("the link of %s was replaced since you asked (generation %d, now %d)",
					cmd.Host, gen, now.Link.Generation)
			}
			return ""
		},
	}
}

func interrupted(calls int) string {
	switch calls {
	case 0:
		return "It is closed and dialled anew; no call is in flight."
	case 1:
		return "It is closed and dialled anew; 1 call in flight is interrupted."
	}
	return fmt.Sprintf("It is closed and dialled anew; %d calls in flight are interrupted.", calls)
}

func serving(h *model.HostView) string {
	n := 0
	for _, p := range h.Proxies {
		if p.Health.InRotation {
			n++
		}
	}
	switch n {
	case 0:
		return "None of its proxies is in rotation."
	case 1:
		return "Its 1 proxy in rotation goes on serving meanwhile."
	}
	return fmt.Sprintf("Its %d proxies in rotation go on serving meanwhile.", n)
}

func (m *Model) restart() {
	m.askVM(model.VerbRestart, "restart", "Its connections break; it comes back after it has booted and passed its probes.",
		func(p *model.ProxyView) string {
			if p.Domain == model.DomainShutoff || p.Domain == model.DomainCrashed {
				return fmt.Sprintf("%s is %s: S starts it", p.Spec.Name, p.Domain)
			}
			return m.noVM(p)
		})
}

// noVM says that there is no VM to act on, of a managed proxy that has none.
func (m *Model) noVM(p *model.ProxyView) string {
	switch {
	case p.Managed == nil || p.Managed.Built && p.Domain != model.DomainMissing:
		return ""
	case p.Managed.Latched:
		return fmt.Sprintf("%s has no VM: the last write failed for good; r tries again", p.Spec.Name)
	case p.Managed.Write != "":
		return fmt.Sprintf("%s has no complete VM: its %s is under way", p.Spec.Name, p.Managed.Write)
	}
	return fmt.Sprintf("%s has no VM; S has it made", p.Spec.Name)
}

func (m *Model) start() {
	says := "The VM boots; it enters the rotation after it has passed its probes."
	if ps, _ := m.targets(); slices.ContainsFunc(ps, func(p *model.ProxyView) bool { return m.noVM(p) != "" }) {
		says = "Where there is no VM, it is made; it boots, and enters the rotation after it has passed its probes."
	}
	m.askVM(model.VerbStart, "start", says,
		func(p *model.ProxyView) string {
			if p.Domain == model.DomainRunning {
				return string(p.Spec.Name) + " runs already; x restarts it"
			}
			return ""
		})
}

func (m *Model) stop() {
	m.askVM(model.VerbStop, "stop", "Its connections break and it leaves the rotation until it is started again.",
		func(p *model.ProxyView) string {
			if p.Domain == model.DomainShutoff || p.Domain == model.DomainCrashed {
				return fmt.Sprintf("%s is %s already", p.Spec.Name, p.Domain)
			}
			return m.noVM(p)
		})
}

// askVM asks before a verb that changes VMs.
func (m *Model) askVM(v model.Verb, word, consequence string, refuse func(*model.ProxyView) string) {
	if m.mayOnlyLook() {
		return
	}
	ps, why := m.targets()
	if why == "" {
		why = m.mayWrite()
	}
	if why != "" {
		m.hint(why)
		return
	}
	var cmds []model.Command
	seen := map[model.ProxyName]model.Incarnation{}
	for _, p := range ps {
		if w := cmp.Or(m.cannotWrite(p), refuse(p), m.refused(command(v, p))); w != "" {
			why = w
			continue
		}
		cmds = append(cmds, command(v, p))
		seen[p.Spec.Name] = p.Incarnation
	}
	if len(cmds) == 0 {
		m.hint(why)
		return
	}
	title := fmt.Sprintf("%s %s on %s?", capital(word), cmds[0].Proxy, cmds[0].Host)
	body := []line{text(consequence, stText)}
	if len(cmds) > 1 {
		title = fmt.Sprintf("%s %d proxies?", capital(word), len(cmds))
		body = append(body, names(cmds))
	}
	if why != "" {
		body = append(body, text("Not among them: "+clean(why), stDim))
	}
	if v != model.VerbStart {
		left, _ := m.remaining(cmds)
		body = append(body, left...)
	}
	m.dialog = &dialog{
		title: clean(title), body: body, yes: word,
		do: func(m *Model) { m.submit(cmds...) },
		outdated: func(m *Model) string {
			for name, inc := range seen {
				p, _ := m.live.Proxy(name)
				switch {
				case p == nil:
					return fmt.Sprintf("%s is gone", name)
				case p.Incarnation != inc:
					return fmt.Sprintf("%s was started or stopped since you asked", name)
				}
			}
			return ""
		},
	}
}

func (m *Model) cannotWrite(p *model.ProxyView) string {
	if p.Spec.Backing == model.BackingExternal {
		return string(p.Spec.Name) + " is external: there is no VM to act on"
	}
	if why := m.linkNotUp(p.Spec.Host); why != "" {
		return why
	}
	if p.Domain == model.DomainMissing && (p.Managed == nil || foreign(p.Managed)) {
		return fmt.Sprintf("%s: its domain is not defined on %s; e explains it", p.Spec.Name, p.Spec.Host)
	}
	return ""
}

// names lists the proxies that commands are about.
func names(cmds []model.Command) line {
	out := make([]string, len(cmds))
	for i, c := range cmds {
		out[i] = string(c.Proxy)
	}
	return text(clean(strings.Join(out, " ")), stStrong)
}

// remaining says what each pool has left in rotation without the proxies that
// commands take out, and whether one has nothing left.
func (m *Model) remaining(cmds []model.Command) (lines []line, emptied bool) {
	without := map[model.ProxyName]bool{}
	for _, c := range cmds {
		without[c.Proxy] = true
	}
	left, touched := map[string]int{}, []string{}
	for _, h := range m.live.Hosts {
		for _, p := range h.Proxies {
			out := without[p.Spec.Name]
			if _, ok := left[p.Spec.Pool]; !ok {
				left[p.Spec.Pool] = 0
			}
			switch {
			case out && p.Health.InRotation:
				touched = append(touched, p.Spec.Pool)
			case !out && p.Health.InRotation:
				left[p.Spec.Pool]++
			}
		}
	}
	done := map[string]bool{}
	for _, pool := range touched {
		if done[pool] {
			continue
		}
		done[pool] = true
		st := stText
		if left[pool] == 0 {
			st, emptied = stBad, true
		}
		lines = append(lines, text(fmt.Sprintf("Pool %s is left with %d in rotation.", clean(orWord(pool, "(none)")), left[pool]), st))
	}
	return lines, emptied
}

func capital(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
