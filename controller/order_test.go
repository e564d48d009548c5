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

// ended waits for a command's end.
func (f *fleet) ended(id model.OpID, limit time.Duration) (op model.Op) {
	f.t.Helper()
	f.within(limit, "the command ends", func() bool {
		op, _ = f.ops.get(id)
		return !op.Ended.IsZero()
	})
	return op
}

func (f *managedFleet) runs(name string) bool {
	d := f.vm(name)
	return d != nil && d.ID() > 0
}

// A recreate does not wait for the open tunnels of the VM that it replaces; what
// comes after it does.
func TestOrder_recreateHurriesItsOwnDrainAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		uid := f.uid("one")
		start := time.Now()
		f.done(on(model.VerbRecreate, "one"))
		f.settle(1, 20*time.Second)
		if took := time.Since(start); took > 20*time.Second || f.uid("one") == uid {
			t.Errorf("another VM %v, after %s", f.uid("one") != uid, took)
		}
		start = time.Now()
		f.done(on(model.VerbDelete, "one"))
		if took := time.Since(start); took < singleDrain {
			t.Errorf("the delete after it drained for %s, want %s", took, singleDrain)
		}
	})
}

// Before the host has been looked at, nobody knows whether the VM is there.
func TestOrder_beforeTheFirstLook(t *testing.T) {
	for _, v := range []model.Verb{model.VerbStart, model.VerbRestart} {
		t.Run(v.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a")
				f.alone()
				was := f.vm("one").ID()
				f.stop()
				f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcConnectGetAllDomainStats, Kind: simhost.FaultDelay, Delay: 3 * time.Second, Times: 1})
				f.run()
				f.within(5*time.Second, "the link is up", func() bool { return f.Snapshot().Hosts[0].Link.State == model.LinkUp })
				if !f.Controller.host("a").listedAt.IsZero() {
					t.Fatal("it has been looked at already")
				}
				if op := f.ended(f.submit(on(v, "one")), time.Minute); op.State != model.OpDone {
					t.Errorf("%+v", op)
				}
				if again := f.vm("one").ID() != was; again != (v == model.VerbRestart) {
					t.Errorf("started anew: %v", again)
				}
			})
		})
	}
}

func TestOrder_deleteOfWhatWasNeverMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		f.sims["a"].RemoveVolume("default", "base.qcow2")
		f.run()
		f.within(20*time.Second, "it cannot be made", func() bool { return f.proxy("one").Managed.Fails > 0 })
		f.done(on(model.VerbDelete, "one"))
		f.sims["a"].AddVolume("default", base)
		f.during(10*time.Minute, "it is not made", func() bool { return len(f.domains()) == 0 })
		f.done(on(model.VerbStart, "one"))
		f.settle(1, 20*time.Second)
	})
}

// A delete while the VM is being made is done when the VM is gone, not when
// whatever was under way has ended.
func TestOrder_endsWithWhatItAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcDomainDefineXMLFlags, Kind: simhost.FaultDelay, Delay: 2 * time.Second})
		f.run()
		f.within(5*time.Second, "it is being made", func() bool { return f.proxy("one").Managed.Write == "create" })
		f.done(on(model.VerbDelete, "one"))
		if d := f.domains(); len(d) != 0 {
			t.Errorf("the delete has ended, and %q is there", d)
		}
		f.during(time.Minute, "it stays away", func() bool { return len(f.domains()) == 0 })
	})
}

// The newest command counts; the one before it is told so.
func TestOrder_overtaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		f.Controller.host("a").setResting(true)
		del := f.submit(on(model.VerbDelete, "one"))
		stop := f.submit(on(model.VerbStop, "one"))
		if op, _ := f.ops.get(del); op.State != model.OpCanceled || op.Result != "overtaken by stop, asked for by test" {
			t.Errorf("%+v", op)
		}
		f.Controller.host("a").setResting(false)
		if op := f.ended(stop, time.Minute); op.State != model.OpDone {
			t.Errorf("%+v", op)
		}
		if f.runs("one") || f.vm("one") == nil {
			t.Error("want it there, and off")
		}
	})
}

// A stop that was accepted outlives a kill right after it.
func TestOrder_acceptedStopIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		dying := f.mortal()
		f.begin(1)
		f.Controller.host("a").setResting(true)
		f.submit(on(model.VerbStop, "one"))
		f.killed(dying)
		f.run()
		f.within(time.Minute, "it is carried out", func() bool { return !f.runs("one") })
		f.during(10*time.Minute, "it stays off", func() bool { return !f.runs("one") })
		if err := f.vm("one").Start(); err != nil { // by hand: what was asked for has been done
			t.Fatal(err)
		}
		f.during(10*time.Minute, "whoever starts it by hand is not worked against", func() bool { return f.runs("one") })
		f.again()
		f.during(10*time.Minute, "nor after a restart", func() bool { return f.runs("one") })
	})
}

// What was told as failed does not come true later.
func TestOrder_failedStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		var mend []func()
		for _, p := range []simhost.Proc{simhost.ProcDomainShutdownFlags, simhost.ProcDomainDestroyFlags} {
			mend = append(mend, f.sims["a"].Inject(simhost.Fault{Proc: p, Kind: simhost.FaultError, Error: simhost.Error{Code: libvirt.ErrAccessDenied, Message: "access denied"}}))
		}
		if op := f.do(on(model.VerbStop, "one")); op.State != model.OpFailed {
			t.Fatalf("%+v", op)
		}
		for _, done := range mend {
			done()
		}
		if err := f.vm("one").Destroy(); err != nil {
			t.Fatal(err)
		}
		f.within(5*time.Second, "noticed", func() bool { return f.in() == 0 })
		f.settle(1, 30*time.Second)
	})
}

// A stop whose link is lost goes on, and says so.
func TestOrder_stopGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcDomainShutdownFlags, Kind: simhost.FaultCutBefore, Times: 3})
		f.done(on(model.VerbStop, "one"))
		if f.runs("one") {
			t.Error("it runs")
		}
	})
}

// A command that could not be remembered changes nothing.
func TestOrder_notSaved(t *testing.T) {
	for _, v := range []model.Verb{model.VerbStop, model.VerbRestart, model.VerbRecreate, model.VerbDelete} {
		t.Run(v.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a")
				f.single("a", "one")
				broken := f.mortal()
				f.begin(1)
				uid, id := f.uid("one"), f.vm("one").ID()
				broken.dead.Store(true)
				op := f.do(on(v, "one"))
				if op.State != model.OpFailed || op.Result != "it could not be remembered: context canceled" {
					t.Errorf("%+v", op)
				}
				broken.dead.Store(false)
				f.during(5*time.Minute, "the same VM, in rotation", func() bool {
					return f.in() == 1 && f.uid("one") == uid && f.vm("one").ID() == id && f.proxy("one").Managed.Wish == "run"
				})
			})
		})
	}
}

// What is withdrawn leaves the wish that was there before it.
func TestOrder_withdrawn(t *testing.T) {
	for name, tt := range map[string]struct {
		before, withdrawn model.Verb
		wish              string
		vms               int
	}{
		"a start of what was deleted": {model.VerbDelete, model.VerbStart, "gone", 0},
		"a delete of what is stopped": {model.VerbStop, model.VerbDelete, "stop", 1},
		"a start of what is stopped":  {model.VerbStop, model.VerbStart, "stop", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a")
				f.alone()
				f.done(on(tt.before, "one"))
				f.within(10*time.Second, "out, and nothing is to be done", func() bool { return f.in() == 0 && !f.busy() })
				f.Controller.host("a").setResting(true)
				id := f.submit(on(tt.withdrawn, "one"))
				f.submit(model.Command{Verb: model.VerbCancel, Op: id})
				f.Controller.host("a").setResting(false)
				time.Sleep(time.Second)
				f.during(5*time.Minute, "as it was", func() bool {
					return f.proxy("one").Managed.Wish == tt.wish && len(f.domains()) == tt.vms && f.in() == 0
				})
			})
		})
	}
}

// A removal that the host refuses cannot be taken back: it may be half done. It
// goes on, and says what it waits for.
func TestOrder_refusedDeleteGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		mend := f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcDomainDestroyFlags, Kind: simhost.FaultError, Error: simhost.Error{Code: libvirt.ErrAccessDenied, Message: "access denied"}})
		id := f.submit(on(model.VerbDelete, "one"))
		waits := func() bool {
			op, _ := f.ops.get(id)
			return op.State == model.OpRunning && strings.HasPrefix(op.Phase, "failed, until its spec changes or an operator reconciles it: ") && f.in() == 0
		}
		f.within(time.Minute, "it is refused, and waits", waits)
		f.during(10*time.Minute, "it waits", waits)
		mend()
		f.submit(on(model.VerbReconcile, "one"))
		if op := f.ended(id, time.Minute); op.State != model.OpDone || len(f.domains()) != 0 {
			t.Errorf("%+v", op)
		}
	})
}

// What an operator switches off does not wait for VMs that are being made.
func TestOrder_stopWaitsForNoCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		h := f.Controller.host("a")
		h.mu.Lock()
		h.writes = f.set.Writes // as if so many were being made
		h.mu.Unlock()
		f.pool(1)
		f.apply(f.decl)
		f.within(10*time.Second, "one more waits", func() bool { return strings.Contains(f.plan(), " | 8 other writes to a come first") })
		f.done(on(model.VerbStop, "one"))
	})
}

// Whoever starts a proxy that is taken out of the configuration meanwhile is told.
func TestOrder_undeclaredMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		f.done(on(model.VerbDelete, "one"))
		f.Controller.host("a").setResting(true)
		id := f.submit(on(model.VerbStart, "one"))
		d := f.decl
		d.Managed = nil
		f.apply(d)
		f.Controller.host("a").setResting(false)
		if op := f.ended(id, time.Minute); op.State != model.OpCanceled || op.Result != "overtaken: it is not declared any more" {
			t.Errorf("%+v", op)
		}
		f.apply(f.decl)
		f.during(time.Minute, "declared again, it is as deleted as before", func() bool { return len(f.domains()) == 0 })
	})
}
