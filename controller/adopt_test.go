package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// A domain that somebody else made: adopted, promoted, let go again, and never
// touched by any of it.
func TestAdopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		d := f.sims["a"].AddDomain(simhost.DomainSpec{Name: "attic", Running: true, NICs: bridge("10.9.0.1")})
		id := d.ID()
		f.run()
		f.within(10*time.Second, "seen", func() bool { return len(f.Snapshot().Hosts[0].Undeclared) == 1 })
		spec := model.ProxySpec{Name: "p-attic", Domain: "attic", Port: 3128, Pool: "default"}
		f.refused(model.Command{Verb: model.VerbAdopt, Host: "a"}, "adopt needs a name, a domain and a port")
		other := spec
		other.Domain = "cellar"
		f.refused(model.Command{Verb: model.VerbAdopt, Host: "a", Adopt: &other}, "there is no domain cellar on a, as far as the last look knows")
		f.done(model.Command{Verb: model.VerbAdopt, Host: "a", Adopt: &spec})
		f.within(20*time.Second, "in rotation", func() bool { return f.in() == 1 })
		again := spec
		again.Name = "p-other"
		f.refused(model.Command{Verb: model.VerbAdopt, Host: "a", Adopt: &again}, "domain attic is the proxy p-attic already")
		f.refused(on(model.VerbRecreate, "p-attic"), "p-attic is adopted: only VMs that virdeck made are removed or made anew")

		f.stop()
		f.run() // it is remembered, though no configuration declares it
		if f.in() != 1 {
			t.Errorf("forgotten by a restart:\n%s", f.dump())
		}
		f.within(20*time.Second, "looked at, and known to be the machine that it was", func() bool {
			return f.Refuse(on(model.VerbManage, "p-attic")) == nil
		})

		f.done(on(model.VerbManage, "p-attic"))
		f.during(time.Minute, "stays in rotation", func() bool { return f.in() == 1 })
		if m := f.proxy("p-attic").Managed; m == nil || m.Owner.UID != m.UID || m.Owner.Fleet != "test" {
			t.Errorf("managed %+v", m)
		}
		f.refused(on(model.VerbRecreate, "p-attic"), "p-attic was adopted: virdeck did not make its VM and cannot make it anew")
		f.refused(on(model.VerbManage, "p-attic"), "p-attic is managed already")
		f.again()
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

		f.done(on(model.VerbRelease, "p-attic"))
		f.within(time.Second, "adopted again", func() bool { return f.proxy("p-attic").Managed == nil })
		f.during(time.Minute, "in its place", func() bool { return f.in() == 1 && f.proxy("p-attic").Managed == nil })
		f.done(on(model.VerbRelease, "p-attic"))
		if p, _ := f.Snapshot().Proxy("p-attic"); p != nil {
			time.Sleep(time.Second)
		}
		if p, _ := f.Snapshot().Proxy("p-attic"); p != nil {
			t.Error("it is still a proxy")
		}
		if d.ID() <= 0 || !strings.Contains(strings.Join(f.domains(), " "), "a/attic") {
			t.Error("its VM is gone")
		}
		f.again()
		if p, _ := f.Snapshot().Proxy("p-attic"); p != nil {
			t.Error("it is back after a restart")
		}
	})
}

func TestPromoted_deletedIsAdoptedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.attic()
		f.begin(1)
		for _, v := range []model.Verb{model.VerbManage, model.VerbDelete} {
			f.done(on(v, "attic"))
		}
		f.during(time.Minute, "the VM is gone, and none is made", func() bool { return len(f.domains()) == 0 })
		if p := f.proxy("attic"); p.Managed != nil || p.Spec.Backing != model.BackingAdopted {
			t.Errorf("%+v", p)
		}
	})
}
