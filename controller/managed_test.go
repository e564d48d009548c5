package controller

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/health"
	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
	"virdeck/store"
)

// managedFleet is a fleet whose VMs virdeck makes, with a store that outlives
// the controllers that run on it.
type managedFleet struct {
	*fleet
	store *store.Memory
	keep  Store // in place of store, for what is written
	decl  Declared
	stop  func()
}

func newManaged(t *testing.T, hosts ...string) *managedFleet {
	t.Helper()
	f := &managedFleet{fleet: newFleet(t)}
	for i, n := range hosts {
		h := f.host(n)
		h.AddVolume("default", simhost.VolumeSpec{Name: "base.qcow2", Format: "qcow2", Capacity: 1 << 30})
		h.AddNetwork(simhost.NetworkSpec{Name: "default", Gateway: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 1}), 16)})
	}
	var err error
	if f.store, err = store.NewMemory("test"); err != nil {
		t.Fatal(err)
	}
	f.set.Fleet = "test"
	f.decl = Declared{
		Hosts: f.specs,
		Templates: map[string]model.Template{"small": {
			Name: "small", VCPUs: 1, MemoryMB: 128, Storage: "default", Base: model.BaseImage{Volume: "base.qcow2", Format: "qcow2"},
			Network: "default", VirtType: "qemu",
		}},
		Budget: Budget{PerHost: 10, PerPool: 5, Window: time.Hour},
	}
	t.Cleanup(func() {
		if f.stop != nil {
			f.stop()
		}
		for _, s := range f.sims {
			for _, v := range s.Violations() {
				t.Errorf("%s: %s", s.Name(), v)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := f.origin.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// pool declares a pool called web over all hosts.
func (f *managedFleet) pool(count int) *model.PoolSpec {
	p := model.PoolSpec{Name: "web", Template: "small", Count: count, Port: 3128, Surge: 1, MinAvailable: max(0, count-1), DrainTime: 5 * time.Second}
	for _, h := range f.specs {
		p.Hosts = append(p.Hosts, h.Name)
	}
	f.decl.Pools = append(f.decl.Pools, p)
	return &f.decl.Pools[len(f.decl.Pools)-1]
}

// run starts a controller on what the store has. The one before must have been
// stopped.
func (f *managedFleet) run() {
	f.t.Helper()
	state, err := f.store.Load(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	f.Controller = New(f.set, Deps{
		Declared: f.decl, State: state, Store: f.writes(), Log: slog.New(panics{slog.DiscardHandler, f.t}), Rand: func() float64 { return 0.5 },
		Health: func(dirty func(health.Key)) Health {
			f.health = health.New(f.cfg, health.Deps{Dial: f.dialProxy, Control: f.origin.Dial, Dirty: dirty, Rand: func() float64 { return 0.5 }})
			return f.health
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c, he := f.Controller, f.health
	go func() {
		c.Run(ctx)
		close(done)
	}()
	f.stop = func() {
		cancel()
		<-done
		he.Close()
		f.stop = nil
	}
}

// panics fails the test when a loop has panicked: they survive that, and a test
// must not.
type panics struct {
	slog.Handler
	t *testing.T
}

func (panics) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (p panics) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "panic" {
		r.Attrs(func(a slog.Attr) bool {
			p.t.Errorf("panic: %s", a)
			return true
		})
	}
	return nil
}

func (f *managedFleet) writes() Store {
	if f.keep != nil {
		return f.keep
	}
	return f.store
}

// in returns how many proxies are in rotation.
func (f *managedFleet) in() int {
	n := 0
	for _, h := range f.Snapshot().Hosts {
		for _, p := range h.Proxies {
			n += boolInt(p.Health.InRotation)
		}
	}
	return n
}

// domains returns the names of all domains, as host/name.
func (f *managedFleet) domains() []string {
	var out []string
	for _, hs := range f.specs {
		for _, d := range f.sims[string(hs.Name)].Domains() {
			out = append(out, string(hs.Name)+"/"+d.Name())
		}
	}
	return out
}

func (f *managedFleet) plan() string {
	var b strings.Builder
	for _, it := range f.Snapshot().Plan {
		b.WriteString(string(it.Verb) + " " + string(it.Proxy) + " " + it.Domain + " on " + string(it.Host) + ": " + it.Why + " | " + it.Wait + "\n")
	}
	for _, p := range f.Snapshot().Pools {
		b.WriteString(strings.Join(p.Wait, "\n") + "\n")
	}
	return b.String() + f.dump()
}

// busy reports whether anything is wanted and not done.
func (f *managedFleet) busy() bool {
	s := f.Snapshot()
	for _, p := range s.Pools {
		if p.Members != p.Count {
			return true
		}
	}
	return len(s.Plan) > 0
}

func (f *managedFleet) settle(want int, limit time.Duration) time.Duration {
	f.t.Helper()
	start := time.Now()
	for f.in() != want || f.busy() || len(f.domains()) != want {
		if time.Since(start) > limit {
			f.t.Fatalf("not settled at %d within %s: %d in rotation, domains %q\n%s", want, limit, f.in(), f.domains(), f.plan())
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(start)
}

func TestManaged_poolFromNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.pool(4)
		f.run()
		took := f.settle(4, 30*time.Second)
		t.Logf("4 ready after %s", took)
		if a, b := len(f.sims["a"].Domains()), len(f.sims["b"].Domains()); a != 2 || b != 2 {
			t.Errorf("%d and %d VMs, want 2 and 2", a, b)
		}
	})
}

func TestManaged_scaledUpAndDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		p := f.pool(4)
		f.run()
		f.settle(4, 30*time.Second)
		rescale := func(n int) {
			d := f.decl
			d.Pools = []model.PoolSpec{*p}
			d.Pools[0].Count, d.Pools[0].MinAvailable = n, n-1
			if err := f.Apply(d, f.set); err != nil {
				t.Fatal(err)
			}
		}
		rescale(6)
		f.settle(6, 30*time.Second)
		rescale(2)
		f.settle(2, time.Minute)
		for _, n := range []model.ProxyName{"web-1", "web-2"} {
			if v, _ := f.Snapshot().Proxy(n); v == nil {
				t.Errorf("%s is gone; the highest ordinals go first", n)
			}
		}
	})
}

func TestManaged_templateChangeIsRolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.pool(3)
		f.run()
		f.settle(3, 30*time.Second)
		was := map[model.ProxyName]string{}
		for _, n := range []model.ProxyName{"web-1", "web-2", "web-3"} {
			was[n] = f.proxy(string(n)).Managed.UID
		}
		d := f.decl
		bigger := d.Templates["small"]
		bigger.MemoryMB = 256
		d.Templates = map[string]model.Template{"small": bigger}
		if err := f.Apply(d, f.set); err != nil {
			t.Fatal(err)
		}
		done := func() bool {
			for n, uid := range was {
				v, _ := f.Snapshot().Proxy(n)
				if v == nil || v.Managed.UID == uid || v.Managed.BuiltHash != v.Managed.SpecHash || !v.Health.InRotation {
					return false
				}
			}
			return len(f.domains()) == 3
		}
		start := time.Now()
		for !done() {
			if n := f.in(); n < 2 {
				t.Fatalf("%d in rotation, min_available is 2\n%s", n, f.plan())
			}
			if time.Since(start) > 5*time.Minute {
				t.Fatalf("not rolled\n%s", f.plan())
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("3 rolled in %s", time.Since(start))
	})
}

func TestManaged_vmDestroyedBehindOurBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.run()
		f.settle(2, 30*time.Second)
		v := f.proxy("web-1")
		if err := f.sims["a"].Domain(v.Managed.Domain).Destroy(); err != nil {
			t.Fatal(err)
		}
		f.within(5*time.Second, "noticed", func() bool { return f.in() == 1 })
		took := f.settle(2, 30*time.Second)
		t.Logf("back after %s", took)
		if b := f.Snapshot().Hosts[0].Budget; b.Used != 1 {
			t.Errorf("budget %+v, want one used", b)
		}
		f.stop()
		f.run()
		if b := f.Snapshot().Hosts[0].Budget; b.Used != 1 {
			t.Errorf("after a restart: budget %+v, want one used", b)
		}
	})
}

func TestManaged_foreignDomainOfTheSameNameIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		f.run()
		f.settle(1, 30*time.Second)
		f.stop()
		// The same records, on a host where somebody else has that name.
		name := f.domains()[0][2:]
		d := f.sims["a"].Domain(name)
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		d.Undefine()
		f.sims["a"].AddDomain(simhost.DomainSpec{Name: name, Running: true})
		f.run()
		f.within(time.Minute, "the conflict is named", func() bool {
			return strings.Contains(f.plan(), "without virdeck's mark: it is left alone")
		})
		f.during(3*time.Minute, "left alone", func() bool {
			d := f.sims["a"].Domain(name)
			return d != nil && d.ID() > 0 && len(f.domains()) == 1
		})
	})
}

func TestManaged_restartKeepsTheRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.pool(4)
		f.run()
		f.settle(4, 30*time.Second)
		if _, err := f.Submit(model.Command{Verb: model.VerbDrain, Host: "a", Proxy: "web-1", By: "test"}); err != nil {
			t.Fatal(err)
		}
		f.within(time.Second, "drained", func() bool { return f.in() == 3 })
		f.stop()
		time.Sleep(time.Minute)
		f.run()
		if n := f.in(); n != 3 {
			t.Fatalf("%d in rotation right after the restart, want 3\n%s", n, f.dump())
		}
		if v := f.proxy("web-2"); len(v.Marks) == 0 || v.Marks[0] != model.MarkUnverified {
			t.Errorf("marks %q, want unverified", v.Marks)
		}
		if !f.proxy("web-1").Drained {
			t.Error("the drain is forgotten")
		}
		f.during(time.Minute, "nothing is written, nobody leaves", func() bool { return f.in() == 3 && len(f.domains()) == 4 })
		if v := f.proxy("web-2"); len(v.Marks) != 0 {
			t.Errorf("marks %q after a minute", v.Marks)
		}
		f.stop()
		time.Sleep(11 * time.Minute)
		f.run()
		if n := f.in(); n != 0 {
			t.Errorf("%d in rotation from a store 11 minutes old, want none before they are probed", n)
		}
		f.within(10*time.Second, "back", func() bool { return f.in() == 3 })
	})
}

func TestManaged_emptyStoreTakesUIDsFromTheMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.pool(4)
		f.run()
		f.settle(4, 30*time.Second)
		before := f.domains()
		f.stop()
		var err error
		if f.store, err = store.NewMemory("test"); err != nil {
			t.Fatal(err)
		}
		f.run()
		f.during(time.Minute, "another controller's VMs are left alone", func() bool { return len(f.domains()) == 4 })
		if !strings.Contains(f.plan(), "another controller, ") {
			t.Errorf("nobody says why:\n%s", f.plan())
		}
		f.stop()
		if f.store, err = store.NewMemory("test"); err != nil {
			t.Fatal(err)
		}
		f.set.Takeover = true
		f.run()
		f.settle(4, time.Minute)
		if after := f.domains(); strings.Join(after, " ") != strings.Join(before, " ") {
			t.Errorf("domains %q, want %q", after, before)
		}
	})
}

func TestManaged_orphanIsRemovedAfterItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.run()
		f.settle(2, 30*time.Second)
		f.stop()
		f.decl.Pools = nil
		f.run()
		f.during(9*time.Minute, "kept in its grace", func() bool { return len(f.domains()) == 2 })
		if v := f.Snapshot().Hosts[0].Orphans; len(v) != 2 {
			t.Errorf("orphans %+v, want 2", v)
		}
		f.within(3*time.Minute, "removed", func() bool { return len(f.domains()) == 0 })
		if v := f.sims["a"].Volumes("default"); len(v) != 1 || v[0] != "base.qcow2" {
			t.Errorf("volumes %q, want the base alone", v)
		}
	})
}

func TestManaged_recreateAndDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.run()
		f.settle(2, 30*time.Second)
		uid := f.proxy("web-1").Managed.UID
		do := func(v model.Verb) {
			t.Helper()
			id, err := f.Submit(model.Command{Verb: v, Host: "a", Proxy: "web-1", By: "test"})
			if err != nil {
				t.Fatal(err)
			}
			f.within(time.Minute, "the op ends: "+v.String(), func() bool {
				op, _ := f.ops.get(id)
				if op.State == model.OpFailed {
					t.Fatalf("%+v", op)
				}
				return op.State == model.OpDone
			})
		}
		do(model.VerbRecreate)
		f.settle(2, 30*time.Second)
		if now := f.proxy("web-1").Managed.UID; now == uid {
			t.Error("the uid is the same")
		}
		do(model.VerbDelete)
		f.during(time.Minute, "stays away", func() bool { return len(f.domains()) == 1 })
		do(model.VerbStart)
		f.settle(2, 30*time.Second)
		do(model.VerbStop)
		f.within(15*time.Second, "out", func() bool { return f.in() == 1 })
		f.during(time.Minute, "stays off", func() bool { return f.in() == 1 })
		do(model.VerbStart)
		f.settle(2, 30*time.Second)
	})
}

// A kill at any time, and a restart: the declared VMs, and none besides.
func TestManaged_killedAtAnyTime(t *testing.T) {
	for after := time.Duration(0); after < 6*time.Second; after += 250 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			f := newManaged(t, "a", "b")
			f.pool(4)
			dying := &mortal{Memory: f.store}
			f.keep = dying
			for _, s := range f.sims { // so that there is time to die in
				s.Inject(simhost.Fault{Kind: simhost.FaultDelay, Delay: 40 * time.Millisecond})
			}
			f.run()
			time.Sleep(after)
			dying.dead.Store(true) // from here on nothing is remembered
			f.stop()
			f.keep = nil
			f.run()
			f.settle(4, 2*time.Minute)
			for _, h := range f.Snapshot().Hosts {
				if len(h.Orphans) > 0 {
					t.Errorf("killed after %s: orphans %+v", after, h.Orphans)
				}
			}
		})
	}
}

// The same in the middle of a roll and of scaling down.
func TestManaged_killedWhileItRolls(t *testing.T) {
	for after := time.Duration(0); after < 40*time.Second; after += 1700 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			f := newManaged(t, "a", "b")
			f.pool(4)
			f.run()
			f.settle(4, 30*time.Second)
			f.stop()
			dying := &mortal{Memory: f.store}
			f.keep = dying
			bigger := f.decl.Templates["small"]
			bigger.MemoryMB = 256
			f.decl.Templates = map[string]model.Template{"small": bigger}
			f.decl.Pools = []model.PoolSpec{f.decl.Pools[0]}
			f.decl.Pools[0].Count, f.decl.Pools[0].MinAvailable = 3, 2
			f.run()
			time.Sleep(after)
			dying.dead.Store(true)
			f.stop()
			f.keep = nil
			f.run()
			f.settle(3, 3*time.Minute)
			f.within(3*time.Minute, "all of the new template", func() bool {
				for _, n := range []string{"web-1", "web-2", "web-3"} {
					p, _ := f.Snapshot().Proxy(model.ProxyName(n))
					if p == nil || p.Managed.BuiltHash != p.Managed.SpecHash || !p.Health.InRotation {
						return false
					}
				}
				return len(f.domains()) == 3
			})
		})
	}
}

// mortal is a store that takes nothing more once its process is dead.
type mortal struct {
	*store.Memory
	dead atomic.Bool
}

func (m *mortal) Apply(ctx context.Context, changes ...store.Change) error {
	if m.dead.Load() {
		return context.Canceled
	}
	return m.Memory.Apply(ctx, changes...)
}

func TestManaged_aStoreThatFailsHoldsEveryWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		broken := &mortal{Memory: f.store}
		broken.dead.Store(true)
		f.keep = broken
		f.run()
		f.during(time.Minute, "nothing is made that could not be remembered", func() bool { return len(f.domains()) == 0 })
		if n := f.Snapshot().Notices; len(n) == 0 || !strings.HasPrefix(n[0].Text, "nothing is changed on any host, since it could not be remembered: ") {
			t.Errorf("notices %+v", n)
		}
		if _, err := f.Submit(model.Command{Verb: model.VerbDrain, Host: "a", Proxy: "web-1", By: "test"}); err != nil {
			t.Fatal(err)
		}
		f.within(time.Second, "the drain says that it is not remembered", func() bool {
			ops := f.Snapshot().Ops
			return len(ops) == 1 && ops[0].Result == "it could not be remembered: context canceled"
		})
		broken.dead.Store(false)
		f.settle(2, time.Minute)
	})
}

func TestManaged_createsAreBoundedPerHost(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b", "c", "d")
		f.set.Poll = time.Minute
		for _, s := range f.sims {
			s.Inject(simhost.Fault{Proc: simhost.ProcDomainDefineXMLFlags, Kind: simhost.FaultDelay, Delay: 500 * time.Millisecond})
		}
		f.pool(n)
		f.run()
		most := 0
		for start := time.Now(); f.in() < n; time.Sleep(200 * time.Millisecond) {
			for _, h := range f.Snapshot().Hosts {
				under := 0
				for _, p := range h.Proxies {
					under += boolInt(p.Managed.Write == "create")
				}
				most = max(most, under)
			}
			if time.Since(start) > 10*time.Minute {
				t.Fatalf("%d in rotation after 10 minutes", f.in())
			}
		}
		if most != 8 {
			t.Errorf("%d creates at one time on one host, want 8", most)
		}
		if got := len(f.domains()); got != n {
			t.Errorf("%d domains, want %d", got, n)
		}
	})
}

func (f *managedFleet) newStore() {
	f.t.Helper()
	var err error
	if f.store, err = store.NewMemory(f.set.Fleet); err != nil {
		f.t.Fatal(err)
	}
}
