package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"virdeck/internal/problem"
	"virdeck/provider/libvirt/simhost"
)

// maxFile bounds what is read.
const maxFile = 16 << 20

// A Scenario is a file that has been read: what there is, and what happens to
// it. It is immutable, and may be built any number of times.
type Scenario struct {
	Title string
	// Repeat is how long a round takes, after which it all begins anew; zero
	// means that it happens once. What a step does is undone by no round's end.
	Repeat time.Duration

	seed     uint64
	hosts    []host
	networks []network
	guests   []guest
	pools    []pool
	steps    []step
	later    []string // networks that a step defines, on any host
}

// The tables of a file.
type (
	host struct {
		Name        string `toml:"name"`
		MaxRequests int    `toml:"max_requests"`
		Workers     int    `toml:"workers"`
		ReadOnly    bool   `toml:"read_only"`
		bare        bool   // has networks of its own: not the default one
	}
	network struct {
		Host      string         `toml:"host"`
		Name      string         `toml:"name"`
		Bridge    string         `toml:"bridge"`
		Gateway   []netip.Prefix `toml:"gateway"`
		NoDHCP    bool           `toml:"no_dhcp"`
		LeaseTime time.Duration  `toml:"lease_time"`
	}
)

// Load reads a scenario from a file; see Parse.
func Load(file string, base *Scenario) (*Scenario, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, Problems{{File: file, Msg: "cannot be read: " + reason(err)}}
	case !info.Mode().IsRegular(): // a device or a pipe may never end
		return nil, Problems{{File: file, Msg: "cannot be read: it is not a regular file"}}
	case info.Size() > maxFile:
		return nil, Problems{{File: file, Msg: fmt.Sprintf("is longer than %d MiB", maxFile>>20)}}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, Problems{{File: file, Msg: "cannot be read: " + reason(err)}}
	}
	return Parse(file, data, base)
}

func reason(err error) string {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

// Parse reads a scenario; file is its name in messages. A file that declares no
// hosts happens to those of base, if one is given. The error, if any, is
// Problems.
func Parse(file string, data []byte, base *Scenario) (*Scenario, error) {
	if line := tooDeep(string(data)); line > 0 {
		return nil, Problems{{File: file, Line: line, Msg: fmt.Sprintf("nested too deep; allowed: %d levels", maxDepth)}}
	}
	var tree map[string]any
	if _, err := toml.Decode(string(data), &tree); err != nil {
		return nil, Problems{syntaxProblem(file, err)}
	}
	d := &document{file: file, lines: findLines(string(data)), actions: actions(), rooms: map[string]*room{}}
	s := &Scenario{}
	top := entry{has: map[string]any{}}
	arrays := map[string][]entry{}
	for _, k := range slices.Sorted(maps.Keys(tree)) {
		switch k {
		case "host", "network", "guest", "pool", "step":
			arrays[k] = d.tables(k, tree[k])
		default:
			switch tree[k].(type) {
			case map[string]any, []map[string]any:
				d.problem(place{table: k}, "%s", unknown("table", k, []string{"guest", "host", "network", "pool", "step"}))
				continue
			}
			top.has[k] = tree[k]
		}
	}
	head := struct {
		Title  string        `toml:"title"`
		Repeat time.Duration `toml:"repeat"`
		Seed   int           `toml:"seed"`
	}{}
	d.fill(top, &head)
	s.Title, s.Repeat, s.seed = head.Title, head.Repeat, uint64(head.Seed)
	if s.Repeat < 0 || top.gives("repeat") && s.Repeat < time.Second {
		d.problem(place{key: "repeat"}, "want at least one second")
	}
	d.cast(s, arrays)
	if len(s.hosts) == 0 && base != nil {
		if len(arrays["network"])+len(arrays["guest"]) > 0 {
			d.problem(place{}, "has networks or guests, and no [[host]]")
		}
		s.seed, s.hosts, s.networks, s.guests, s.pools = base.seed, base.hosts, base.networks, base.guests, base.pools
	}
	for _, e := range arrays["step"] {
		if name, ok := e.has["network"].(string); ok && e.has["what"] == "define-network" {
			s.later = append(s.later, name)
		}
	}
	for _, e := range arrays["step"] {
		if st, ok := d.step(e, s); ok {
			s.steps = append(s.steps, st)
		}
	}
	slices.SortStableFunc(s.steps, func(a, b step) int { return int(a.At - b.At) })
	if len(d.problems) > 0 {
		return nil, problem.Sorted(d.problems)
	}
	return s, nil
}

func syntaxProblem(file string, err error) Problem {
	p := Problem{File: file, Msg: "not TOML: " + oneLine(strings.TrimPrefix(err.Error(), "toml: "))}
	if pe, ok := errors.AsType[toml.ParseError](err); ok {
		p.Line, p.Msg = pe.Position.Line, "not TOML: "+oneLine(pe.Message)
	}
	return p
}

// cast reads hosts, networks, guests and pools.
func (d *document) cast(s *Scenario, arrays map[string][]entry) {
	names := map[string]bool{}
	for _, e := range arrays["host"] {
		var h host
		d.fill(e, &h)
		if d.named(e, h.Name, names, h.Name) {
			s.hosts = append(s.hosts, h)
		}
	}
	for _, e := range arrays["network"] {
		var n network
		d.fill(e, &n)
		d.named(e, n.Name, names, n.Host+"/network/"+n.Name)
		if i := slices.IndexFunc(s.hosts, func(h host) bool { return h.Name == n.Host }); i >= 0 {
			s.hosts[i].bare = true
		}
		d.onHost(e, n.Host, s)
		if e.gives("lease_time") && n.LeaseTime < time.Second {
			d.problem(e.key("lease_time"), "%s is out of range; allowed: from \"1s\" on", n.LeaseTime)
		}
		if len(n.Gateway) != 1 {
			d.problem(e.key("gateway"), "want the host's address on the network, such as \"192.168.122.1/24\"")
			continue
		}
		s.networks = append(s.networks, n)
	}
	for _, e := range arrays["guest"] {
		guests := d.guest(e, s, names)
		s.guests = append(s.guests, guests...)
		d.fit(e, s, guests)
	}
	for _, e := range arrays["pool"] {
		d.pool(e, s, names)
	}
}

// named checks that a name is there, fit, and given once.
func (d *document) named(e entry, name string, names map[string]bool, id string) bool {
	switch {
	case name == "":
		d.problem(e.key("name"), "is missing")
	case strings.ContainsAny(name, "/*"):
		d.problem(e.key("name"), "%q has a / or a *", name)
	case names[id]:
		d.problem(e.key("name"), "%q is declared twice", name)
	default:
		names[id] = true
		return true
	}
	return false
}

func (d *document) onHost(e entry, name string, s *Scenario) {
	if !slices.Contains(s.hostNames(), name) {
		d.problem(e.key("host"), "%s", unknown("host", name, s.hostNames()))
	}
}

func (s *Scenario) hostNames() []string {
	out := make([]string, len(s.hosts))
	for i, h := range s.hosts {
		out[i] = h.Name
	}
	return out
}

// networksOf returns the networks that a host has when it begins.
func (s *Scenario) networksOf(on string) []network {
	var out []network
	for _, n := range s.networks {
		if n.Host == on {
			out = append(out, n)
		}
	}
	if slices.ContainsFunc(s.hosts, func(h host) bool { return h.Name == on && !h.bare }) {
		n := simhost.DefaultNetwork()
		out = append(out, network{Host: on, Name: n.Name, Gateway: []netip.Prefix{n.Gateway}})
	}
	return out
}

// hasNetwork says whether a host has a network when it begins.
func (s *Scenario) hasNetwork(on, name string) bool {
	return slices.ContainsFunc(s.networksOf(on), func(n network) bool { return n.Name == name })
}

// room is how many addresses a network has to give, and how many guests want one.
type room struct{ has, want int }

// fit checks that there is an address for each guest that is to be given one.
func (d *document) fit(e entry, s *Scenario, guests []guest) {
	if len(guests) == 0 || guests[0].Bridge != "" || len(guests[0].Address) > 0 {
		return
	}
	host, name := guests[0].Host, cmp.Or(guests[0].Network, simhost.DefaultNetwork().Name)
	r := d.rooms[host+"/"+name]
	if r == nil {
		i := slices.IndexFunc(s.networksOf(host), func(n network) bool { return n.Name == name && !n.NoDHCP })
		if i < 0 {
			return
		}
		r = &room{has: after(s.networksOf(host)[i].Gateway[0])}
		d.rooms[host+"/"+name] = r
	}
	had := r.want
	if r.want += len(guests); r.want > r.has && had <= r.has {
		d.problem(e.key("count"), "network %q has %d addresses after its host's, and %d guests want one", name, r.has, r.want)
	}
}

// after counts the addresses of a network that follow one of them, up to a
// number beyond all that are wanted.
func after(p netip.Prefix) int {
	n := 0
	for a := p.Addr().Next(); n < 1<<20 && p.Contains(a); a = a.Next() {
		n++
	}
	return n
}
