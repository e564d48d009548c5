package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

func (f *managedFleet) used() int {
	f.t.Helper()
	return f.Snapshot().Hosts[0].Budget.Used
}

// noNetwork lets no VM of host a start, until it is called.
func (f *managedFleet) noNetwork() (mend func()) {
	return f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcDomainCreate, Kind: simhost.FaultError, Error: simhost.Error{Code: libvirt.ErrNoNetwork, Message: "Network not found"}})
}

// What could not be remembered was not done, and is not counted.
func TestBudget_aStoreThatFailsUsesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		broken := f.mortal()
		f.begin(1)
		broken.dead.Store(true)
		if err := f.vm("web-1").Destroy(); err != nil {
			t.Fatal(err)
		}
		f.during(10*time.Minute, "no more than the one that is being tried", func() bool { return f.used() <= 1 })
		broken.dead.Store(false)
		f.settle(1, time.Minute)
		if n := f.used(); n != 1 {
			t.Errorf("%d used, want 1", n)
		}
	})
}

// However often it is tried, it is one VM that is brought back.
func TestBudget_triesCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		f.begin(1)
		mend := f.noNetwork()
		if err := f.vm("web-1").Destroy(); err != nil {
			t.Fatal(err)
		}
		f.within(10*time.Minute, "it is tried again and again", func() bool { return f.proxy("web-1").Managed.Fails > 6 })
		if n := f.used(); n != 1 {
			t.Errorf("%d used, want 1", n)
		}
		mend()
		f.submit(on(model.VerbReconcile, "web-1"))
		f.settle(1, 20*time.Second)
		// Another time is another one.
		if err := f.vm("web-1").Destroy(); err != nil {
			t.Fatal(err)
		}
		f.within(5*time.Second, "noticed", func() bool { return f.in() == 0 })
		f.settle(1, 20*time.Second)
		if n := f.used(); n != 2 {
			t.Errorf("%d used, want 2", n)
		}
	})
}

// An operator who reconciles a proxy that the budget holds has it brought back:
// that one, that time, and counted.
func TestBudget_reconcileLiftsItForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.begin(2)
		f.decl.Budget.PerHost = 0
		f.apply(f.decl)
		for _, n := range []string{"web-1", "web-2"} {
			if err := f.vm(n).Destroy(); err != nil {
				t.Fatal(err)
			}
		}
		held := func(n int) bool {
			return strings.Count(f.plan(), "its domain does not run | the budget of host a is 0: ") == n
		}
		f.within(10*time.Second, "both are held", func() bool { return held(2) })
		f.during(time.Minute, "both are held", func() bool { return held(2) && f.in() == 0 })
		f.submit(on(model.VerbReconcile, "web-1"))
		f.within(20*time.Second, "it is back", func() bool { return f.proxy("web-1").Health.InRotation })
		said := false
		for _, e := range f.proxy("web-1").Events {
			said = said || e.What == "start of its VM begins: its domain does not run; beyond the budget, reconciled by test"
		}
		if !said {
			t.Errorf("nobody says why:\n%s", f.dump())
		}
		if n := f.used(); n != 1 {
			t.Errorf("%d used, want 1", n)
		}
		f.during(time.Minute, "the other one is held", func() bool { return held(1) })
		if err := f.vm("web-1").Destroy(); err != nil {
			t.Fatal(err)
		}
		f.within(10*time.Second, "held the next time", func() bool { return held(2) })
	})
}
