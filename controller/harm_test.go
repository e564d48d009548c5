package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt"
	"virdeck/provider/libvirt/simhost"
)

// What virdeck did not make, it does not remove, though its mark is there and no
// proxy has its uid any more.
func TestHarm_promotedAndUndeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.bridged("a", "attic", "10.9.0.1")
		f.decl.Proxies = f.fleet.decl
		f.run()
		f.within(20*time.Second, "in rotation", func() bool { return f.in() == 1 })
		if op := f.do(model.Command{Verb: model.VerbManage, Host: "a", Proxy: "attic"}); op.State != model.OpDone {
			t.Fatalf("%+v", op)
		}
		d := f.decl
		d.Proxies = nil
		if err := f.Apply(d, f.set); err != nil {
			t.Fatal(err)
		}
		f.during(time.Hour, "the VM stays", func() bool { return f.sims["a"].Domain("attic") != nil && f.sims["a"].Domain("attic").ID() > 0 })
	})
}

// Two hosts of the configuration that are one libvirt.
func TestHarm_oneDaemonUnderTwoNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		twin := f.specs[0]
		twin.Name = "twin"
		open := f.sims["a"].Dial
		twin.Open = func(onEvent func(provider.Event), onLink func(model.LinkStatus)) provider.Host {
			return libvirt.New(libvirt.Options{
				Link:    libvirt.LinkOptions{Host: "twin", Dial: open, Endpoint: "simulated", OnChange: onLink},
				OnEvent: onEvent,
			})
		}
		f.pool(2)
		f.decl.Pools[0].Hosts = []model.HostName{"a"}
		f.decl.Hosts = append(f.decl.Hosts, twin)
		f.run()
		f.within(30*time.Second, "in rotation", func() bool { return f.in() == 2 })
		f.during(time.Hour, "nobody's VMs are orphans of the other name", func() bool { return f.in() == 2 && len(f.sims["a"].Domains()) == 2 })
	})
}

func TestHarm_reloadLeavesAnOperatorsDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.decl.Managed = []model.ManagedSpec{{ProxySpec: model.ProxySpec{Name: "one", Host: "a", Port: 3128}, Template: "small"}}
		f.run()
		f.within(30*time.Second, "in rotation", func() bool { return f.in() == 1 })
		if op := f.do(model.Command{Verb: model.VerbDelete, Host: "a", Proxy: "one"}); op.State != model.OpDone {
			t.Fatalf("%+v", op)
		}
		if err := f.Apply(f.decl, f.set); err != nil {
			t.Fatal(err)
		}
		f.during(time.Minute, "it stays deleted", func() bool { return len(f.domains()) == 0 })
	})
}

// Wanted again while its VM is being removed: it is made anew, and does not stay
// dead.
func TestHarm_startDuringADelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		f.decl.Pools[0].DrainTime = 3 * time.Second
		f.run()
		f.settle(1, 30*time.Second)
		for _, v := range []model.Verb{model.VerbDelete, model.VerbStart} {
			if _, err := f.Submit(model.Command{Verb: v, Host: "a", Proxy: "web-1", By: "test"}); err != nil {
				t.Fatal(err)
			}
			f.within(10*time.Second, "the delete has begun", func() bool {
				p, _ := f.Snapshot().Proxy("web-1")
				return p.Managed.Write == "delete" || len(f.domains()) == 0 || v == model.VerbStart
			})
		}
		f.settle(1, time.Minute)
	})
}

// A VM that was of no use and has come back is not replaced later.
func TestHarm_mendedIsNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		f.set.ReplaceAfter = time.Minute
		f.decl.Budget.PerPool = 0 // it holds the replacement
		f.run()
		f.settle(1, 30*time.Second)
		uid := f.proxy("web-1").Managed.UID
		d := f.sims["a"].Domain(f.proxy("web-1").Managed.Domain)
		was := d.Proxy()
		broken := was
		broken.Mode = simhost.ProxyBadGateway
		d.SetProxy(broken)
		f.within(5*time.Minute, "it is to be replaced", func() bool { return len(f.Snapshot().Plan) == 1 && f.Snapshot().Plan[0].Verb == model.PlanReplace })
		d.SetProxy(was)
		f.within(time.Minute, "back", func() bool { return f.in() == 1 })
		f.stop()
		f.decl.Budget.PerPool = 5
		f.run()
		f.during(time.Hour, "the same VM, in rotation", func() bool { return f.in() == 1 && f.proxy("web-1").Managed.UID == uid })
	})
}

// A delete that was accepted outlives a kill right after it.
func TestHarm_acceptedDeleteIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		f.run()
		f.settle(1, 30*time.Second)
		f.stop()
		dying := &mortal{Memory: f.store}
		f.keep = dying
		f.run()
		time.Sleep(time.Second)
		if _, err := f.Submit(model.Command{Verb: model.VerbDelete, Host: "a", Proxy: "web-1", By: "test"}); err != nil {
			t.Fatal(err)
		}
		dying.dead.Store(true)
		f.stop()
		f.keep = nil
		state, err := f.store.Load(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if w := state.Proxies["web-1"].Wish; w != "removed" {
			t.Errorf("the store has %q", w)
		}
		f.run()
		f.within(time.Minute, "it is carried out", func() bool { return len(f.domains()) == 0 })
	})
}

func TestOps_whatIsUnderWayIsNotDropped(t *testing.T) {
	var o ops
	now := time.Now()
	first, _ := o.open(model.Command{Verb: model.VerbStop, Proxy: "first"}, now)
	for i := range 3 * opsMax {
		id, _ := o.open(model.Command{Verb: model.VerbStop, Proxy: model.ProxyName(string(rune('a' + i)))}, now)
		o.end(id, nil, "done")
	}
	if op, ok := o.get(first); !ok || !op.Ended.IsZero() {
		t.Errorf("the oldest is gone, though it has not ended: %+v, %v", op, ok)
	}
	if n := len(o.snapshot(now)); n != opsMax {
		t.Errorf("%d are kept, want %d", n, opsMax)
	}
}
