package providertest

import (
	"path/filepath"
	"slices"
	"testing"

	"virdeck/model"
)

func TestRecord(t *testing.T) {
	var r Record
	for range 2 { // a set
		r.Add("bridged, agent stopped", false, []model.Outcome{
			{Source: model.SourceAgent, Kind: model.OutcomeFailed, Code: 86, Message: "not connected"},
			{Source: model.SourceARP, Kind: model.OutcomeEmpty},
		})
	}
	r.Add("boot", true, []model.Outcome{{Source: model.SourceLease, Kind: model.OutcomeEmpty}})
	path := filepath.Join(t.TempDir(), "record.json")
	if err := r.WriteFile(path, "libvirt 9.0.0"); err != nil {
		t.Fatal(err)
	}
	got, daemon, err := ReadFile(path)
	if err != nil || daemon != "libvirt 9.0.0" {
		t.Fatalf("read: daemon %q, %v", daemon, err)
	}
	want := []Seen{
		{"boot", "lease", "empty", 0, true},
		{"bridged, agent stopped", "agent", "failed", 86, false},
		{"bridged, agent stopped", "arp", "empty", 0, false},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !r.Says(model.SourceAgent, model.OutcomeFailed) || r.Says(model.SourceLease, model.OutcomeFailed) {
		t.Error("Says is wrong about a failed agent, or lease")
	}
}

func TestCompare(t *testing.T) {
	const truth, sim = "only the real one says: ", "only the simulation says: "
	seen := func(situation, kind string, code int) Seen {
		return Seen{Situation: situation, Source: "agent", Kind: kind, Code: code}
	}
	boot := func(kind string) Seen { return Seen{Situation: "boot", Source: "agent", Kind: kind, Passing: true} }
	tests := []struct {
		name         string
		sim, genuine []Seen
		want         []string
	}{
		{"the same", []Seen{seen("stopped", "failed", 86)}, []Seen{seen("stopped", "failed", 86)}, nil},
		{"another code", []Seen{seen("stopped", "failed", 1)}, []Seen{seen("stopped", "failed", 86)},
			[]string{truth + "stopped: agent: failed 86", sim + "stopped: agent: failed 1"}},
		{"a situation that only the real one was in", nil, []Seen{seen("stopped", "failed", 86)}, nil},
		{"a situation that only the simulation was in", []Seen{seen("stopped", "failed", 86)}, nil, nil},
		{"what the real one was not seen to say while it went by", []Seen{boot("empty"), boot("addresses")}, []Seen{boot("addresses")}, nil},
		{"what only the real one says while it goes by", []Seen{boot("addresses")}, []Seen{boot("addresses"), boot("empty")},
			[]string{truth + "boot: agent: empty"}},
	}
	for _, tt := range tests {
		if got := Compare(tt.sim, tt.genuine); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
