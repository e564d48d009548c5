package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// What is asked for is so when a look shows it that began after it was asked for.
func TestOrder_metByALaterLookAlone(t *testing.T) {
	for _, v := range []model.Verb{model.VerbStart, model.VerbStop} {
		t.Run(v.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a")
				f.set.LeaveStopped = true
				f.alone()
				up := v == model.VerbStart
				if !up {
					f.done(on(model.VerbStop, "one"))
					f.within(time.Minute, "out", func() bool { return f.in() == 0 })
				}
				f.sims["a"].DropEvents(true)
				time.Sleep(21 * time.Second)
				h := f.Controller.host("a")
				f.within(20*time.Second, "just looked at", func() bool {
					h.mu.Lock()
					defer h.mu.Unlock()
					return time.Since(h.listedAt) < 200*time.Millisecond
				})
				var err error
				if up {
					err = f.vm("one").Destroy()
				} else {
					err = f.vm("one").Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				f.done(on(v, "one"))
				f.during(10*time.Minute, "it is so", func() bool { return f.runs("one") == up })
			})
		})
	}
}

// An operator's restart, or start, of a VM of no use comes before its replacement,
// which the budget holds.
func TestOrder_ofWhatIsOfNoUse(t *testing.T) {
	for _, v := range []model.Verb{model.VerbRestart, model.VerbStart} {
		t.Run(v.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a")
				f.set.ReplaceAfter = 2 * time.Minute
				f.decl.Budget.PerHost = 0
				f.alone()
				f.vm("one").SetProxy(simhost.Proxy{Mode: simhost.ProxyOff})
				held := func() bool { return strings.Contains(f.plan(), "budget") }
				f.within(10*time.Minute, "the budget holds", held)
				was, want := f.vm("one").ID(), int32(0)
				if v == model.VerbRestart {
					want = 1
				}
				f.done(on(v, "one"))
				if n := f.vm("one").ID() - was; n != want {
					t.Errorf("restarted %d times, want %d", n, want)
				}
				f.vm("one").SetProxy(simhost.Proxy{Mode: simhost.ProxyOff})
				f.within(10*time.Minute, "of no use still, and it is said again", held)
			})
		})
	}
}

// A recreate that is withdrawn while it waits for its turn is not counted.
func TestOrder_withdrawnRecreateIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		h := f.Controller.host("a")
		h.mu.Lock()
		h.writes += f.set.Writes // as if so many were being made
		h.mu.Unlock()
		used := func() int {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.c.budgetView("a", "", time.Now()).Used
		}
		id := f.submit(on(model.VerbRecreate, "one"))
		f.within(time.Minute, "it leaves, and is counted", func() bool { return used() == 1 && f.in() == 0 })
		f.submit(model.Command{Verb: model.VerbCancel, Op: id})
		f.within(time.Minute, "it is back", func() bool { return f.in() == 1 })
		if n := used(); n != 0 {
			t.Errorf("%d of the budget used", n)
		}
	})
}

// An order that is given while the VM is taken over by its mark is about that VM.
func TestOrder_duringATakeover(t *testing.T) {
	for _, v := range []model.Verb{model.VerbRecreate, model.VerbRestart, model.VerbDelete} {
		t.Run(v.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a")
				f.alone()
				uid, was, name := f.uid("one"), f.vm("one").ID(), f.vm("one").Name()
				f.stop()
				f.newStore()
				f.set.Takeover = true
				f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcStorageVolDownload, Kind: simhost.FaultDelay, Delay: 2 * time.Second})
				f.run()
				f.within(20*time.Second, "its seed is read", func() bool {
					n := 0
					f.Controller.host("a").each(func(p *proxy) { n += boolInt(p.m.recovering) })
					return n > 0
				})
				f.done(on(v, "one"))
				if v == model.VerbDelete {
					if n := len(f.domains()); n != 0 {
						t.Errorf("told as done, and %d are there", n)
					}
					return
				}
				f.settle(1, time.Minute)
				switch d := f.sims["a"].Domain(name); v {
				case model.VerbRecreate:
					if d != nil || f.uid("one") == uid {
						t.Error("it is the same VM")
					}
				default:
					if d == nil || d.ID() != was+1 {
						t.Error("want the same VM, in its next run")
					}
				}
			})
		})
	}
}
