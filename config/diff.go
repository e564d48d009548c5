package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"virdeck/model"
)

// ChangeKind is what becomes of something.
type ChangeKind int

// The kinds.
const (
	Added ChangeKind = iota
	Removed
	Changed
)

// String returns the word used in logs.
func (k ChangeKind) String() string {
	switch k {
	case Added:
		return "added"
	case Removed:
		return "removed"
	case Changed:
		return "changed"
	}
	return "unknown"
}

// Change is what another configuration does to one thing.
type Change struct {
	Kind ChangeKind
	Name string   // of the host, template, pool, proxy or section
	Keys []string // the settings that differ, by name; of Changed alone
	Text string   // in words, for the operator; no secrets
}

// Changes are what another configuration does, by what it does it to; each by
// name.
type Changes struct {
	Hosts     []Change
	Templates []Change
	Pools     []Change
	Proxies   []Change // the declared ones; members of pools are in Pools
	Health    []Change
	Settings  []Change // of the controller and the budget
	Restart   []Change // what takes effect at the next start only
}

// Empty reports whether there is no change: the files may still differ.
func (c Changes) Empty() bool { return len(c.All()) == 0 }

// All returns all changes.
func (c Changes) All() []Change {
	return slices.Concat(c.Hosts, c.Templates, c.Pools, c.Proxies, c.Health, c.Settings, c.Restart)
}

// Lines returns the words of all changes.
func (c Changes) Lines() []string {
	var out []string
	for _, x := range c.All() {
		out = append(out, x.Text)
	}
	return out
}

// Diff returns what applying b would change where a is applied. It is semantic:
// order, spelling, and where a text or secret is read from make no difference.
// Both are as Parse returns them.
func Diff(a, b *Config) Changes {
	var out Changes
	out.Hosts = diffNamed("host", byName(a.Hosts, hostName), byName(b.Hosts, hostName), diffWords[Host]{
		added:   func(h *Host) string { return h.URI },
		removed: func(*Host) string { return "not connected to any more" },
	})
	d := differ{a: a, b: b, ta: a.TemplatesByName(), tb: b.TemplatesByName()}
	out.Templates = diffNamed("template", byName(a.Templates, templateName), byName(b.Templates, templateName), diffWords[Template]{
		changed: func(_, t *Template, _ []string) string { return d.usersOf(t.Name) },
	})
	out.Pools = diffNamed("pool", byName(a.Pools, poolName), byName(b.Pools, poolName), diffWords[Pool]{
		added: func(p *Pool) string {
			return fmt.Sprintf("%s of template %s on %s", members(p.Count), p.Template, strings.Join(p.Hosts, ", "))
		},
		removed: func(p *Pool) string {
			if p.Count == 0 {
				return ""
			}
			return "its " + members(p.Count) + " drain and are deleted"
		},
		changed: d.pool,
	})
	out.Proxies = diffNamed("proxy", byName(a.Proxies, proxyName), byName(b.Proxies, proxyName), diffWords[Proxy]{
		added: addedProxy, removed: removedProxy, changed: d.proxy,
	})
	out.Health = append(diffSection("health", a.Health, b.Health, &out.Restart),
		diffNamed("health.target", byName(a.Health.Targets, targetName), byName(b.Health.Targets, targetName), diffWords[Target]{})...)
	out.Settings = slices.Concat(
		diffSection("fleet", a.Fleet, b.Fleet, &out.Restart),
		diffSection("controller", a.Controller, b.Controller, &out.Restart),
		diffSection("budget", a.Budget, b.Budget, &out.Restart),
		diffSection("link", a.Link, b.Link, &out.Restart),
		diffSection("ui", a.UI, b.UI, &out.Restart),
		diffSection("log", a.Log, b.Log, &out.Restart),
	)
	return out
}

func hostName(h *Host) string         { return h.Name }
func templateName(t *Template) string { return t.Name }
func poolName(p *Pool) string         { return p.Name }
func proxyName(p *Proxy) string       { return p.Name }
func targetName(t *Target) string     { return t.URL }

func byName[T any](list []T, name func(*T) string) map[string]*T {
	out := make(map[string]*T, len(list))
	for i := range list {
		out[name(&list[i])] = &list[i]
	}
	return out
}

// diffWords say what follows from a change, where that is not plain; nil or empty
// texts say nothing.
type diffWords[T any] struct {
	added, removed func(*T) string
	changed        func(a, b *T, keys []string) string
}

func diffNamed[T any](kind string, a, b map[string]*T, w diffWords[T]) []Change {
	all := map[string]bool{}
	for name := range a {
		all[name] = true
	}
	for name := range b {
		all[name] = true
	}
	var out []Change
	for _, name := range slices.SortedFunc(maps.Keys(all), natural) {
		old, now := a[name], b[name]
		c := Change{Name: name}
		more := ""
		switch {
		case old == nil:
			c.Kind, c.Text = Added, "added"
			if w.added != nil {
				more = w.added(now)
			}
		case now == nil:
			c.Kind, c.Text = Removed, "removed"
			if w.removed != nil {
				more = w.removed(old)
			}
		default:
			c.Kind = Changed
			if c.Keys, c.Text = differences(*old, *now, every); len(c.Keys) == 0 {
				continue
			}
			if w.changed != nil {
				more = w.changed(old, now, c.Keys)
			}
		}
		c.Text = kind + " " + name + ": " + c.Text
		if more != "" {
			c.Text += ": " + more
		}
		out = append(out, c)
	}
	return out
}

// natural puts p-9 before p-10.
func natural(a, b string) int {
	return cmp.Or(strings.Compare(strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// diffSection returns the change of a section, and adds to restart what of it takes
// one.
func diffSection[T any](name string, a, b T, restart *[]Change) []Change {
	change := func(waiting bool, more string) []Change {
		keys, text := differences(a, b, func(key string) bool { return waits(name, key) == waiting })
		if len(keys) == 0 {
			return nil
		}
		return []Change{{Kind: Changed, Name: name, Keys: keys, Text: name + ": " + text + more}}
	}
	*restart = append(*restart, change(true, ": takes a restart")...)
	return change(false, "")
}

func members(n int) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}

// differ knows both configurations, for what follows from one change elsewhere.
type differ struct {
	a, b   *Config
	ta, tb map[string]model.Template
}

// rebuilt reports whether VMs of the one kind are replaced by those of the other.
func (d *differ) rebuilt(ta string, pa int, tb string, pb int) bool {
	a := model.BuildSpec{Template: d.ta[ta], Port: uint16(pa)} //nolint:gosec // checked
	b := model.BuildSpec{Template: d.tb[tb], Port: uint16(pb)} //nolint:gosec // checked
	return a.Hash() != b.Hash()
}

// usersOf says what becomes of the VMs of a template that has changed.
func (d *differ) usersOf(name string) string {
	var out []string
	pools, proxies := byName(d.a.Pools, poolName), byName(d.a.Proxies, proxyName)
	for i := range d.b.Pools {
		p := &d.b.Pools[i]
		if old := pools[p.Name]; old != nil && p.Template == name && old.Template == name && old.Count > 0 && p.Count > 0 && d.rebuilt(name, p.Port, name, p.Port) {
			out = append(out, fmt.Sprintf("the members of pool %s are replaced, %s", p.Name, pace(p)))
		}
	}
	for i := range d.b.Proxies {
		p := &d.b.Proxies[i]
		if old := proxies[p.Name]; old != nil && p.Template == name && old.Template == name && d.rebuilt(name, p.Port, name, p.Port) {
			out = append(out, fmt.Sprintf("the VM of proxy %s is replaced", p.Name))
		}
	}
	return strings.Join(out, "; ")
}

// pace is how members are replaced.
func pace(p *Pool) string {
	if p.Surge == 0 {
		return "one at a time, in place"
	}
	return fmt.Sprintf("at most %d at once", p.Surge)
}

func (d *differ) pool(a, b *Pool, keys []string) string {
	var out []string
	if n := b.Count - a.Count; n > 0 {
		out = append(out, members(n)+" more")
	} else if n < 0 {
		out = append(out, members(-n)+" fewer, the highest first: they drain and are deleted")
	}
	if (slices.Contains(keys, "template") || slices.Contains(keys, "port")) && min(a.Count, b.Count) > 0 && d.rebuilt(a.Template, a.Port, b.Template, b.Port) {
		out = append(out, "members are replaced, "+pace(b))
	}
	gone := slices.DeleteFunc(slices.Clone(a.Hosts), func(h string) bool { return slices.Contains(b.Hosts, h) })
	if len(gone) > 0 && min(a.Count, b.Count) > 0 {
		out = append(out, fmt.Sprintf("members on %s are replaced elsewhere, %s", strings.Join(gone, ", "), pace(b)))
	}
	return strings.Join(out, "; ")
}

func backing(p *Proxy) model.Backing {
	switch {
	case p.Managed():
		return model.BackingManaged
	case p.External():
		return model.BackingExternal
	}
	return model.BackingAdopted
}

func addedProxy(p *Proxy) string {
	switch backing(p) {
	case model.BackingManaged:
		return fmt.Sprintf("a VM of template %s is made on host %s", p.Template, p.Host)
	case model.BackingExternal:
		return "address " + p.Address
	case model.BackingAdopted:
	}
	return fmt.Sprintf("domain %s on host %s is observed", p.Domain, p.Host)
}

func removedProxy(p *Proxy) string {
	switch backing(p) {
	case model.BackingManaged:
		return "it drains and its VM is deleted"
	case model.BackingExternal:
		return ""
	case model.BackingAdopted:
	}
	return fmt.Sprintf("domain %s on host %s is left as it is", p.Domain, p.Host)
}

func (d *differ) proxy(a, b *Proxy, keys []string) string {
	was, is := backing(a), backing(b)
	switch {
	case is == model.BackingExternal && was == model.BackingManaged:
		return fmt.Sprintf("was managed, is %s; its VM is deleted", is)
	case was != is:
		return fmt.Sprintf("was %s, is %s", was, is)
	case is != model.BackingManaged:
		return ""
	case slices.Contains(keys, "host"):
		return "its VM is deleted there, and made here"
	case (slices.Contains(keys, "template") || slices.Contains(keys, "port")) && d.rebuilt(a.Template, a.Port, b.Template, b.Port):
		return "its VM is replaced"
	}
	return ""
}
