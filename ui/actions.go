package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"virdeck/model"
)

// pending is what one key press asked for, until all its Ops have ended.
type pending struct {
	verb    model.Verb
	waiting map[model.OpID]string // target by Op
	done    int
	failed  []string // "target: why"
	result  string   // of the last that ended well
	single  string   // the target, when there is one
}

// settleOps turns Ops that have ended into toasts.
func (m *Model) settleOps() {
	if len(m.pending) == 0 {
		return
	}
	ops := make(map[model.OpID]model.Op, len(m.live.Ops))
	for _, o := range m.live.Ops {
		ops[o.ID] = o
	}
	rest := m.pending[:0]
	for _, p := range m.pending {
		for id, target := range p.waiting {
			o, ok := ops[id]
			if !ok {
				continue
			}
			switch o.State {
			case model.OpQueued, model.OpRunning:
			case model.OpDone:
				p.done++
				p.result = o.Result
				delete(p.waiting, id)
			case model.OpCanceled: // by an operator: no fault, and no success either
				if p.verb == model.VerbCancel || p.single != "" {
					p.done++
					p.result = o.Result
				} else {
					p.failed = append(p.failed, target+": "+o.Result)
				}
				delete(p.waiting, id)
			case model.OpFailed:
				p.failed = append(p.failed, target+": "+o.Result)
				delete(p.waiting, id)
			}
		}
		if len(p.waiting) > 0 {
			rest = append(rest, p)
			continue
		}
		m.tellResult(p)
	}
	m.pending = rest
}

func (m *Model) tellResult(p pending) {
	slices.Sort(p.failed)
	switch {
	case len(p.failed) == 0 && p.single != "":
		m.say(fmt.Sprintf("%s %s: %s", p.verb, p.single, orWord(p.result, "done")))
	case len(p.failed) == 0:
		m.say(fmt.Sprintf("%s: %d done", p.verb, p.done))
	case p.done == 0 && len(p.failed) == 1:
		m.warn(fmt.Sprintf("%s failed: %s", p.verb, p.failed[0]))
	default:
		m.warn(fmt.Sprintf("%s: %d done, %d failed: %s", p.verb, p.done, len(p.failed), strings.Join(p.failed, "; ")))
	}
}

func orWord(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// mayOnlyLook reports whether this session changes nothing, and says so.
func (m *Model) mayOnlyLook() bool {
	if m.opts.ReadOnly {
		m.warn("this session may only look")
	}
	return m.opts.ReadOnly
}

// submit hands commands to the engine and shows at once what became of them.
func (m *Model) submit(cmds ...model.Command) {
	if m.mayOnlyLook() {
		return
	}
	if len(cmds) == 0 {
		return
	}
	p := pending{verb: cmds[0].Verb, waiting: map[model.OpID]string{}}
	var refused []string
	for _, c := range cmds {
		c.By = m.opts.User
		id, err := m.opts.Engine.Submit(c)
		if err != nil {
			refused = append(refused, c.Target()+": "+err.Error())
			continue
		}
		p.waiting[id] = c.Target()
		p.single = c.Target()
	}
	asked := len(p.waiting)
	if asked > 1 {
		p.single = ""
	}
	switch {
	case len(refused) > 0:
		m.warn(fmt.Sprintf("%s refused: %s", p.verb, strings.Join(refused, "; ")))
	case asked == 1:
		m.hint(fmt.Sprintf("%s %s: asked", p.verb, p.single))
	default:
		m.hint(fmt.Sprintf("%s: %d proxies asked", p.verb, asked))
	}
	if asked > 0 {
		m.pending = append(m.pending, p)
	}
	m.poll() // the engine may have published the Op already
}

// here returns the proxy that a key is about when none is marked, and why there
// is none.
func (m *Model) here() (*model.ProxyView, string) {
	name, why := m.nameHere()
	if why != "" {
		return nil, why
	}
	p, _ := m.live.Proxy(name)
	if p == nil {
		return nil, string(name) + " is gone"
	}
	return p, ""
}

func (m *Model) nameHere() (name model.ProxyName, why string) {
	if m.named.proxy != "" {
		return m.named.proxy, ""
	}
	if s := m.topScreen(); s != nil {
		if s.proxy == "" {
			return "", "this page is not about one proxy"
		}
		return s.proxy, ""
	}
	switch m.focus {
	case paneHosts:
		return "", "the keys are on the hosts: tab goes to the proxies"
	case paneLog:
		return "", "the keys are on the log: tab goes to the proxies"
	case paneProxies, paneCount:
	}
	r, ok := m.current()
	if !ok {
		return "", "no proxy is selected"
	}
	if !r.gone.IsZero() {
		return "", fmt.Sprintf("%s is gone since %s", r.key(), age(m.now, r.gone))
	}
	return r.p.Spec.Name, ""
}

// targets returns the proxies that a key is about: the marked ones, else the one
// under the cursor or on the page.
func (m *Model) targets() ([]*model.ProxyView, string) {
	if m.named.proxy == "" && m.topScreen() == nil && len(m.marks) > 0 {
		var out []*model.ProxyView
		for _, h := range m.live.Hosts {
			for _, p := range h.Proxies {
				if _, ok := m.marks[p.Spec.Name]; ok {
					out = append(out, p)
				}
			}
		}
		if len(out) == 0 {
			return nil, "every marked proxy is gone: esc clears the marks"
		}
		slices.SortFunc(out, func(a, b *model.ProxyView) int {
			return compareNames(string(a.Spec.Name), string(b.Spec.Name))
		})
		return out, ""
	}
	p, why := m.here()
	if p == nil {
		return nil, why
	}
	return []*model.ProxyView{p}, ""
}

// hostHere returns the host that a key is about, from the newest snapshot.
func (m *Model) hostHere() (*model.HostView, string) {
	name := model.HostName(m.hosts.sel)
	if m.named.host != "" {
		name = m.named.host
	} else if s := m.topScreen(); s != nil {
		switch {
		case s.host != "":
			name = s.host
		case s.proxy != "":
			if _, h := m.snap.Proxy(s.proxy); h != nil {
				name = h.Name
			}
		default:
			return nil, "this page is not about one host"
		}
	} else if m.all && m.focus == paneProxies {
		if r, ok := m.current(); ok {
			name = r.p.Spec.Host
		}
	}
	if name == "" {
		return nil, "no host is selected"
	}
	h := m.live.Host(name)
	if h == nil {
		return nil, fmt.Sprintf("host %s is gone from the configuration", name)
	}
	return h, ""
}

func command(v model.Verb, p *model.ProxyView) model.Command {
	return model.Command{Verb: v, Host: p.Spec.Host, Proxy: p.Spec.Name}
}

// perProxy returns the commands of one verb for those targets that refuse does
// not exclude. Without any it has said why.
func (m *Model) perProxy(v model.Verb, refuse func(*model.ProxyView) string) []model.Command {
	ps, why := m.targets()
	var cmds []model.Command
	for _, p := range ps {
		if w := cmp.Or(refuse(p), m.refused(command(v, p))); w != "" {
			why = w
			continue
		}
		cmds = append(cmds, command(v, p))
	}
	if len(cmds) == 0 {
		m.hint(why)
	}
	return cmds
}

func (m *Model) reconcile() {
	if m.named.proxy == "" && m.onHost() {
		m.reconcileHost()
		return
	}
	m.submit(m.perProxy(model.VerbReconcile, func(p *model.ProxyView) string {
		if p.Spec.Backing == model.BackingExternal {
			return string(p.Spec.Name) + " is external: no VM to look at, and probed by itself; e explains it"
		}
		return m.linkNotUp(p.Spec.Host)
	})...)
}

// onHost reports whether the keys are on a host, and on no proxy.
func (m *Model) onHost() bool {
	if s := m.topScreen(); s != nil {
		return s.proxy == "" && s.host != ""
	}
	return m.focus == paneHosts && len(m.marks) == 0
}

// linkNotUp says which key helps when a host cannot be asked; empty when it can.
func (m *Model) linkNotUp(name model.HostName) string {
	if h := m.live.Host(name); h != nil && !h.External && h.Link.State != model.LinkUp {
		return fmt.Sprintf("the link of %s is %s: c reconnects it", h.Name, h.Link.State)
	}
	return ""
}

func (m *Model) reconcileHost() {
	h, why := m.hostHere()
	if h == nil {
		m.hint(why)
		return
	}
	if h.External {
		m.hint("external proxies have no host to look at; enter shows their probes")
		return
	}
	if why := m.linkNotUp(h.Name); why != "" {
		m.hint(why)
		return
	}
	m.submit(model.Command{Verb: model.VerbReconcileHost, Host: h.Name})
}

// drain takes proxies out of the rotation: one at once, since D puts it back;
// several, or the last of a pool, after a question, since marks may be out of
// sight.
func (m *Model) drain() {
	cmds := m.perProxy(model.VerbDrain, func(p *model.ProxyView) string {
		if p.Drained {
			return string(p.Spec.Name) + " is drained already; D puts it back"
		}
		return ""
	})
	left, emptied := m.remaining(cmds)
	if len(cmds) <= 1 && !emptied || m.opts.ReadOnly {
		m.submit(cmds...)
		return
	}
	title := "Drain " + string(cmds[0].Proxy) + "?"
	body := []line{text("It leaves the rotation; open connections may finish. D puts it back.", stText)}
	if len(cmds) > 1 {
		title = fmt.Sprintf("Drain %d proxies?", len(cmds))
		body = []line{text("They leave the rotation; open connections may finish. D puts them back.", stText), names(cmds)}
	}
	m.dialog = &dialog{title: clean(title), body: append(body, left...), yes: "drain", do: func(m *Model) { m.submit(cmds...) }}
}

func (m *Model) undrain() {
	m.submit(m.perProxy(model.VerbUndrain, func(p *model.ProxyView) string {
		if !p.Drained {
			return string(p.Spec.Name) + " is not drained"
		}
		return ""
	})...)
}

func (m *Model) toggleMark() {
	if m.focus != paneProxies {
		m.hint("marks are for proxies: tab goes there")
		return
	}
	r, ok := m.current()
	if !ok {
		m.hint("no proxy to mark")
		return
	}
	if !r.gone.IsZero() {
		m.hint(r.key() + " is gone")
		return
	}
	if _, on := m.marks[r.p.Spec.Name]; on {
		delete(m.marks, r.p.Spec.Name)
	} else {
		m.marks[r.p.Spec.Name] = struct{}{}
	}
	m.moveRow(func(l *list) { l.move(1) })
}
