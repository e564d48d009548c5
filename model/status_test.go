package model

import (
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite testdata")

// The schema is a promise to other programs: a field that changes its name, its
// form or its place changes this file.
func TestNewStatus_schema(t *testing.T) {
	t0 := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ip := netip.MustParseAddr("10.0.0.21")
	s := &Snapshot{
		Fleet: "home", Version: "1.2.3", At: t0, Health: FleetHealth{Control: WitnessPassing},
		Hosts: []*HostView{
			{Name: "beelink", UUID: "ab-cd", LastGood: t0, Link: LinkStatus{State: LinkUp, Generation: 3, Since: t0, RoundTrip: 2100 * time.Microsecond, InFlight: 1, Endpoint: "tcp 10.0.0.2:16509", LastError: "EOF"},
				Events: []Event{{At: t0, From: "down", To: "up", What: "link up, generation 3"}},
				Proxies: []*ProxyView{{
					Spec:  ProxySpec{Name: "p-01", Host: "beelink", Domain: "p-01", Port: 3128, Pool: "default", Labels: map[string]string{"dc": "a"}, Creds: Credentials{User: "u", Password: "secret"}},
					State: StateReady, Marks: []Mark{MarkHeld}, Reason: "address held, poll 2 of 3", Since: t0, IP: ip, IPSource: SourceAgent, Incarnation: "ab/7", Domain: DomainRunning,
					Outcomes: []Outcome{
						{Source: SourceLease, Kind: OutcomeNotApplicable}, {Source: SourceAgent, Kind: OutcomeFailed, Code: 86, Message: "not connected", At: t0, Took: time.Millisecond},
						{Source: SourceARP, Kind: OutcomeAddresses, Addresses: []netip.Addr{ip}, Ignored: []Ignored{{Address: netip.MustParseAddr("fe80::1"), Why: "link-local"}}, At: t0},
					},
					Conditions: []Condition{{Type: CondProvisioned, Status: CondTrue, Reason: "AddressHeld", Message: "poll 2 of 3", Since: t0}},
					Hold:       Hold{Active: true, Polls: 2, Of: 3, Since: t0, Probe: "last probe passed"},
					Health: Health{Proven: true, InRotation: true, Passes: 9, Reason: "passed 2 in a row", Since: t0, PassPercent: 100,
						Last: ProbeResult{Passed: true, Reason: "passed", Started: t0, Took: 34 * time.Millisecond, ExitIP: netip.MustParseAddr("198.18.0.1")}},
					Events: []Event{{At: t0, From: "unproven", To: "ready", What: "probes pass", Evidence: []string{"agent: 10.0.0.21"}}},
				}},
				Budget:  BudgetView{Used: 2, Of: 5, Window: time.Hour, Next: t0.Add(time.Minute)},
				Orphans: []OrphanView{{Domain: "home-web-9", Owner: Owner{Fleet: "home", Proxy: "web-9", UID: "u-9", Controller: "c-1", Phase: PhaseReady}, First: t0, Wait: "a second look at the host"}}},
			{Name: "kvm2", Link: LinkStatus{State: LinkDown, Since: t0, LastError: "connection refused", NextRetry: t0.Add(time.Second)}, Proxies: []*ProxyView{{
				Spec:  ProxySpec{Name: "web-1", Host: "kvm2", Backing: BackingManaged, Domain: "home-web-1", Port: 3128, Pool: "web", Creds: Credentials{User: "web-1", Password: "secret"}},
				State: StatePending, Reason: "create: upload base image", Since: t0,
				Managed: &ManagedView{UID: "u-1", Domain: "home-web-1", Template: "small", SpecHash: "0a1b2c", BuiltHash: "0a1b2c", Wish: "run",
					Owner: Owner{Fleet: "home", Proxy: "web-1", UID: "u-1", Controller: "c-1", SpecHash: "0a1b2c", Pool: "web", Phase: PhaseNew, CreatedAt: t0},
					Write: "create", WriteFrom: t0, Step: Progress{Step: "upload base image", Done: 120_000_000, Total: 280_000_000},
					LastError: "no space left", Latched: true, Fails: 2, RetryAt: t0.Add(time.Second), Plan: "it is declared and does not exist", CreatedAt: t0},
			}}},
			{Name: ExternalHost, External: true, Proxies: []*ProxyView{{
				Spec:  ProxySpec{Name: "x", Host: ExternalHost, Backing: BackingExternal, Address: ip, Port: 8080, Pool: "default"},
				State: StateDemoted, Health: Health{Demoted: true, Fails: 3, Reason: "refused", Last: ProbeResult{Culprit: CulpritHop, Reason: "refused", Started: t0}},
			}}},
		},
		Ops:     []Op{{ID: 4, Command: Command{Verb: VerbReconnect, Host: "kvm2", By: "alice"}, State: OpRunning, Phase: "dial"}},
		Notices: []Notice{{Level: NoticeAlert, Text: "ROTATION HELD AS IT IS"}},
		DryRun:  true,
		Pools:   []PoolView{{Name: "web", Template: "small", Count: 2, Members: 1, Wait: []string{"web-2: the link to kvm2 is down"}, Budget: BudgetView{Of: 5, Window: time.Hour}, Placement: map[HostName]int{"kvm2": 1}}},
		Plan: []PlanItem{
			{Host: "kvm2", Proxy: "web-1", Domain: "home-web-1", Verb: PlanCreate, Why: "it is declared and does not exist", Since: t0, Step: Progress{Step: "define the domain"}},
			{Host: "beelink", Domain: "home-web-9", Verb: PlanOrphan, Why: "no proxy has its uid", Wait: "a second look at the host", Dry: true, Counted: true},
		},
	}
	got, err := json.MarshalIndent(NewStatus(s), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "status-v1.json")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("the schema has changed; if that is meant, raise StatusVersion and run with -update. Got:\n%s", got)
	}
	if StatusVersion != 1 {
		t.Errorf("version %d: name the file after it", StatusVersion)
	}
}
