package controller

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// at is what is declared, with the single proxies on another port.
func (f *managedFleet) at(port uint16) Declared {
	d := f.decl
	d.Managed = slices.Clone(d.Managed)
	for i := range d.Managed {
		d.Managed[i].Port = port
	}
	return d
}

func TestRespec_whileVirdeckWasOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		uid := f.uid("one")
		f.stop()
		f.decl = f.bigger()
		f.run()
		f.within(2*time.Minute, "another VM is in its place", func() bool { return f.uid("one") != uid && f.renewed("one") })
	})
}

func TestRespec_duringTheFirstCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcDomainDefineXMLFlags, Kind: simhost.FaultDelay, Delay: 2 * time.Second, Times: 1})
		f.run()
		f.within(5*time.Second, "it is being made", func() bool { return f.proxy("one").Managed.Write == "create" })
		uid := f.uid("one")
		f.apply(f.bigger())
		f.within(2*time.Minute, "another VM is in its place", func() bool { return f.uid("one") != uid && f.renewed("one") })
	})
}

// What was half made of a template that cannot be is not finished, but made
// anew of the one that can.
func TestRespec_ofWhatWasNeverFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		refused := f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcDomainCreate, Kind: simhost.FaultError, Error: simhost.Error{Code: 67, Message: "unsupported configuration: no such CPU"}})
		f.run()
		f.within(20*time.Second, "it cannot be started", func() bool { return f.proxy("one").Managed.Latched && len(f.domains()) == 1 })
		uid := f.uid("one")
		refused()
		f.apply(f.bigger())
		f.within(2*time.Minute, "another VM is in its place", func() bool { return f.uid("one") != uid && f.renewed("one") })
	})
}

// The configuration goes back while the old VM drains: it stays.
func TestRespec_andBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		uid := f.uid("one")
		f.apply(f.bigger())
		f.within(5*time.Second, "it drains", func() bool { return f.state("one") == model.StateDeleting })
		f.apply(f.decl)
		f.within(5*time.Second, "it is back", func() bool { return f.in() == 1 })
		f.during(5*time.Minute, "the same VM, in rotation", func() bool { return f.in() == 1 && f.uid("one") == uid })
	})
}

// Until the VM is replaced it is served where it listens.
func TestRespec_portOfTheVMThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		f.Controller.host("a").setResting(true) // it cannot be replaced yet
		f.apply(f.at(3129))
		f.during(time.Minute, "in rotation at the old port", func() bool {
			p := f.proxy("one")
			return p.Spec.Port == 3128 && (p.Health.InRotation || p.State == model.StateDeleting)
		})
		f.Controller.host("a").setResting(false)
		f.within(2*time.Minute, "in rotation at the new one", func() bool { return f.in() == 1 && f.proxy("one").Spec.Port == 3129 })
	})
}

// The same over a restart of virdeck, for one of a pool, too.
func TestRespec_portIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		f.pool(1)
		f.begin(2)
		f.stop()
		f.decl = f.at(3129)
		f.decl.Pools[0].Port = 3129
		f.run()
		f.during(3*time.Second, "in rotation", func() bool { return f.proxy("one").Spec.Port == 3128 && f.proxy("web-1").Health.InRotation })
		f.within(3*time.Minute, "both at the new one", func() bool {
			return f.in() == 2 && f.proxy("one").Spec.Port == 3129 && f.proxy("web-1").Spec.Port == 3129 && len(f.domains()) == 2
		})
	})
}

// What an operator declares is counted, and not held.
func TestRespec_isNotHeldByTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.decl.Budget.PerHost = 0
		f.alone()
		uid := f.uid("one")
		f.apply(f.bigger())
		f.within(2*time.Minute, "another VM is in its place", func() bool { return f.uid("one") != uid && f.renewed("one") })
		if b := f.Snapshot().Hosts[0].Budget; b.Used != 1 {
			t.Errorf("budget %+v, want one used", b)
		}
	})
}
