package ui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"virdeck/model"
)

// planInDialog is how many lines of a plan a question shows; the page of the plan
// has all.
const planInDialog = 8

// reloadNotice returns what the newest snapshot says of a configuration file that
// is not applied.
func (m *Model) reloadNotice() (model.Notice, bool) {
	i := slices.IndexFunc(m.live.Notices, func(n model.Notice) bool { return n.Reload })
	if i < 0 {
		return model.Notice{}, false
	}
	return m.live.Notices[i], true
}

// reload applies the configuration file, after a question that shows what that
// changes. Without an announced change there is nothing that could be shown, and
// nothing is offered.
func (m *Model) reload() {
	if m.mayOnlyLook() {
		return
	}
	n, ok := m.reloadNotice()
	if !ok {
		m.hint("no change of the configuration file has been announced: nothing to apply")
		return
	}
	body := []line{text(clean(n.Text), stText)}
	for i, l := range n.Plan {
		if i == planInDialog {
			body = append(body, text(fmt.Sprintf("and %d more: P lists all", len(n.Plan)-i), stDim))
			break
		}
		body = append(body, line{{m.th.g.dot + " ", stDim}, {clean(l), stText}})
	}
	body = append(body, text("What does not change keeps its state and its place in the rotation. A bad file changes nothing.", stDim))
	title, yes := "Apply the configuration file?", "apply"
	if len(n.Plan) == 0 { // it cannot be applied as it is
		title, yes = "Read the configuration file again?", "read again"
	}
	m.dialog = &dialog{
		title: title, body: body, yes: yes,
		do: func(m *Model) { m.submit(model.Command{Verb: model.VerbReload}) },
		outdated: func(m *Model) string {
			if now, ok := m.reloadNotice(); !ok || now.Text != n.Text || !slices.Equal(now.Plan, n.Plan) {
				return "the configuration file, or what it would change, is another since you asked"
			}
			return ""
		},
	}
}

// queued returns the operations that have not begun, oldest first.
func (m *Model) queued() []model.Op {
	var out []model.Op
	for _, o := range m.live.Ops {
		if o.State == model.OpQueued {
			out = append(out, o)
		}
	}
	return out
}

// cancel withdraws an operation that has not begun: the only one after a
// question, one of several by name.
func (m *Model) cancel() tea.Cmd {
	switch ops := m.queued(); {
	case m.mayOnlyLook():
	case len(ops) == 0:
		m.hint("no operation is queued: what has begun is not called off")
	case len(ops) == 1:
		m.askCancel(ops[0].ID)
	default:
		return m.openPaletteAt("cancel ", "")
	}
	return nil
}

// askCancel asks before an operation is withdrawn: it may be somebody else's.
func (m *Model) askCancel(id model.OpID) {
	if m.mayOnlyLook() {
		return
	}
	find := func(m *Model) (model.Op, string) {
		for _, o := range m.live.Ops {
			if o.ID != id {
				continue
			}
			what := o.Command.Verb.String() + " of " + o.Command.Target()
			switch {
			case !o.Ended.IsZero() || o.State == model.OpDone || o.State == model.OpFailed || o.State == model.OpCanceled:
				return o, what + " has ended already"
			case o.State != model.OpQueued:
				return o, what + " has begun: " + orWord(o.Phase, "it is not called off")
			}
			return o, ""
		}
		return model.Op{}, "there is no such operation any more"
	}
	o, why := find(m)
	if why != "" {
		m.hint(why)
		return
	}
	who := clean(orWord(o.Command.By, "somebody"))
	if o.Command.By == m.opts.User {
		who += " (you)"
	}
	body := []line{text(fmt.Sprintf("%s asked for it %s ago; it has not begun.", who, orWord(age(m.now, o.Created), "0s")), stText)}
	if o.Joined > 0 {
		body = append(body, text(count(o.Joined, "equal request was", "equal requests were")+" folded into it.", stWarn))
	}
	m.dialog = &dialog{
		title: clean("Withdraw " + o.Command.Verb.String() + " of " + o.Command.Target() + "?"), body: body, yes: "withdraw",
		do: func(m *Model) {
			m.submit(model.Command{Verb: model.VerbCancel, Op: id, Host: o.Command.Host, Proxy: o.Command.Proxy})
		},
		outdated: func(m *Model) string {
			_, why := find(m)
			return why
		},
	}
}

// cancelName is what the palette calls the withdrawal of an operation.
func cancelName(o model.Op) string {
	return clean(strings.TrimSpace("cancel " + o.Command.Verb.String() + " " + o.Command.Target()))
}
