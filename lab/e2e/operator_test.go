//go:build lab

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"virdeck/model"
)

// operator sits at consoles that are killed under their hands, and remembers
// what was acknowledged.
type operator struct {
	t     *testing.T
	p     *pooled
	rnd   *rand.Rand
	term  *terminal
	wants map[string]*wanted
	acked []string // "verb name"
}

// wanted is what holds of a proxy, by the last word that was acknowledged.
type wanted struct {
	wish    string // run, stop, gone
	drained bool
	not     string // uid of a VM that must be gone
	// maybe is what a command would make of it that nobody saw acknowledged.
	maybe *wanted
}

// order is a command by key, and what becomes of a proxy by it.
type order struct {
	verb, key string
	then      func(wanted, string) wanted // of what was, and of its uid
}

// orders returns what can be asked of a proxy.
func orders(w wanted) []order {
	start := order{"start", "S", func(w wanted, _ string) wanted { w.wish = "run"; return w }}
	remove := order{"delete", "DC", func(w wanted, uid string) wanted { w.wish, w.not = "gone", uid; return w }}
	if w.wish == "gone" {
		return []order{start}
	}
	if w.wish == "stop" {
		return []order{start, remove}
	}
	all := []order{
		remove,
		{"stop", "T", func(w wanted, _ string) wanted { w.wish = "stop"; return w }},
		{"recreate", "X", func(w wanted, uid string) wanted { w.not = uid; return w }},
		{"restart", "x", func(w wanted, _ string) wanted { return w }},
		{"drain", "d", func(w wanted, _ string) wanted { w.drained = true; return w }},
	}
	if w.drained {
		all[4] = order{"undrain", "D", func(w wanted, _ string) wanted { w.drained = false; return w }}
	}
	return all
}

// sit opens a console, which is the fleet's engine, in a terminal of its own.
func (o *operator) sit() *engine {
	o.t.Helper()
	o.term = newTerminal(o.t, 120, 40)
	begin, pidFile := time.Now(), o.p.file("pid")
	o.term.run(fmt.Sprintf("(echo $BASHPID >%s; exec %s -c %s)", pidFile, binary(), o.p.config))
	e := watch(o.t, o.p.config, begin)
	pid, err := strconv.Atoi(strings.TrimSpace(o.p.read("pid")))
	if err != nil {
		o.t.Fatal(err)
	}
	if err := os.Remove(pidFile); err != nil {
		o.t.Fatal(err)
	}
	e.kill = func() {
		e.unwatch()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			o.t.Errorf("the console was gone before it was killed: %v\n%s", err, o.term.screen())
		}
		for syscall.Kill(pid, 0) == nil { // its shell sees to it
			pause(o.t, 5*time.Millisecond)
		}
		o.term.close()
	}
	return e
}

// check holds what a restarted virdeck remembers to what was acknowledged.
func (o *operator) check(s *model.Status) {
	o.t.Helper()
	for i := range s.Proxies {
		q := &s.Proxies[i]
		w := o.wants[q.Name]
		if w == nil {
			w = &wanted{wish: "run"}
			o.wants[q.Name] = w
		}
		if w.maybe != nil && w.holds(q) != "" {
			w = w.maybe
		}
		w.maybe = nil
		if not := w.holds(q); not != "" {
			o.t.Errorf("after a kill %s %s; acknowledged were %q", q.Name, not, o.acked)
		}
		o.wants[q.Name] = w
	}
}

// holds says what of it does not hold, as far as a status tells at once.
func (w *wanted) holds(q *model.ProxyStatus) string {
	switch {
	case q.Managed == nil:
		return "is not managed"
	case q.Managed.Wish != w.wish:
		return fmt.Sprintf("has the wish %s, not %s", q.Managed.Wish, w.wish)
	case (q.State == "drained") != w.drained && q.State != "deleting":
		return fmt.Sprintf("is %s; drained: %v", q.State, w.drained)
	}
	return ""
}

// orders gives commands to some proxies, each once. The last one's answer is
// sometimes not waited for.
func (o *operator) order(s *model.Status) {
	o.t.Helper()
	n := 1 + o.rnd.IntN(3)
	for i, at := range o.rnd.Perm(len(s.Proxies)) {
		if i == n {
			return
		}
		q := &s.Proxies[at]
		w := o.wants[q.Name]
		can := orders(*w)
		c := can[o.rnd.IntN(len(can))]
		then := c.then(*w, q.Managed.UID)
		blind := i == n-1 && o.rnd.IntN(3) == 0
		if o.ask(c, q.Name, blind) {
			o.acked = append(o.acked, c.verb+" "+q.Name)
			o.wants[q.Name] = &then
		} else {
			w.maybe = &then
		}
	}
}

// ask gives one command by keys, and reports whether it was acknowledged.
func (o *operator) ask(c order, name string, blind bool) bool {
	o.t.Helper()
	o.term.keys(":")
	o.term.tmux("send-keys", "-l", name)
	o.term.keys("Enter", c.key)
	asked := false
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); pause(o.t, 20*time.Millisecond) {
		screen := o.term.screen()
		last := screen[strings.LastIndex(screen, "\n")+1:]
		switch {
		case strings.Contains(last, c.verb+" "+name+": "):
			return true
		case strings.Contains(screen, "cancel esc") && !asked:
			asked = true
			o.term.keys("y")
			if blind {
				return false
			}
		}
	}
	screen := o.term.screen()
	o.t.Logf("%s %s was not acknowledged: %s", c.verb, name, strings.TrimSpace(screen[strings.LastIndex(screen, "\n")+1:]))
	return false
}

// ended holds when everything is as it is wanted, and nothing is left to do.
func (o *operator) ended(n int) Condition {
	return func(s *model.Status) string {
		if len(s.Proxies) != n {
			return fmt.Sprintf("%d proxies, want %d", len(s.Proxies), n)
		}
		for i := range s.Proxies {
			q := &s.Proxies[i]
			w := o.wants[q.Name]
			if not := w.holds(q); not != "" {
				return q.Name + " " + not
			}
			if q.Managed.UID == w.not && w.wish != "gone" {
				return q.Name + " is still the VM that was to go"
			}
			state := map[string]string{"run": "running", "stop": "shut off", "gone": "missing"}[w.wish]
			if q.DomainState != state {
				return fmt.Sprintf("%s is %s, not %s", q.Name, q.DomainState, state)
			}
			if serves := w.wish == "run" && !w.drained; serves != q.Rotation.In {
				return fmt.Sprintf("%s: in rotation %v; %s", q.Name, q.Rotation.In, proxyLine(q))
			}
		}
		for _, h := range s.Hosts {
			if len(h.Orphans) > 0 {
				return fmt.Sprintf("orphans on %s: %+v", h.Name, h.Orphans)
			}
		}
		if len(s.Plan) > 0 {
			return fmt.Sprintf("something is left to do: %+v", s.Plan)
		}
		return ""
	}
}
