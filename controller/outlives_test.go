package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// A restart that was accepted outlives a kill right after it, and is done once.
func TestOutlives_restart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		dying := f.mortal()
		f.begin(1)
		was := f.vm("one").ID()
		f.Controller.host("a").setResting(true)
		f.submit(on(model.VerbRestart, "one"))
		f.killed(dying)
		f.run()
		f.within(time.Minute, "it is carried out", func() bool { return f.vm("one").ID() == was+1 })
		f.settle(1, time.Minute)
		f.again()
		f.during(10*time.Minute, "once", func() bool { return f.vm("one").ID() == was+1 })
	})
}

// One that was carried out, of which nobody was told, is not done again.
func TestOutlives_restartThatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		dying := f.mortal()
		f.begin(1)
		was := f.vm("one").ID()
		f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcDomainCreate, Kind: simhost.FaultHang})
		f.submit(on(model.VerbRestart, "one"))
		f.within(time.Minute, "it is off", func() bool { return f.vm("one").ID() < 0 })
		time.Sleep(15 * time.Second) // it is seen to be off, and that is remembered
		f.killed(dying)
		if err := f.vm("one").Start(); err != nil {
			t.Fatal(err)
		}
		f.run()
		f.settle(1, time.Minute)
		f.during(10*time.Minute, "once", func() bool { return f.vm("one").ID() == was+1 })
	})
}

// A start that was accepted outlives a kill, where nothing else would start it.
func TestOutlives_start(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.set.LeaveStopped = true
		f.single("a", "one")
		dying := f.mortal()
		f.begin(1)
		f.done(on(model.VerbStop, "one"))
		f.within(time.Minute, "out", func() bool { return f.in() == 0 })
		f.Controller.host("a").setResting(true)
		f.submit(on(model.VerbStart, "one"))
		f.killed(dying)
		f.run()
		f.settle(1, time.Minute)
	})
}

// A restart right after a start, whose answer is lost, is done once.
func TestOrder_restartedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		f.done(on(model.VerbStop, "one"))
		f.within(time.Minute, "out", func() bool { return f.in() == 0 })
		time.Sleep(20 * time.Second)
		f.submit(on(model.VerbStart, "one"))
		f.within(10*time.Second, "it runs", func() bool { return f.runs("one") })
		f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcDomainCreate, Kind: simhost.FaultCutReply, Times: 1})
		was := f.vm("one").ID()
		f.done(on(model.VerbRestart, "one"))
		f.during(time.Minute, "once", func() bool { return f.vm("one").ID() == was+1 })
	})
}
