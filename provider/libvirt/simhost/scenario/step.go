package scenario

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"virdeck/provider/libvirt/simhost"
)

// step is one [[step]]: the parameters of all actions. Which of them an action
// takes is said in its entry.
type step struct {
	At    time.Duration `toml:"at"`
	What  string        `toml:"what"`
	Whom  words         `toml:"whom"`
	Title string        `toml:"title"`
	For   time.Duration `toml:"for"`

	Proc         simhost.Proc   `toml:"proc"`
	Code         int            `toml:"code"`
	Message      string         `toml:"message"`
	Times        int            `toml:"times"`
	Delay        time.Duration  `toml:"delay"`
	Jitter       time.Duration  `toml:"jitter"`
	Mode         string         `toml:"mode"`
	User         string         `toml:"user"`
	Password     string         `toml:"password"`
	Banner       string         `toml:"banner"`
	Reason       string         `toml:"reason"`
	Name         string         `toml:"name"`
	Address      []netip.Prefix `toml:"address"`
	Interfaces   words          `toml:"interfaces"`
	Network      string         `toml:"network"`
	Bridge       string         `toml:"bridge"`
	Gateway      []netip.Prefix `toml:"gateway"`
	NoDHCP       bool           `toml:"no_dhcp"`
	MAC          string         `toml:"mac"`
	Pool         string         `toml:"pool"`
	MiB          int            `toml:"mib"`
	Expires      span           `toml:"expires"`
	By           time.Duration  `toml:"by"`
	Lease        span           `toml:"boot_lease"`
	Agent        span           `toml:"boot_agent"`
	AgentAddress span           `toml:"boot_agent_address"`
	Proxy        span           `toml:"boot_proxy"`

	action action
	hosts  []string // whom it happens to, hosts
	guests []string // and guests, as "host/name"
	cards  []simhost.Interface
	given  map[string]bool
}

// text says what happens, for people.
func (s *step) text() string {
	if s.Title != "" {
		return s.Title
	}
	if len(s.Whom) == 0 {
		return s.What
	}
	return strings.Join(s.Whom, ", ") + ": " + s.What
}

// target is what an action can happen to.
type target int

const (
	onHost target = 1 << iota
	onGuest
	onNobody // the origin, of which there is one
)

// step reads one [[step]] and checks it against what there is.
func (d *document) step(e entry, s *Scenario) (step, bool) {
	before := len(d.problems)
	st := step{given: map[string]bool{}}
	d.fill(e, &st)
	for k := range e.has {
		st.given[k] = true
	}
	switch {
	case !e.gives("at"):
		d.problem(e.key("at"), "is missing; when it happens, such as \"12s\"")
	case st.At < 0:
		d.problem(e.key("at"), "is before the beginning")
	case s.Repeat > 0 && st.At >= s.Repeat:
		d.problem(e.key("at"), "%s is not before the end of a round, %s", st.At, s.Repeat)
	}
	if st.What == "" {
		d.problem(e.key("what"), "is missing; allowed: %s", strings.Join(Actions(), ", "))
		return st, false
	}
	found := d.actions[st.What]
	if found == nil {
		d.problem(e.key("what"), "%s", unknown("action", st.What, Actions()))
		return st, false
	}
	on := d.whom(e, s, &st, found)
	for _, a := range found {
		if a.on&on != 0 {
			st.action = a
		}
	}
	if st.action.run == nil {
		return st, false // whom has said why
	}
	d.parameters(e, &st)
	if len(d.problems) == before && st.action.check != nil {
		if key, msg := st.action.check(s, &st); msg != "" {
			d.problem(e.key(key), "%s", msg)
		}
	}
	return st, len(d.problems) == before
}

// whom resolves whom a step happens to, and returns which kind they are.
func (d *document) whom(e entry, s *Scenario, st *step, found []action) target {
	var can target
	for _, a := range found {
		can |= a.on
	}
	if can&onNobody != 0 {
		if e.gives("whom") {
			d.problem(e.key("whom"), "%s happens to nobody in particular", st.What)
		}
		return onNobody
	}
	if len(st.Whom) == 0 {
		d.problem(e.key("whom"), "is missing; want %s", wanted(can))
		return 0
	}
	for _, w := range st.Whom {
		isGuest := strings.Contains(w, "/")
		if isGuest && can&onGuest == 0 || !isGuest && can&onHost == 0 {
			d.problem(e.key("whom"), "%s happens to %s, and %q is none", st.What, wanted(can), w)
			return 0
		}
		if !isGuest {
			if !slices.Contains(s.hostNames(), w) {
				d.problem(e.key("whom"), "%s", unknown("host", w, s.hostNames()))
				return 0
			}
			st.hosts = append(st.hosts, w)
			continue
		}
		ids := s.find(w)
		if len(ids) == 0 {
			d.problem(e.key("whom"), "%s", unknown("guest", w, s.guestNames()))
			return 0
		}
		st.guests = append(st.guests, ids...)
	}
	switch {
	case len(st.hosts) > 0 && len(st.guests) > 0:
		d.problem(e.key("whom"), "hosts and guests in one step")
		return 0
	case len(st.hosts) > 0:
		return onHost
	}
	return onGuest
}

func wanted(can target) string {
	switch can {
	case onHost:
		return "a host, such as \"kvm2\""
	case onGuest:
		return "a guest, such as \"kvm2/p-07\""
	case onNobody:
		return "nobody"
	}
	return "a host or a guest, such as \"kvm2\" or \"kvm2/p-07\""
}

// parameters checks that a step gives what its action needs, and nothing else.
func (d *document) parameters(e entry, st *step) {
	known := fieldsOf(st) // of a key that is none of these fill has complained
	takes := append([]string{"at", "what", "whom", "title"}, slices.Concat(st.action.needs, st.action.takes)...)
	for _, k := range slices.Sorted(maps.Keys(e.has)) {
		if _, ok := known[k]; ok && !slices.Contains(takes, k) {
			d.problem(e.key(k), "%s takes none; it takes: %s", st.What, strings.Join(takes[4:], ", "))
		}
	}
	for _, k := range st.action.needs {
		if !e.gives(k) {
			d.problem(e.key(k), "is missing; %s needs it", st.What)
		}
	}
	if e.gives("for") && st.For <= 0 {
		d.problem(e.key("for"), "want more than nothing")
	}
	for k, v := range map[string]time.Duration{"delay": st.Delay, "jitter": st.Jitter} {
		if v < 0 {
			d.problem(e.key(k), "want zero or more")
		}
	}
	for _, text := range st.Interfaces {
		card, msg := parseCard(text)
		if msg != "" {
			d.problem(e.key("interfaces"), "%s", msg)
			return
		}
		st.cards = append(st.cards, card)
	}
}

// parseCard reads "eth0 52:54:00:00:00:01 10.0.0.21/24 ...". A MAC of "-" is none.
func parseCard(text string) (simhost.Interface, string) {
	f := strings.Fields(text)
	if len(f) < 2 {
		return simhost.Interface{}, fmt.Sprintf("%q is not a card such as \"eth0 52:54:00:00:00:01 10.0.0.21/24\"", text)
	}
	card := simhost.Interface{Name: f[0], MAC: f[1]}
	if card.MAC == "-" {
		card.MAC = ""
	}
	for _, a := range f[2:] {
		p, err := netip.ParsePrefix(a)
		if err != nil {
			return card, fmt.Sprintf("%q is not an address with its prefix length, such as \"10.0.0.21/24\"", a)
		}
		card.Addrs = append(card.Addrs, p)
	}
	return card, ""
}
