package model

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDerive(t *testing.T) {
	serving := Facts{HasAddress: true, Serving: true, InRotation: true, Proven: true, Running: true}
	with := func(f Facts, change func(*Facts)) Facts { change(&f); return f }
	tests := []struct {
		name  string
		f     Facts
		state State
		marks string
	}{
		{"ready", serving, StateReady, ""},
		{"nothing known", Facts{}, StatePending, ""},
		{"boots", Facts{Provisioning: true, Running: true}, StateProvisioning, ""},
		{"has an address, not proven", Facts{HasAddress: true}, StateUnproven, ""},
		{"proven, and not in: not ready", with(serving, func(f *Facts) { f.InRotation = false }), StateUnproven, ""},
		{"read fails: as before, transient", with(serving, func(f *Facts) { f.ReadFailed = true }), StateTransient, ""},
		{"demoted", with(serving, func(f *Facts) { f.Demoted, f.InRotation = true, false }), StateDemoted, ""},
		{"demoted, and reads fail: demoted, stale", with(serving, func(f *Facts) { f.Demoted, f.ReadFailed = true, true }), StateDemoted, "~"},
		{"drained beats demoted", with(serving, func(f *Facts) { f.Demoted, f.Drained = true, true }), StateDrained, ""},
		{"drained, and reads fail", with(serving, func(f *Facts) { f.Drained, f.ReadFailed = true, true }), StateDrained, "~"},
		{"deleting beats all", Facts{Deleting: true, Drained: true, WriteFailed: true, Demoted: true, ReadFailed: true}, StateDeleting, "!"},
		{"a failed write never takes a serving proxy out", with(serving, func(f *Facts) { f.WriteFailed = true }), StateReady, "!"},
		{"a failed write, and no VM serves", Facts{WriteFailed: true}, StateFailed, ""},
		{"failed, and reads fail", Facts{WriteFailed: true, ReadFailed: true}, StateFailed, "~"},
		{"booting, and nobody could be asked: still booting", Facts{Provisioning: true, ReadFailed: true, NotAskedOnly: true}, StateProvisioning, "~"},
		{"booting, and the link is down: transient", Facts{Provisioning: true, ReadFailed: true}, StateTransient, ""},
		{"has an address, and nobody could be asked: transient", with(serving, func(f *Facts) { f.ReadFailed, f.NotAskedOnly = true, true }), StateTransient, ""},
		{"held", with(serving, func(f *Facts) { f.Held = true }), StateReady, "h"},
		{"unverified", with(serving, func(f *Facts) { f.Unverified = true }), StateReady, "u"},
		{"conflict", Facts{Conflict: true}, StatePending, "="},
		{"all marks", with(serving, func(f *Facts) {
			f.Drained, f.ReadFailed, f.Held, f.Unverified, f.WriteFailed, f.Conflict = true, true, true, true, true, true
		}),
			StateDrained, "~hu!="},
	}
	for _, tt := range tests {
		s, marks := Derive(tt.f)
		var m strings.Builder
		for _, k := range marks {
			m.WriteByte(byte(k))
		}
		if s != tt.state || m.String() != tt.marks {
			t.Errorf("%s: %v %q, want %v %q", tt.name, s, m.String(), tt.state, tt.marks)
		}
	}
}

// No state but ready is entered by way of the rotation, and no failed read ever
// changes the word of a proxy that is out.
func TestDerive_properties(t *testing.T) {
	for bits := range 1 << 12 {
		on := func(i int) bool { return bits&(1<<i) != 0 }
		f := Facts{
			Deleting: on(0), Drained: on(1), WriteFailed: on(2), HasAddress: on(3), Serving: on(4), Demoted: on(5),
			InRotation: on(6), Proven: on(7), ReadFailed: on(8), NotAskedOnly: on(9), Provisioning: on(10), Held: on(11),
		}
		s, _ := Derive(f)
		if !slices.Contains(States(), s) {
			t.Fatalf("%+v: state %v", f, s)
		}
		if s == StateReady && (!f.InRotation || !f.HasAddress) {
			t.Fatalf("%+v: ready without a place or an address", f)
		}
		if again, _ := Derive(f); again != s {
			t.Fatalf("%+v: not a function", f)
		}
		if f.ReadFailed {
			g := f
			g.ReadFailed = false
			if before, _ := Derive(g); (before == StateDemoted || before == StateDrained || before == StateFailed) != (s == StateDemoted || s == StateDrained || s == StateFailed) {
				t.Fatalf("%+v: a failed read turned %v into %v", f, before, s)
			}
		}
	}
}

func TestStates_signsAreOneCellAndDistinct(t *testing.T) {
	seen := map[string]State{}
	for _, s := range States() {
		if n := len([]rune(s.Sign())); n != 1 {
			t.Errorf("%v: sign of %d characters", s, n)
		}
		if other, dup := seen[s.Sign()]; dup {
			t.Errorf("%v and %v share a sign", s, other)
		}
		seen[s.Sign()] = s
		if strings.HasPrefix(s.String(), "unknown") {
			t.Errorf("%d has no word", s)
		}
	}
}

func TestUnknownValuesSaySo(t *testing.T) {
	for _, got := range []string{
		State(99).String(), Backing(99).String(), Source(99).String(), OutcomeKind(99).String(), DomainState(99).String(),
		InstanceState(99).String(), LinkState(99).String(), Culprit(99).String(), WitnessState(99).String(), Verb(99).String(),
		OpState(99).String(), ProbeKind(99).String(), Mark(99).Word(),
	} {
		if !strings.HasPrefix(got, "unknown-") || !strings.HasSuffix(got, "-99") {
			t.Errorf("%q, want unknown-...-99", got)
		}
	}
}

func TestCredentials_neverPrinted(t *testing.T) {
	const secret = "hunter2"
	c := Credentials{User: "u", Password: secret}
	spec := ProxySpec{Name: "p", Creds: c}
	view := &ProxyView{Spec: spec}
	j, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "creds", c, "spec", spec, "pointer", &c)
	for name, text := range map[string]string{
		"%v": fmt.Sprintf("%v", c), "%+v": fmt.Sprintf("%+v", spec), "%#v": fmt.Sprintf("%#v", spec), "pointer": fmt.Sprint(&c),
		"json": string(j), "slog": log.String(),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("%s prints the password: %s", name, text)
		}
	}
	if c.String() != "u:***" || (Credentials{}).String() != "none" {
		t.Errorf("String: %q, %q", c, Credentials{})
	}
}

func TestSetCondition(t *testing.T) {
	t0 := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	a := SetCondition(nil, Condition{Type: CondHealthy, Status: CondTrue, Reason: "A", Since: t0})
	b := SetCondition(a, Condition{Type: CondHealthy, Status: CondTrue, Reason: "B", Since: t0.Add(time.Hour)})
	c := SetCondition(b, Condition{Type: CondHealthy, Status: CondFalse, Reason: "C", Since: t0.Add(2 * time.Hour)})
	if a[0].Reason != "A" {
		t.Error("the old slice was changed")
	}
	if b[0].Reason != "B" || !b[0].Since.Equal(t0) {
		t.Errorf("same status: %+v, want the new reason and the old time", b[0])
	}
	if got, ok := GetCondition(c, CondHealthy); !ok || !got.Since.Equal(t0.Add(2*time.Hour)) {
		t.Errorf("other status: %+v, want the new time", got)
	}
	if _, ok := GetCondition(c, CondInRotation); ok {
		t.Error("found a condition that is not there")
	}
}
