package controller

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt"
	"virdeck/provider/libvirt/simhost"
	"virdeck/store"
)

// slowAudit is a disk that takes its time.
type slowAudit struct{}

func (slowAudit) Append(store.Entry) error {
	time.Sleep(100 * time.Millisecond)
	return nil
}

// Two operators adopt one domain at once: it is one proxy, and the other is told.
func TestAdopt_twiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.sims["a"].AddDomain(simhost.DomainSpec{Name: "attic", Running: true, NICs: bridge("10.9.0.1")})
		f.audit = slowAudit{}
		f.run()
		f.within(30*time.Second, "seen", func() bool { return len(f.Snapshot().Hosts[0].Undeclared) == 1 })
		var wg sync.WaitGroup
		ids := [2]model.OpID{}
		for i, n := range []model.ProxyName{"p1", "p2"} {
			wg.Go(func() {
				spec := model.ProxySpec{Name: n, Domain: "attic", Port: 3128, Pool: "default"}
				var err error
				if ids[i], err = f.Submit(model.Command{Verb: model.VerbAdopt, Host: "a", Adopt: &spec, By: string(n)}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		f.within(time.Minute, "one proxy", func() bool { return len(f.Snapshot().Hosts[0].Proxies) == 1 })
		var states [2]model.OpState
		for i, id := range ids {
			op, _ := f.ops.get(id)
			states[i] = op.State
			if op.State == model.OpFailed && !strings.HasPrefix(op.Result, "domain attic is the proxy p") {
				t.Errorf("told %q", op.Result)
			}
		}
		if states[0] == states[1] {
			t.Errorf("both %s", states[0])
		}
	})
}

// A name that a pool may use is not taken by an adopted domain; one that is taken
// all the same is told of.
func TestPool_nameTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.sims["a"].AddDomain(simhost.DomainSpec{Name: "attic", Running: true, NICs: bridge("10.9.0.1")})
		f.run()
		f.within(30*time.Second, "made", func() bool { return f.in() == 2 })
		spec := model.ProxySpec{Name: "web-3", Domain: "attic", Port: 3128, Pool: "default"}
		f.refused(model.Command{Verb: model.VerbAdopt, Host: "a", Adopt: &spec}, "web-3 is a name of the pool web")
		spec.Name = "web-7"
		f.done(model.Command{Verb: model.VerbAdopt, Host: "a", Adopt: &spec})
		d := f.decl
		d.Pools = append([]model.PoolSpec{}, d.Pools...)
		d.Pools[0].Count = 7
		f.apply(d)
		f.within(time.Minute, "said", func() bool {
			return strings.Contains(strings.Join(f.Snapshot().Pools[0].Wait, "\n"), "web-7: another proxy of this name is on a")
		})
	})
}

// What the budget holds of a pool is said to be held by it.
func TestPool_ageHeldByTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		p := f.pool(2)
		p.MaxAge, p.Surge, p.MinAvailable = 10*time.Minute, 0, 1
		f.decl.Budget.PerPool = 0
		f.begin(2)
		f.within(15*time.Minute, "said", func() bool {
			return strings.Contains(strings.Join(f.Snapshot().Pools[0].Wait, "\n"), "the budget of pool web is 0")
		})
	})
}

// The other name of a machine, which nobody answers under any more, tells nothing
// of where VMs are.
func TestMoves_deadSecondName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		var dead atomic.Bool
		hs := f.another("b")
		inner := f.sims["a"].Dial
		hs.Open = opens(libvirt.Options{Link: libvirt.LinkOptions{Host: "b", Dial: func(ctx context.Context) (net.Conn, error) {
			if dead.Load() {
				return nil, errors.New("no route")
			}
			return inner(ctx)
		}}})
		f.decl.Hosts = append(f.decl.Hosts, hs)
		f.single("a", "one")
		f.run()
		f.within(time.Minute, "ready", func() bool { return f.in() == 1 && f.Snapshot().Host("b").Twin != "" })
		f.within(time.Minute, "seen under both", func() bool { return f.Snapshot().Host("b").Domains == 1 })
		dead.Store(true)
		f.submit(model.Command{Verb: model.VerbReconnect, Host: "b"})
		f.within(time.Minute, "one name is dead", func() bool { return f.Snapshot().Host("b").Link.State == model.LinkDown })
		d := f.vm("one")
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		d.Undefine()
		f.within(2*time.Minute, "made again", func() bool { return f.in() == 1 && len(f.sims["a"].Domains()) == 1 })
	})
}

// A pool that only a reload declares finds its VMs by their marks, where the store
// began empty.
func TestReload_poolOverAnEmptyStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.begin(2)
		was := strings.Join(f.domains(), " ")
		f.stop()
		f.newStore()
		f.set.Takeover = true
		full := f.decl
		f.decl.Pools = nil
		f.run()
		f.within(time.Minute, "looked at", func() bool { return f.Snapshot().Hosts[0].Domains == 2 })
		f.apply(full)
		f.during(30*time.Minute, "the same VMs", func() bool { return len(f.domains()) == 2 })
		if is := strings.Join(f.domains(), " "); is != was || f.in() != 2 {
			t.Errorf("%s, before %s; %d in rotation", is, was, f.in())
		}
	})
}

// A copy of a VM has its mark, and is nobody's to remove: name and UUID tell.
func TestOrphan_copyWithOurMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		f.begin(1)
		mark := f.vm("one").Metadata("urn:virdeck:owner:1", false)
		c := f.sims["a"].AddDomain(simhost.DomainSpec{Name: "copy", Running: true, NICs: bridge("10.9.0.1")})
		c.SetMetadata("urn:virdeck:owner:1", "virdeck", mark)
		f.done(on(model.VerbRecreate, "one"))
		f.during(time.Hour, "left alone", func() bool { return c.ID() > 0 && f.sims["a"].Domain("copy") != nil })
	})
}
