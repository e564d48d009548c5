package controller

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

func TestManaged_restartKeepsTheRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.pool(4)
		f.begin(4)
		f.submit(on(model.VerbDrain, "web-1"))
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
		f.begin(4)
		before := f.domains()
		f.stop()
		f.newStore()
		f.run()
		f.during(time.Minute, "another controller's VMs are left alone", func() bool { return len(f.domains()) == 4 })
		if !strings.Contains(f.plan(), "another controller, ") {
			t.Errorf("nobody says why:\n%s", f.dump())
		}
		f.stop()
		f.newStore()
		f.set.Takeover = true
		f.run()
		f.settle(4, time.Minute)
		if after := f.domains(); strings.Join(after, " ") != strings.Join(before, " ") {
			t.Errorf("domains %q, want %q", after, before)
		}
	})
}

// A kill at any time, and a restart: the declared VMs, and none besides.
func TestManaged_killedAtAnyTime(t *testing.T) {
	for after := time.Duration(0); after < 6*time.Second; after += 250 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			f := newManaged(t, "a", "b")
			f.pool(4)
			dying := f.mortal()
			for _, s := range f.sims { // so that there is time to die in
				s.Inject(simhost.Fault{Kind: simhost.FaultDelay, Delay: 40 * time.Millisecond})
			}
			f.run()
			time.Sleep(after)
			f.killed(dying)
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
			f.begin(4)
			f.stop()
			dying := f.mortal()
			f.decl = f.bigger()
			f.decl.Pools = []model.PoolSpec{f.decl.Pools[0]}
			f.decl.Pools[0].Count, f.decl.Pools[0].MinAvailable = 3, 2
			f.run()
			time.Sleep(after)
			f.killed(dying)
			f.run()
			f.settle(3, 3*time.Minute)
			f.within(3*time.Minute, "all of the new template", func() bool {
				return f.renewed("web-1", "web-2", "web-3") && len(f.domains()) == 3
			})
		})
	}
}

func TestManaged_aStoreThatFailsHoldsEveryWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		broken := f.mortal()
		broken.dead.Store(true)
		f.run()
		f.during(time.Minute, "nothing is made that could not be remembered", func() bool { return len(f.domains()) == 0 })
		if n := f.Snapshot().Notices; len(n) == 0 || !strings.HasPrefix(n[0].Text, "nothing is changed on any host, since it could not be remembered: ") {
			t.Errorf("notices %+v", n)
		}
		f.submit(on(model.VerbDrain, "web-1"))
		f.within(time.Second, "the drain says that it is not remembered", func() bool {
			ops := f.Snapshot().Ops
			return len(ops) == 1 && ops[0].Result == "it could not be remembered: context canceled"
		})
		broken.dead.Store(false)
		f.settle(2, time.Minute)
	})
}

// A delete that was accepted outlives a kill right after it.
func TestHarm_acceptedDeleteIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		f.begin(1)
		f.stop()
		dying := f.mortal()
		f.run()
		time.Sleep(time.Second)
		f.submit(on(model.VerbDelete, "web-1"))
		f.killed(dying)
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
