package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// The crash matrix: the client is gone after its k-th call, once before and once
// after the daemon has carried it out, for every k there is; and once in the
// middle of each stream. A new client with the same wish then gets it, and
// nothing is left over.

// stop is one way to end a client.
type stop struct {
	name  string
	fault simhost.Fault
}

// stops returns all ways to stop a piece of work that makes so many calls.
func stops(calls, streams int) []stop {
	var out []stop
	for k := range calls {
		out = append(out,
			stop{fmt.Sprintf("before call %d", k+1), simhost.Fault{Kind: simhost.FaultCutBefore, After: k, Times: 1}},
			stop{fmt.Sprintf("after call %d", k+1), simhost.Fault{Kind: simhost.FaultCutReply, After: k, Times: 1}})
	}
	for k := range streams {
		out = append(out, stop{fmt.Sprintf("in stream %d", k+1), simhost.Fault{Kind: simhost.FaultCutStream, After: k, Times: 1}})
	}
	return out
}

// client is a provider of its own on a host, settled.
func client(sim *simhost.Host) *Host {
	h := New(Options{Link: LinkOptions{Host: "beelink", Dial: sim.Dial, Endpoint: "simulated"}, AgentTimeout: 2 * time.Second})
	time.Sleep(time.Second) // virtual: it has subscribed and identified
	synctest.Wait()
	return h
}

// count runs the work undisturbed and returns how many calls it makes.
func count(t *testing.T, prep, work func(*Host) error) (calls int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim := simhost.New(simhost.Options{})
		defer func() { _ = sim.Close() }()
		h := client(sim)
		defer h.Close()
		if err := prep(h); err != nil {
			t.Fatal(err)
		}
		sim.ResetCalls()
		if err := work(h); err != nil {
			t.Fatal(err)
		}
		for _, n := range sim.Calls() {
			calls += n
		}
	})
	return calls
}

// matrix stops the work everywhere; after it, finish is done by a new client, and
// then is holds.
func matrix(t *testing.T, all []stop, prep, work, finish func(*Host) error, is func(*testing.T, *simhost.Host)) {
	t.Helper()
	unhurt := 0
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simhost.New(simhost.Options{})
				defer func() { _ = sim.Close() }()
				h := client(sim)
				if err := prep(h); err != nil {
					t.Fatal(err)
				}
				remove := sim.Inject(s.fault)
				err := work(h)
				h.Close()
				remove()
				if err == nil {
					unhurt++
				}
				if c := provider.Classify(err); err != nil && c != provider.ClassTransient {
					t.Errorf("a lost connection is %v: %v", c, err)
				}
				h = client(sim)
				defer h.Close()
				if err := finish(h); err != nil {
					t.Fatalf("by the next client: %v (before it: %v)", err, err)
				}
				is(t, sim)
			})
		})
	}
	if unhurt > len(all)/10 {
		t.Errorf("%d of %d stops did not stop anything", unhurt, len(all))
	}
}

func nothing1(*Host) error { return nil }

func TestCrash(t *testing.T) {
	base := baseFile(t)
	b := testBuild(base, "p-01")
	create := func(h *Host) error {
		_, err := h.Create(context.Background(), b, func(model.Progress) {})
		return err
	}
	remove := func(h *Host) error {
		return h.Delete(context.Background(), provider.Deletion{Owner: b.Owner, Domain: identify(b.Owner).domain, Storage: "default"}, nil)
	}
	built := func(t *testing.T, sim *simhost.Host) { declared(t, sim, b) }
	gone := func(t *testing.T, sim *simhost.Host) {
		if d := sim.Domains(); len(d) > 0 {
			t.Errorf("%d domains are left", len(d))
		}
		for _, v := range sim.Volumes("default") {
			if !strings.HasPrefix(v, base.VolumeName()) {
				t.Errorf("volume %s is left", v)
			}
		}
		if v := sim.Violations(); len(v) > 0 {
			t.Errorf("violations: %q", v)
		}
	}
	creating, deleting := count(t, nothing1, create), count(t, create, remove)
	t.Logf("a create makes %d calls, a delete %d", creating, deleting)
	t.Run("create", func(t *testing.T) { matrix(t, stops(creating, 3), nothing1, create, create, built) })
	t.Run("create again", func(t *testing.T) { matrix(t, stops(count(t, create, create), 0), create, create, create, built) })
	t.Run("delete", func(t *testing.T) { matrix(t, stops(deleting, 0), create, remove, remove, gone) })
	t.Run("create, then delete", func(t *testing.T) { matrix(t, stops(creating, 3), nothing1, create, remove, gone) })
	t.Run("delete, then create", func(t *testing.T) {
		// Once its removal has begun it ends before the VM can be made again.
		again := func(h *Host) error {
			if err := create(h); provider.Classify(err) != provider.ClassConflict {
				return err
			}
			if err := remove(h); err != nil {
				return err
			}
			return create(h)
		}
		matrix(t, stops(deleting, 0), create, remove, again, built)
	})
}

// The client gives up while its k-th call is stuck in the daemon, which carries it
// out three seconds later: after another client, or the same one, has had its way.
// One more look puts right what that has done, and nothing is harmed meanwhile.
func TestCrash_late(t *testing.T) {
	base := baseFile(t)
	b := testBuild(base, "p-01")
	create := func(ctx context.Context, h *Host) error {
		_, err := h.Create(ctx, b, nil)
		return err
	}
	remove := func(ctx context.Context, h *Host) error {
		return h.Delete(ctx, provider.Deletion{Owner: b.Owner, Domain: identify(b.Owner).domain, Storage: "default"}, nil)
	}
	calls := count(t, nothing1, func(h *Host) error { return create(context.Background(), h) })
	for k := range calls {
		for _, other := range []bool{false, true} {
			for _, then := range []string{"create", "delete"} {
				t.Run(fmt.Sprintf("call %d late, other client %v, then %s", k+1, other, then), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						sim := simhost.New(simhost.Options{})
						defer func() { _ = sim.Close() }()
						h := client(sim)
						defer func() { h.Close() }()
						sim.Inject(simhost.Fault{Kind: simhost.FaultDelay, Delay: 3 * time.Second, After: k, Times: 1})
						ctx, leave := context.WithTimeout(t.Context(), time.Second)
						defer leave()
						if err := create(ctx, h); err == nil {
							t.Fatal("it was not delayed")
						}
						if other {
							h.Close()
							h = client(sim)
						}
						finish := create
						if then == "delete" {
							finish = remove
						}
						if err := finish(t.Context(), h); err != nil && provider.Classify(err) != provider.ClassTransient {
							t.Error(err)
						}
						time.Sleep(5 * time.Second)
						if err := finish(t.Context(), h); err != nil {
							t.Errorf("the next look: %v", err)
						}
						if then == "create" {
							declared(t, sim, b)
							return
						}
						if n, v := len(sim.Domains()), sim.Violations(); n != 0 || len(v) > 0 {
							t.Errorf("%d domains, violations %q", n, v)
						}
						for _, v := range sim.Volumes("default") {
							if !strings.HasPrefix(v, base.VolumeName()) {
								t.Errorf("volume %s is left", v)
							}
						}
					})
				})
			}
		}
	}
}

// A second create for one owner waits for the first; twenty for different ones
// share one upload. Two processes for one owner, which their store's lock
// excludes, end at the same VM too; but between one's look at whether the domain
// runs and its removal of a half made disk, the other may start it, and libvirt
// has no call that does both.
func TestCreate_together(t *testing.T) {
	base := baseFile(t)
	for _, tt := range []struct {
		name   string
		proxy  func(i int) string
		builds int
		two    bool // processes
	}{
		{"one owner", func(int) string { return "p-01" }, 1, false},
		{"one owner, two processes", func(int) string { return "p-01" }, 1, true},
		{"twenty owners", func(i int) string { return fmt.Sprintf("p-%02d", i) }, 20, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := simhost.New(simhost.Options{})
				defer func() { _ = sim.Close() }()
				hosts := []*Host{client(sim), client(sim)}
				if !tt.two {
					hosts[1].Close()
					hosts[1] = hosts[0]
				}
				defer hosts[0].Close()
				defer hosts[1].Close()
				sim.ResetCalls()
				var all []provider.Build
				errs := make(chan error)
				for i := range 20 {
					b := testBuild(base, tt.proxy(i))
					if i < tt.builds {
						all = append(all, b)
					}
					go func() {
						for {
							_, err := hosts[i%2].Create(context.Background(), b, nil)
							if provider.Classify(err) != provider.ClassTransient {
								errs <- err
								return
							}
							time.Sleep(time.Second)
						}
					}()
				}
				for range 20 {
					if err := <-errs; err != nil {
						t.Error(err)
					}
				}
				if tt.two {
					declaredThere(t, sim, all...)
				} else {
					declared(t, sim, all...)
				}
				uploads := sim.Calls()[simhost.ProcStorageVolUpload]
				if want := 1 + 20; tt.builds > 1 && uploads != want {
					t.Errorf("%d uploads, want one of the base and one of each seed", uploads)
				}
			})
		})
	}
}

// Whoever waits for a base image that another one uploads may leave; the last one
// takes the upload with him.
func TestBase_waiters(t *testing.T) {
	base := baseFile(t)
	synctest.Test(t, func(t *testing.T) {
		sim := simhost.New(simhost.Options{})
		defer func() { _ = sim.Close() }()
		h := client(sim)
		defer h.Close()
		remove := sim.Inject(simhost.Fault{Proc: simhost.ProcStorageVolUpload, Kind: simhost.FaultHang})
		defer remove()
		ctx1, leave1 := context.WithCancel(t.Context())
		ctx2, leave2 := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		for i, ctx := range []context.Context{ctx1, ctx2} {
			go func() {
				_, err := h.Create(ctx, testBuild(base, fmt.Sprintf("p-%02d", i)), nil)
				errs <- err
			}()
		}
		time.Sleep(time.Second)
		leave1()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's own error", err)
		}
		synctest.Wait()
		h.mu.Lock()
		n := len(h.bases)
		h.mu.Unlock()
		if n != 1 {
			t.Errorf("%d uploads under way, want the one that is still waited for", n)
		}
		leave2()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's own error", err)
		}
		synctest.Wait()
		if sim.Conns() != 1 {
			t.Errorf("%d connections, want the link's alone", sim.Conns())
		}
		remove()
		if g := h.Link().Generation; g != 1 {
			t.Errorf("generation %d: who leaves harms the link", g)
		}
		if vols := sim.Volumes("default"); !slices.Equal(vols, []string{base.VolumeName()}) {
			t.Errorf("volumes %q, want the base without its proof", vols)
		}
		if _, err := h.Create(t.Context(), testBuild(base, "p-00"), nil); err != nil {
			t.Fatal(err)
		}
	})
}
