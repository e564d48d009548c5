package controller

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/store"
)

// opened is the command of somebody whose Submit has not set anything yet; goOn has
// it do so.
func (f *managedFleet) opened(cmd model.Command) (id model.OpID, goOn func()) {
	h := f.Controller.host(cmd.Host)
	id, _ = f.ops.open(cmd, time.Now())
	return id, func() { f.Controller.start(h, h.proxy(cmd.Proxy), cmd, id) }
}

// Whoever asks for what another has just asked for is answered when that is on
// the disk, and not before.
func TestSubmit_joinedBeforeTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		dying := f.mortal()
		f.begin(1)
		f.Controller.host("a").setResting(true)
		_, goOn := f.opened(on(model.VerbDelete, "one"))
		var answered atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			f.submit(on(model.VerbDelete, "one"))
			answered.Store(true)
		})
		synctest.Wait()
		if answered.Load() {
			t.Error("answered, and nothing is on the disk")
		}
		goOn()
		wg.Wait()
		f.killed(dying)
		f.run()
		f.within(time.Minute, "it is carried out", func() bool { return len(f.domains()) == 0 })
	})
}

// A command that is withdrawn before it has set anything leaves nothing.
func TestSubmit_withdrawnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		h := f.Controller.host("a")
		h.setResting(true)
		id, goOn := f.opened(on(model.VerbStop, "one"))
		var wg sync.WaitGroup
		wg.Go(func() { f.submit(model.Command{Verb: model.VerbCancel, Op: id}) })
		synctest.Wait()
		goOn()
		wg.Wait()
		h.setResting(false)
		if op := f.ended(id, time.Minute); op.State != model.OpCanceled {
			t.Errorf("%+v", op)
		}
		f.during(time.Minute, "it runs", func() bool { return f.runs("one") })
	})
}

// A proxy that has gone while its command was written down is not acted upon.
func TestSubmit_goneMeanwhile(t *testing.T) {
	for v, want := range map[model.Verb]string{
		model.VerbStop: "there is no host a", model.VerbDrain: "there is no host a", model.VerbReconcile: "there is no host a",
	} {
		t.Run(v.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a", "b")
				f.single("a", "one")
				f.audit = &auditor{each: func(e store.Entry) {
					if e.Phase == store.PhaseAccepted {
						time.Sleep(500 * time.Millisecond)
					}
				}}
				f.begin(1)
				var wg sync.WaitGroup
				wg.Go(func() {
					time.Sleep(100 * time.Millisecond)
					f.apply(f.without("a"))
				})
				cmd := on(v, "one")
				cmd.By = "test"
				_, err := f.Submit(cmd)
				wg.Wait()
				if err == nil || err.Error() != want {
					t.Errorf("%v, want %q", err, want)
				}
				for _, op := range f.ops.snapshot(time.Now()) {
					t.Errorf("%+v", op)
				}
			})
		})
	}
}
