package providertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"virdeck/model"
)

// Seen is one thing that a source said in a situation.
type Seen struct {
	Situation string `json:"situation"`
	Source    string `json:"source"`
	Kind      string `json:"kind"`
	Code      int    `json:"code,omitempty"` // libvirt's
	// Passing marks a situation that goes by while it is looked at, such as a
	// boot: a look may miss what another one catches.
	Passing bool `json:"passing,omitempty"`
}

// String is the line for a message.
func (s Seen) String() string {
	said := s.Kind
	if s.Code != 0 {
		said = fmt.Sprintf("%s %d", s.Kind, s.Code)
	}
	return fmt.Sprintf("%s: %s: %s", s.Situation, s.Source, said)
}

func compareSeen(a, b Seen) int {
	return cmp.Or(cmp.Compare(a.Situation, b.Situation), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Code, b.Code))
}

// Record is the set of what was seen. It is for one goroutine at a time.
type Record struct {
	seen map[Seen]bool
	// Lacking are the cases that did not run, since the rig cannot do what
	// they need.
	Lacking []string
}

// Add notes what each source said.
func (r *Record) Add(situation string, passing bool, outcomes []model.Outcome) {
	if r.seen == nil {
		r.seen = map[Seen]bool{}
	}
	for _, o := range outcomes {
		r.seen[Seen{Situation: situation, Source: o.Source.String(), Kind: o.Kind.String(), Code: o.Code, Passing: passing}] = true
	}
}

// All returns the set in order.
func (r *Record) All() []Seen { return slices.SortedFunc(maps.Keys(r.seen), compareSeen) }

// Says reports whether a source ever gave an outcome of that kind.
func (r *Record) Says(src model.Source, kind model.OutcomeKind) bool {
	for s := range r.seen {
		if s.Source == src.String() && s.Kind == kind.String() {
			return true
		}
	}
	return false
}

// file is the form in which a record is kept.
type file struct {
	Daemon string `json:"daemon"` // what was looked at: "libvirt 9.0.0, QEMU 7.2"
	Seen   []Seen `json:"seen"`
}

// WriteFile keeps the record; daemon says of what.
func (r *Record) WriteFile(path, daemon string) error {
	data, err := json.MarshalIndent(file{Daemon: daemon, Seen: r.All()}, "", "\t")
	if err != nil {
		return fmt.Errorf("record of %s: %w", daemon, err)
	}
	return os.WriteFile(path, append(data, '\n'), 0o644) //nolint:gosec // test data for everyone
}

// ReadFile returns a record that was kept, and of what it is.
func ReadFile(path string) (seen []Seen, daemon string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, "", fmt.Errorf("record %s: %w", path, err)
	}
	return f.Seen, f.Daemon, nil
}

// Compare holds a simulation to the real thing: one line for each difference in
// the situations that both were in. Whatever the real one said the simulation
// must say too; and in a situation that stands still, nothing else.
func Compare(simulated, genuine []Seen) []string {
	type place struct{ situation, source string }
	index := func(all []Seen) (map[Seen]bool, map[place]bool) {
		set, places := map[Seen]bool{}, map[place]bool{}
		for _, s := range all {
			set[s], places[place{s.Situation, s.Source}] = true, true
		}
		return set, places
	}
	simSet, simPlaces := index(simulated)
	realSet, realPlaces := index(genuine)
	var out []string
	for _, s := range slices.SortedFunc(maps.Keys(realSet), compareSeen) {
		if simPlaces[place{s.Situation, s.Source}] && !simSet[s] {
			out = append(out, "only the real one says: "+s.String())
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(simSet), compareSeen) {
		if realPlaces[place{s.Situation, s.Source}] && !realSet[s] && !s.Passing {
			out = append(out, "only the simulation says: "+s.String())
		}
	}
	return out
}
