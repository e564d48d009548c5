package controller

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// do submits a command and waits for its end.
func (f *managedFleet) do(cmd model.Command) model.Op {
	f.t.Helper()
	cmd.By = "test"
	id, err := f.Submit(cmd)
	if err != nil {
		f.t.Fatal(err)
	}
	var op model.Op
	f.within(time.Minute, cmd.Verb.String()+" ends", func() bool {
		op, _ = f.ops.get(id)
		return !op.Ended.IsZero()
	})
	return op
}

func (f *managedFleet) refused(cmd model.Command, want string) {
	f.t.Helper()
	cmd.By = "test"
	if _, err := f.Submit(cmd); err == nil || err.Error() != want {
		f.t.Errorf("%s: %v, want %q", cmd.Verb, err, want)
	}
}

// A domain that somebody else made: adopted, promoted, let go again, and never
// touched by any of it.
func TestAdopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		d := f.sims["a"].AddDomain(simhost.DomainSpec{Name: "attic", Running: true,
			NICs: []simhost.NIC{{Bridge: "br0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.9.0.1/24")}}}})
		id := d.ID()
		f.run()
		f.within(10*time.Second, "seen", func() bool { return len(f.Snapshot().Hosts[0].Undeclared) == 1 })
		spec := model.ProxySpec{Name: "p-attic", Domain: "attic", Port: 3128, Pool: "default"}
		f.refused(model.Command{Verb: model.VerbAdopt, Host: "a"}, "adopt needs a name, a domain and a port")
		other := spec
		other.Domain = "cellar"
		f.refused(model.Command{Verb: model.VerbAdopt, Host: "a", Adopt: &other}, "there is no domain cellar on a, as far as the last look knows")
		if op := f.do(model.Command{Verb: model.VerbAdopt, Host: "a", Adopt: &spec}); op.State != model.OpDone {
			t.Fatalf("%+v", op)
		}
		f.within(20*time.Second, "in rotation", func() bool { return f.in() == 1 })
		again := spec
		again.Name = "p-other"
		f.refused(model.Command{Verb: model.VerbAdopt, Host: "a", Adopt: &again}, "domain attic is the proxy p-attic already")
		f.refused(model.Command{Verb: model.VerbRecreate, Host: "a", Proxy: "p-attic"}, "p-attic is adopted: only VMs that virdeck made are removed or made anew")

		f.stop()
		f.run() // it is remembered, though no configuration declares it
		if f.in() != 1 {
			t.Errorf("forgotten by a restart:\n%s", f.dump())
		}
		f.within(10*time.Second, "looked at", func() bool { return f.proxy("p-attic").UUID != "" && !f.Snapshot().Hosts[0].LastGood.IsZero() })

		if op := f.do(model.Command{Verb: model.VerbManage, Host: "a", Proxy: "p-attic"}); op.State != model.OpDone {
			t.Fatalf("%+v", op)
		}
		f.during(time.Minute, "stays in rotation", func() bool { return f.in() == 1 })
		if m := f.proxy("p-attic").Managed; m == nil || m.Owner.UID != m.UID || m.Owner.Fleet != "test" {
			t.Errorf("managed %+v", m)
		}
		f.refused(model.Command{Verb: model.VerbRecreate, Host: "a", Proxy: "p-attic"}, "p-attic was adopted: virdeck did not make its VM and cannot make it anew")
		f.refused(model.Command{Verb: model.VerbManage, Host: "a", Proxy: "p-attic"}, "p-attic is managed already")
		f.stop()
		f.run()
		f.during(30*time.Minute, "remembered as managed, and no orphan", func() bool {
			return f.in() == 1 && f.proxy("p-attic").Managed != nil && len(f.Snapshot().Hosts[0].Orphans) == 0
		})
		if d.ID() != id {
			t.Fatal("it was restarted")
		}
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		f.within(10*time.Second, "out", func() bool { return f.in() == 0 })
		f.within(30*time.Second, "a managed one is started again", func() bool { return f.in() == 1 && d.ID() > 0 })

		if op := f.do(model.Command{Verb: model.VerbRelease, Host: "a", Proxy: "p-attic"}); op.State != model.OpDone {
			t.Fatalf("%+v", op)
		}
		f.within(time.Second, "adopted again", func() bool { return f.proxy("p-attic").Managed == nil })
		f.during(time.Minute, "in its place", func() bool { return f.in() == 1 && f.proxy("p-attic").Managed == nil })
		if op := f.do(model.Command{Verb: model.VerbRelease, Host: "a", Proxy: "p-attic"}); op.State != model.OpDone {
			t.Fatalf("%+v", op)
		}
		if p, _ := f.Snapshot().Proxy("p-attic"); p != nil {
			time.Sleep(time.Second)
		}
		if p, _ := f.Snapshot().Proxy("p-attic"); p != nil {
			t.Error("it is still a proxy")
		}
		if d.ID() <= 0 || !strings.Contains(strings.Join(f.domains(), " "), "a/attic") {
			t.Error("its VM is gone")
		}
		f.stop()
		f.run()
		if p, _ := f.Snapshot().Proxy("p-attic"); p != nil {
			t.Error("it is back after a restart")
		}
	})
}

func TestPromoted_deletedIsAdoptedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.bridged("a", "attic", "10.9.0.1")
		f.decl.Proxies = f.fleet.decl
		f.run()
		f.within(20*time.Second, "in rotation", func() bool { return f.in() == 1 })
		for _, v := range []model.Verb{model.VerbManage, model.VerbDelete} {
			if op := f.do(model.Command{Verb: v, Host: "a", Proxy: "attic"}); op.State != model.OpDone {
				t.Fatalf("%+v", op)
			}
		}
		f.during(time.Minute, "the VM is gone, and none is made", func() bool { return len(f.domains()) == 0 })
		if p := f.proxy("attic"); p.Managed != nil || p.Spec.Backing != model.BackingAdopted {
			t.Errorf("%+v", p)
		}
	})
}

func TestOps_withdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.run()
		f.settle(2, 30*time.Second)
		// No write may begin while the host's settings change: the command waits.
		f.controlled("a").setResting(true)
		id, err := f.Submit(model.Command{Verb: model.VerbRecreate, Host: "a", Proxy: "web-2", By: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		uid := f.proxy("web-2").Managed.UID
		if _, err := f.Submit(model.Command{Verb: model.VerbCancel, Op: id, By: "bob"}); err != nil {
			t.Fatal(err)
		}
		if op, _ := f.ops.get(id); op.State != model.OpCanceled || op.Result != "withdrawn by bob" {
			t.Errorf("%+v", op)
		}
		f.controlled("a").setResting(false)
		f.during(time.Minute, "nothing happens", func() bool { return f.in() == 2 && f.proxy("web-2").Managed.UID == uid })
		if _, err := f.Submit(model.Command{Verb: model.VerbCancel, Op: id, By: "bob"}); err == nil || err.Error() != "recreate of web-2 has ended already" {
			t.Errorf("a second time: %v", err)
		}
	})
}

func (f *managedFleet) controlled(n model.HostName) *host { return f.Controller.host(n) }
