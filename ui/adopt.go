package ui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"virdeck/model"
)

// The fields of the form, in their order.
const (
	fName = iota
	fPort
	fProbe
	fPool
	fUser
	fPassword
	fFields
)

// form asks what a domain is to be when it is adopted. Its plan stands above its
// fields; nothing is sent before the question that follows it.
type form struct {
	host   model.HostName
	domain string
	at     int // field that has the keys
	fields [fFields]textinput.Model
	probe  model.ProbeKind
}

var fieldNames = [fFields]string{"name", "port", "probe", "pool", "user", "password"}

// adoptable returns the domains of a host that could be adopted: those that no
// proxy declares and that do not carry our mark.
func adoptable(h *model.HostView) []string {
	var out []string
	for _, d := range h.Undeclared {
		if !slices.ContainsFunc(h.Orphans, func(o model.OrphanView) bool { return o.Domain == d }) {
			out = append(out, d)
		}
	}
	return out
}

// adopt begins the adoption of a domain of the host that the keys are on: of the
// only one at once, of one of several by name.
func (m *Model) adopt() tea.Cmd {
	h, why := m.hostHere()
	switch {
	case m.mayOnlyLook():
	case h == nil:
		m.hint(why)
	case h.External:
		m.hint("external proxies have no domains")
	default:
		switch ds := adoptable(h); len(ds) {
		case 0:
			m.hint(string(h.Name) + " has no domain that could be adopted: all are declared, or carry our mark")
		case 1:
			return m.openForm(h.Name, ds[0])
		default:
			return m.openPaletteAt("adopt ", h.Name)
		}
	}
	return nil
}

// openForm opens the form for a domain.
func (m *Model) openForm(host model.HostName, domain string) tea.Cmd {
	if m.mayOnlyLook() {
		return nil
	}
	f := &form{host: host, domain: domain}
	for i := range f.fields {
		in := textinput.New()
		in.CharLimit = 100
		in.KeyMap.Paste.SetEnabled(false)
		f.fields[i] = in
	}
	if checkName(domain) == "" {
		f.fields[fName].SetValue(domain)
	}
	f.fields[fPort].SetValue("3128")
	f.fields[fPool].SetValue("default")
	m.form = f
	return f.focus(fName)
}

// focus gives the keys to a field.
func (f *form) focus(i int) tea.Cmd {
	f.fields[f.at].Blur()
	f.at = min(max(i, 0), fFields-1)
	f.fields[f.at].CursorEnd()
	return f.fields[f.at].Focus()
}

func (f *form) value(i int) string { return clean(f.fields[i].Value()) }

// formKey handles a key while the form has them.
func (m *Model) formKey(msg tea.KeyPressMsg) tea.Cmd {
	f := m.form
	switch msg.String() {
	case "esc":
		m.form = nil
		m.hint("nothing done")
		return nil
	case "up", "shift+tab":
		return f.focus(f.at - 1)
	case "down", "tab":
		return f.focus(f.at + 1)
	case "enter":
		if f.at < fFields-1 {
			return f.focus(f.at + 1)
		}
		m.askAdopt()
		return nil
	case "ctrl+s":
		m.askAdopt()
		return nil
	}
	if f.at == fProbe {
		switch msg.String() {
		case "space", "left", "right", "h", "c":
			f.probe = map[bool]model.ProbeKind{true: model.ProbeConnect, false: model.ProbeHTTP}[f.probe == model.ProbeHTTP]
		default:
			m.hint("space changes the probe")
		}
		return nil
	}
	var cmd tea.Cmd
	f.fields[f.at], cmd = f.fields[f.at].Update(msg)
	return cmd
}

// paste puts a text into the field that has the keys.
func (f *form) paste(s string) tea.Cmd {
	if f.at == fProbe {
		return nil
	}
	var cmd tea.Cmd
	f.fields[f.at], cmd = f.fields[f.at].Update(tea.PasteMsg{Content: clean(s)})
	return cmd
}

// spec returns what the form says, or what is wrong with it and where.
func (m *Model) formSpec() (spec model.ProxySpec, field int, wrong string) {
	f := m.form
	name := f.value(fName)
	if wrong := checkName(name); wrong != "" {
		return spec, fName, wrong
	}
	if p, h := m.live.Proxy(model.ProxyName(name)); p != nil {
		return spec, fName, fmt.Sprintf("there is a proxy %s already, on %s", name, h.Name)
	}
	for _, pool := range m.live.Pools {
		if _, is := (model.PoolSpec{Name: pool.Name}).Ordinal(model.ProxyName(name)); is {
			return spec, fName, fmt.Sprintf("a member of pool %s may be called %s", clean(pool.Name), name)
		}
	}
	port, err := strconv.ParseUint(f.value(fPort), 10, 16)
	if err != nil || port == 0 {
		return spec, fPort, "the port is a number from 1 to 65535"
	}
	pool := f.value(fPool)
	if wrong := checkName(pool); wrong != "" {
		return spec, fPool, "the pool: " + wrong
	}
	// Not cleaned: a password may be anything.
	creds := model.Credentials{User: f.fields[fUser].Value(), Password: f.fields[fPassword].Value()}
	switch {
	case creds.User == "" && creds.Password != "":
		return spec, fUser, "a password needs a user"
	case strings.Contains(creds.User, ":"):
		return spec, fUser, "a user has no colon in it"
	case creds.User != "" && creds.Password == "":
		return spec, fPassword, "a user needs a password"
	}
	return model.ProxySpec{
		Name: model.ProxyName(name), Host: f.host, Backing: model.BackingAdopted, Domain: f.domain,
		Port: uint16(port), Probe: f.probe, Creds: creds, Pool: pool,
	}, 0, ""
}

// checkName says what is wrong with a name, by the rule of the configuration.
func checkName(s string) string {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' }
	switch {
	case s == "":
		return "a name is needed"
	case len(s) > 63 || strings.ContainsFunc(s, bad) || strings.ContainsAny(s[:1], ".-"):
		return "a name has a to z, 0 to 9, dots and -, begins with a letter or digit, and is no longer than 63"
	}
	return ""
}

// askAdopt asks whether what the form says is to be done. No goes back to the
// form.
func (m *Model) askAdopt() {
	spec, field, wrong := m.formSpec()
	if wrong != "" {
		m.form.focus(field)
		m.hint(wrong)
		return
	}
	cmd := model.Command{Verb: model.VerbAdopt, Host: spec.Host, Adopt: &spec}
	if why := m.refused(cmd); why != "" {
		m.hint(why)
		return
	}
	m.dialog = &dialog{
		title: clean(fmt.Sprintf("Adopt domain %s on %s as %s?", spec.Domain, spec.Host, spec.Name)),
		body: []line{
			text(fmt.Sprintf("It is probed with %s on port %d, credentials %s, and enters the rotation of pool %s when its probes pass.",
				spec.Probe, spec.Port, clean(spec.Creds.String()), spec.Pool), stText),
			text(untouched, stText)},
		yes: "adopt",
		do:  func(m *Model) { m.form = nil; m.submit(cmd) },
		outdated: func(m *Model) string {
			h := m.live.Host(spec.Host)
			switch p, _ := m.live.Proxy(spec.Name); {
			case h == nil:
				return fmt.Sprintf("host %s is gone", spec.Host)
			case p != nil:
				return fmt.Sprintf("there is a proxy %s now", spec.Name)
			case !slices.Contains(adoptable(h), spec.Domain):
				return fmt.Sprintf("domain %s cannot be adopted any more: it is gone, declared, or marked", spec.Domain)
			}
			return ""
		},
	}
}

// What adoption does to a domain, and what it does not.
const (
	touched   = "Its addresses are read and it is probed. The response timeout of its guest agent is set, unless that is turned off."
	untouched = "Its definition, disks, metadata and power are not touched. virdeck never starts, stops or deletes it of its own accord; an operator can start, stop and restart it by key."
	kept      = "Remembered in virdeck's store, not in the configuration file. :release forgets it again."
)

// drawForm returns the box of the form, and the cell of the cursor in it.
func (m *Model) drawForm(maxW int) (box []line, x, y int) {
	f := m.form
	w := max(min(maxW-6, 66), 10)
	body := wrapLines(w, text(clean(fmt.Sprintf("Adopt domain %s on %s", f.domain, f.host)), stStrong))
	plan := &pageBuf{m: m, w: w + 1}
	plan.wrapped(text("will  ", stDim), text(touched, stText))
	plan.wrapped(text("not   ", stDim), text(untouched, stText))
	plan.wrapped(text("kept  ", stDim), text(kept, stDim))
	body = body[:1]
	// The field that has the keys, and the way on, are always in sight: of the
	// other fields and of the plan, what fits. The question that follows says it
	// again.
	room := max(m.h-1-2-len(body)-1, 1)
	shown := min(fFields, room)
	if spare := room - shown; spare > 0 {
		body = append(body, plan.out[:min(spare, len(plan.out))]...)
		if spare > len(plan.out) {
			body = append(body, nil)
		}
	}
	first := min(max(f.at-shown+1, 0), fFields-shown)
	for i := first; i < first+shown; i++ {
		cur, st := "  ", stText
		if i == f.at {
			cur, st = "> ", stStrong
		}
		val := f.value(i)
		if i == fPassword {
			val = strings.Repeat("*", len([]rune(f.fields[i].Value())))
		}
		more := ""
		switch i {
		case fProbe:
			val, more = f.probe.String(), "  space changes it"
		case fUser, fPassword:
			if val == "" {
				more = "(none)"
			}
		}
		head := line{{cur, stStrong}, {pad(fieldNames[i], 10), stDim}}
		if i == f.at {
			pos := min(f.fields[i].Position(), len([]rune(val)))
			left := cutLeft(string([]rune(val)[:pos]), w-head.width()-2, m.th.g.ell)
			x, y = head.width()+cells(left), len(body)
			if pos < len([]rune(val)) {
				left += string([]rune(val)[pos:])
			}
			val = left
		}
		body = append(body, append(head, seg{val, st}, seg{more, stDim}))
	}
	body = append(body, line{{"enter", stKey}, {" next, then asks   ", stDim}, {"esc", stKey}, {" nothing", stDim}})
	return m.box(body, w), x + 2, y + 1
}
