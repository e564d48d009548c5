package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// An order whose host is taken out of the file comes to nothing, and is told so:
// it does not come true when the host is back, and nothing is told as removed that
// is there.
func TestHostGone_ordersComeToNothing(t *testing.T) {
	for _, v := range []model.Verb{model.VerbStop, model.VerbRecreate, model.VerbDelete} {
		t.Run(v.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a", "b")
				f.single("a", "one")
				f.begin(1)
				uid, vm := f.uid("one"), f.vm("one").ID()
				if v != model.VerbDelete { // which drains first
					f.Controller.host("a").setResting(true)
				}
				id := f.submit(on(v, "one"))
				time.Sleep(2 * time.Second)
				f.apply(f.without("a"))
				op, _ := f.ops.get(id)
				if want := "overtaken: its host is not declared any more"; op.State != model.OpCanceled || op.Result != want {
					t.Errorf("%s %q, want %q", op.State, op.Result, want)
				}
				f.apply(f.decl)
				f.within(time.Minute, "back", func() bool { return f.in() == 1 })
				f.during(5*time.Minute, "the same VM, in the same run", func() bool {
					return f.in() == 1 && f.uid("one") == uid && f.vm("one").ID() == vm
				})
			})
		})
	}
}

// A host that cannot be let go yet, since a write hangs, keeps its proxies as they
// are: to give up a host is not to remove its VMs.
func TestHostGone_whileAWriteHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.single("a", "one")
		f.begin(1)
		one := f.vm("one")
		f.single("a", "two")
		thaw := f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcDomainDefineXMLFlags, Kind: simhost.FaultHang})
		f.apply(f.decl)
		f.within(10*time.Second, "it is being made", func() bool {
			p, _ := f.Snapshot().Proxy("two")
			return p != nil && p.Managed.Write == "create"
		})
		less := f.without("a")
		if err := f.Apply(less, f.set); err == nil {
			t.Fatal("no error, though a write is under way")
		}
		f.during(20*time.Minute, "the VM and its place are kept", func() bool { return f.in() == 1 && len(f.sims["a"].Domains()) == 1 })
		thaw()
		f.within(20*time.Minute, "the write has ended", func() bool { return f.Controller.host("a").underWay() == 0 })
		f.apply(less)
		f.within(time.Minute, "the host is let go", func() bool { return f.in() == 0 && len(f.Snapshot().Hosts) == 1 })
		n := len(f.sims["a"].Domains())
		f.during(30*time.Minute, "the VMs are left as they are", func() bool { return one.ID() > 0 && len(f.sims["a"].Domains()) == n })
	})
}

// A proxy that is declared on another host takes with it what operators want of
// it.
func TestMoves_takesWishesAlong(t *testing.T) {
	for _, v := range []model.Verb{model.VerbDrain, model.VerbStop, model.VerbDelete} {
		t.Run(v.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a", "b")
				f.single("a", "one")
				f.begin(1)
				f.done(on(v, "one"))
				time.Sleep(time.Minute)
				f.apply(f.moved("b"))
				f.within(2*time.Minute, "moved", func() bool { return f.proxy("one").Spec.Host == "b" })
				f.during(5*time.Minute, "out of the rotation", func() bool { return f.in() == 0 })
				back := map[model.Verb]model.Verb{model.VerbDrain: model.VerbUndrain, model.VerbStop: model.VerbStart, model.VerbDelete: model.VerbStart}[v]
				f.submit(model.Command{Verb: back, Host: "b", Proxy: "one"})
				f.within(time.Minute, "in, when it is wanted again", func() bool { return f.in() == 1 && len(f.sims["b"].Domains()) == 1 })
			})
		})
	}
}

// moved is what is declared, with its single proxy on another host.
func (f *managedFleet) moved(to model.HostName) Declared {
	d := f.decl
	m := d.Managed[0]
	m.Host = to
	d.Managed = []model.ManagedSpec{m}
	return d
}

// The move is known after a restart, too, and after one that brings it.
func TestMoves_overARestart(t *testing.T) {
	for name, reload := range map[string]bool{"reloaded, and restarted": true, "moved while virdeck was off": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a", "b")
				f.single("a", "one")
				f.begin(1)
				f.sims["a"].Kill()
				f.within(time.Minute, "the host is down", func() bool { return f.Snapshot().Host("a").Link.State == model.LinkDown })
				if reload {
					f.apply(f.moved("b"))
				}
				f.decl = f.moved("b")
				f.again()
				f.during(10*time.Minute, "none is made while the old one cannot be removed", func() bool { return len(f.sims["b"].Domains()) == 0 })
				if err := f.sims["a"].Start(); err != nil {
					t.Fatal(err)
				}
				f.within(2*time.Minute, "moved", func() bool { return f.in() == 1 && len(f.sims["a"].Domains()) == 0 && len(f.sims["b"].Domains()) == 1 })
			})
		})
	}
}

// What a name stands for may change: the old VM goes without a grace, since the
// name is wanted.
func TestMoves_anotherKind(t *testing.T) {
	for name, next := range map[string]func(d *Declared){
		"from a pool to itself": func(d *Declared) {
			d.Pools = nil
			d.Managed = []model.ManagedSpec{{ProxySpec: model.ProxySpec{Name: "web-1", Host: "a", Port: 3128}, Template: "small"}}
		},
		"from a pool to an adopted domain": func(d *Declared) {
			d.Pools = nil
			d.Proxies = []model.ProxySpec{{Name: "web-1", Host: "a", Domain: "attic", Port: 3128, Pool: "default"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a")
				f.sims["a"].AddDomain(simhost.DomainSpec{Name: "attic", Running: true, NICs: bridge("10.9.0.1")})
				f.pool(1)
				f.run()
				f.within(30*time.Second, "in", func() bool { return f.in() == 1 })
				was, d := f.uid("web-1"), f.decl
				next(&d)
				f.apply(d)
				f.within(time.Minute, "what is declared now serves", func() bool {
					p, _ := f.Snapshot().Proxy("web-1")
					return p != nil && f.in() == 1 && (p.Managed == nil || p.Managed.UID != was)
				})
			})
		})
	}
	t.Run("from itself to a pool", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newManaged(t, "a")
			f.single("a", "web-1")
			f.begin(1)
			was := f.uid("web-1")
			f.decl.Managed = nil
			f.pool(1)
			f.apply(f.decl)
			f.within(2*time.Minute, "a member serves", func() bool { return f.in() == 1 && f.uid("web-1") != was && f.proxy("web-1").Spec.Pool == "web" })
		})
	})
}
