package storetest

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"virdeck/model"
	"virdeck/store"
)

// Fleet is the name of the fleet whose store is opened.
const Fleet = "test"

// Store is what the suite needs of a store.
type Store interface {
	Load(ctx context.Context) (store.State, error)
	Apply(ctx context.Context, changes ...store.Change) error
	Heartbeat(ctx context.Context, now time.Time) error
	Close() error
}

// Open opens the same store again and again, one at a time.
type Open func(t *testing.T) Store

// Run holds a kind of store to the contract. place returns a way to open a
// store of Fleet that nobody has opened before.
func Run(t *testing.T, place func(t *testing.T) Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"fresh":                  fresh,
		"everything survives":    everythingSurvives,
		"delete":                 deletes,
		"later changes win":      laterWins,
		"all or nothing":         allOrNothing,
		"arguments are copied":   copied,
		"newest events are kept": newestEvents,
		"heartbeat":              heartbeat,
		"ended context":          endedContext,
		"closed":                 closed,
		"many at once":           manyAtOnce,
	} {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
}

var t0 = time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.FixedZone("east", 3600))

// FullProxy is a proxy with something in every field.
func FullProxy(name string) store.Proxy {
	return store.Proxy{
		Name: model.ProxyName(name), UID: "uid-" + name, CreatedAt: t0, Backing: model.BackingManaged, Host: "beelink",
		Pool: "default", Template: "small", SpecHash: "0123456789ab", Port: 3128, Domain: "virdeck-" + name,
		UUID: "4f1c6f2e-0000-4000-8000-000000000001", MAC: "52:54:00:01:02:03", IP: netip.MustParseAddr("fd00::21"),
		Incarnation: "4f1c/7", InRotation: true, Drained: true, Released: true, Wish: store.WishRecreating,
		Creds: model.Credentials{User: "u-" + name, Password: "p\"ä\x00" + name},
		Events: []model.Event{{Seq: 3, At: t0, Host: "beelink", Proxy: model.ProxyName(name), From: "ready", To: "demoted",
			What: "3 probes failed", Evidence: []string{"refused", "refused"}}},
	}
}

// FullAdopted is an adopted proxy with something in every field.
func FullAdopted(name string) store.Adopted {
	return store.Adopted{
		Name: model.ProxyName(name), Host: "kvm2", Domain: "old squid", Port: 3128, Probe: model.ProbeConnect, Pool: "old",
		Labels: map[string]string{"dc": "a"}, Creds: model.Credentials{User: "u", Password: "secret"},
	}
}

func fresh(t *testing.T, open Open) {
	s := open(t)
	st := load(t, s)
	if st.Schema != store.Schema || st.Fleet != Fleet || len(st.Controller) != 36 || !st.SavedAt.IsZero() {
		t.Errorf("meta: %+v", st)
	}
	if st.Hosts == nil || st.Proxies == nil || st.Adopted == nil || st.Budget == nil ||
		len(st.Hosts)+len(st.Proxies)+len(st.Adopted)+len(st.Budget) != 0 {
		t.Errorf("not empty, or a nil map: %+v", st)
	}
	done(t, s)
	if again := load(t, open(t)); again.Controller != st.Controller {
		t.Errorf("controller id: %s, then %s", st.Controller, again.Controller)
	}
}

func everythingSurvives(t *testing.T, open Open) {
	s := open(t)
	bare := store.Proxy{Name: "bare"}
	apply(t, s, store.PutProxy(FullProxy("p-01")), store.PutProxy(bare), store.PutAdopted(FullAdopted("a-01")),
		store.PutAdopted(store.Adopted{Name: "bare"}), store.PinHost("beelink", "uuid-1"),
		store.PutBudget(store.HostBudget("x"), []time.Time{t0, t0.Add(time.Second)}),
		store.PutBudget(store.PoolBudget("x"), []time.Time{t0}), store.SavedAt(t0))
	bare.Wish = store.WishPresent
	want := store.State{
		Schema: store.Schema, Fleet: Fleet, SavedAt: t0,
		Hosts:   map[model.HostName]string{"beelink": "uuid-1"},
		Proxies: map[model.ProxyName]store.Proxy{"p-01": FullProxy("p-01"), "bare": bare},
		Adopted: map[model.ProxyName]store.Adopted{"a-01": FullAdopted("a-01"), "bare": {Name: "bare"}},
		Budget: map[store.BudgetKey][]time.Time{
			store.HostBudget("x"): {t0, t0.Add(time.Second)}, store.PoolBudget("x"): {t0}},
	}
	for range 2 {
		st := load(t, s)
		want.Controller = st.Controller
		if d := Diff(want, st); d != "" {
			t.Errorf("want -, got +:\n%s", d)
		}
		if loc := st.Proxies["p-01"].CreatedAt.Location(); loc != time.UTC {
			t.Errorf("times are in %s", loc)
		}
		done(t, s)
		s = open(t)
	}
}

func deletes(t *testing.T, open Open) {
	s := open(t)
	apply(t, s, store.PutProxy(FullProxy("p-01")), store.PutProxy(FullProxy("p-02")), store.PutAdopted(FullAdopted("a")),
		store.PinHost("h", "u"), store.PutBudget(store.PoolBudget("x"), []time.Time{t0}))
	apply(t, s, store.DeleteProxy("p-01"), store.DeleteProxy("never there"), store.DeleteAdopted("a"),
		store.UnpinHost("h"), store.PutBudget(store.PoolBudget("x"), nil))
	done(t, s)
	st := load(t, open(t))
	if _, ok := st.Proxies["p-02"]; !ok || len(st.Proxies) != 1 || len(st.Adopted)+len(st.Hosts)+len(st.Budget) != 0 {
		t.Errorf("left: %+v", st)
	}
}

func laterWins(t *testing.T, open Open) {
	s := open(t)
	a, b := FullProxy("p"), FullProxy("p")
	b.UID = "second"
	apply(t, s, store.PutProxy(b), store.DeleteProxy("p"), store.PutProxy(a), store.PutProxy(b))
	apply(t, s, store.PutProxy(b)) // the same again
	if got := load(t, s).Proxies["p"].UID; got != "second" {
		t.Errorf("uid %q", got)
	}
	apply(t, s, store.PutProxy(a), store.DeleteProxy("p"))
	done(t, s)
	if st := load(t, open(t)); len(st.Proxies) != 0 {
		t.Errorf("left: %v", st.Proxies)
	}
}

func allOrNothing(t *testing.T, open Open) {
	s := open(t)
	bad := map[string]store.Change{
		"store: write proxy p: wish \"perhaps\" is not known":                                      store.PutProxy(store.Proxy{Name: "p", Wish: "perhaps"}),
		"store: write proxy p: backing \"unknown-backing-9\" is not known":                         store.PutProxy(store.Proxy{Name: "p", Backing: 9}),
		"store: write adopted proxy p: probe \"unknown-probe-9\" is not known":                     store.PutAdopted(store.Adopted{Name: "p", Probe: 9}),
		"store: write proxy : no name":                                                             store.PutProxy(store.Proxy{}),
		"store: write proxy \xff: name is not UTF-8":                                               store.DeleteProxy("\xff"),
		"store: write proxy p: text is not UTF-8":                                                  store.PutProxy(store.Proxy{Name: "p", Creds: model.Credentials{Password: "\xff"}}),
		"store: write adopted proxy p: text is not UTF-8":                                          store.PutAdopted(store.Adopted{Name: "p", Labels: map[string]string{"a": "\xff"}}),
		"store: write host h: text is not UTF-8":                                                   store.PinHost("h", "\xff"),
		"store: an empty change":                                                                   {},
		"store: write proxy " + strings.Repeat("x", 26) + "...: name of 2000 bytes; allowed: 1024": store.DeleteProxy(model.ProxyName(strings.Repeat("x", 2000))),
	}
	for want, c := range bad {
		if err := s.Apply(t.Context(), store.PutProxy(FullProxy("good")), c); err == nil || err.Error() != want {
			t.Errorf("error %q\nwant  %q", err, want)
		}
	}
	done(t, s)
	if st := load(t, open(t)); len(st.Proxies) != 0 {
		t.Errorf("written in part: %v", st.Proxies)
	}
}

func copied(t *testing.T, open Open) {
	s := open(t)
	p, a, at := FullProxy("p"), FullAdopted("a"), []time.Time{t0}
	changes := []store.Change{store.PutProxy(p), store.PutAdopted(a), store.PutBudget("pool/x", at)}
	p.Events[0].What, a.Labels["dc"], at[0] = "changed", "changed", time.Time{}
	apply(t, s, changes...)
	for range 2 { // what was loaded is the caller's too
		st := load(t, s)
		if st.Proxies["p"].Events[0].What == "changed" || st.Adopted["a"].Labels["dc"] == "changed" || st.Budget["pool/x"][0].IsZero() {
			t.Fatalf("the store shares memory with its caller: %+v", st)
		}
		st.Proxies["p"].Events[0].What, st.Adopted["a"].Labels["dc"], st.Budget["pool/x"][0] = "changed", "changed", time.Time{}
	}
}

func newestEvents(t *testing.T, open Open) {
	s := open(t)
	p := store.Proxy{Name: "p"}
	for i := range store.MaxEvents + 7 {
		p.Events = append(p.Events, model.Event{Seq: uint64(i), At: t0, What: "bytes of a host \xff\x1b[31m"})
	}
	apply(t, s, store.PutProxy(p))
	got := load(t, s).Proxies["p"].Events
	if len(got) != store.MaxEvents || got[0].Seq != 7 || got[len(got)-1].Seq != store.MaxEvents+6 {
		t.Errorf("%d events, %d to %d", len(got), got[0].Seq, got[len(got)-1].Seq)
	}
	if len(p.Events) != store.MaxEvents+7 {
		t.Errorf("the caller's events were cut to %d", len(p.Events))
	}
}

func heartbeat(t *testing.T, open Open) {
	s := open(t)
	for _, now := range []time.Time{t0, t0.Add(time.Hour), t0.Add(-time.Hour)} { // clocks go back
		if err := s.Heartbeat(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if got := load(t, s).SavedAt; !got.Equal(now) {
			t.Errorf("saved at %v, want %v", got, now)
		}
	}
	done(t, s)
	if got := load(t, open(t)).SavedAt; !got.Equal(t0.Add(-time.Hour)) {
		t.Errorf("saved at %v", got)
	}
}

func endedContext(t *testing.T, open Open) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const want = "store: context canceled"
	if err := s.Apply(ctx, store.PinHost("h", "u")); err == nil || err.Error() != want {
		t.Errorf("Apply: %v", err)
	}
	if err := s.Heartbeat(ctx, t0); err == nil || err.Error() != want {
		t.Errorf("Heartbeat: %v", err)
	}
	if _, err := s.Load(ctx); err == nil || err.Error() != want {
		t.Errorf("Load: %v", err)
	}
	if st := load(t, s); len(st.Hosts) != 0 || !st.SavedAt.IsZero() {
		t.Errorf("written all the same: %+v", st)
	}
}

func closed(t *testing.T, open Open) {
	s := open(t)
	done(t, s)
	done(t, s)
	const want = "store: closed"
	if err := s.Apply(t.Context(), store.PinHost("h", "u")); err == nil || err.Error() != want {
		t.Errorf("Apply: %v", err)
	}
	if _, err := s.Load(t.Context()); err == nil || err.Error() != want {
		t.Errorf("Load: %v", err)
	}
}

func manyAtOnce(t *testing.T, open Open) {
	s := open(t)
	const writers, each = 8, 12
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				name := fmt.Sprintf("p-%d-%d", w, i)
				if err := s.Apply(t.Context(), store.PutProxy(FullProxy(name)), store.PinHost("h", name)); err != nil {
					t.Errorf("Apply: %v", err)
				}
				st, err := s.Load(t.Context())
				if _, ok := st.Proxies[model.ProxyName(name)]; !ok || err != nil {
					t.Errorf("%s was acknowledged and is not there (%v)", name, err)
				}
			}
		})
	}
	wg.Wait()
	done(t, s)
	if got := len(load(t, open(t)).Proxies); got != writers*each {
		t.Errorf("%d proxies, want %d", got, writers*each)
	}
}

// Diff returns how two states differ; empty if not. Equal instants are equal.
func Diff(want, got store.State) string {
	return cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b model.Credentials) bool { return a == b }))
}

func load(t *testing.T, s Store) store.State {
	t.Helper()
	st, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func apply(t *testing.T, s Store, changes ...store.Change) {
	t.Helper()
	if err := s.Apply(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
}

func done(t *testing.T, s Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
