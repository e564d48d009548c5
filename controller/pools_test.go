package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

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
		f.begin(4)
		rescale := func(n int) {
			d := f.decl
			d.Pools = []model.PoolSpec{*p}
			d.Pools[0].Count, d.Pools[0].MinAvailable = n, n-1
			f.apply(d)
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
		f.begin(3)
		was := map[model.ProxyName]string{"web-1": f.uid("web-1"), "web-2": f.uid("web-2"), "web-3": f.uid("web-3")}
		f.apply(f.bigger())
		done := func() bool {
			for n, uid := range was {
				if !f.renewed(n) || f.uid(string(n)) == uid {
					return false
				}
			}
			return len(f.domains()) == 3
		}
		start := time.Now()
		for !done() {
			if n := f.in(); n < 2 {
				t.Fatalf("%d in rotation, min_available is 2\n%s", n, f.dump())
			}
			if time.Since(start) > 5*time.Minute {
				t.Fatalf("not rolled\n%s", f.dump())
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("3 rolled in %s", time.Since(start))
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

func TestManaged_unreachableHostCausesNothingElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.pool(4)
		f.begin(4)
		f.sims["b"].Kill()
		f.during(time.Hour, "no VM is made elsewhere, and nobody leaves", func() bool { return len(f.domains()) == 4 && f.in() == 4 })
		if err := f.sims["b"].Start(); err != nil {
			t.Fatal(err)
		}
		f.settle(4, 2*time.Minute)
	})
}
