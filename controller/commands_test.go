package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
)

func TestManaged_recreateAndDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.begin(2)
		uid := f.uid("web-1")
		do := func(v model.Verb) {
			t.Helper()
			f.done(on(v, "web-1"))
		}
		do(model.VerbRecreate)
		f.settle(2, 30*time.Second)
		if now := f.uid("web-1"); now == uid {
			t.Error("the uid is the same")
		}
		do(model.VerbDelete)
		f.during(time.Minute, "stays away", func() bool { return len(f.domains()) == 1 })
		do(model.VerbStart)
		f.settle(2, 30*time.Second)
		do(model.VerbStop)
		f.within(15*time.Second, "out", func() bool { return f.in() == 1 })
		f.during(time.Minute, "stays off", func() bool { return f.in() == 1 })
		do(model.VerbStart)
		f.settle(2, 30*time.Second)
	})
}

func TestOps_withdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.begin(2)
		// No write may begin while the host's settings change: the command waits.
		f.Controller.host("a").setResting(true)
		id, err := f.Submit(model.Command{Verb: model.VerbRecreate, Host: "a", Proxy: "web-2", By: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		uid := f.uid("web-2")
		if _, err := f.Submit(model.Command{Verb: model.VerbCancel, Op: id, By: "bob"}); err != nil {
			t.Fatal(err)
		}
		if op, _ := f.ops.get(id); op.State != model.OpCanceled || op.Result != "withdrawn by bob" {
			t.Errorf("%+v", op)
		}
		f.Controller.host("a").setResting(false)
		f.during(time.Minute, "nothing happens", func() bool { return f.in() == 2 && f.uid("web-2") == uid })
		if _, err := f.Submit(model.Command{Verb: model.VerbCancel, Op: id, By: "bob"}); err == nil || err.Error() != "recreate of web-2 has ended already" {
			t.Errorf("a second time: %v", err)
		}
	})
}

// Wanted again while its VM is being removed: it is made anew, and does not stay
// dead.
func TestHarm_startDuringADelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		f.decl.Pools[0].DrainTime = 3 * time.Second
		f.begin(1)
		for _, v := range []model.Verb{model.VerbDelete, model.VerbStart} {
			f.submit(on(v, "web-1"))
			f.within(10*time.Second, "the delete has begun", func() bool {
				p, _ := f.Snapshot().Proxy("web-1")
				return p.Managed.Write == "delete" || len(f.domains()) == 0 || v == model.VerbStart
			})
		}
		f.settle(1, time.Minute)
	})
}

func TestHarm_reloadLeavesAnOperatorsDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		f.begin(1)
		f.done(on(model.VerbDelete, "one"))
		f.apply(f.decl)
		f.during(time.Minute, "it stays deleted", func() bool { return len(f.domains()) == 0 })
	})
}

func TestOps_whatIsUnderWayIsNotDropped(t *testing.T) {
	var o ops
	now := time.Now()
	first, _ := o.open(model.Command{Verb: model.VerbStop, Proxy: "first"}, now)
	for i := range 3 * opsMax {
		id, _ := o.open(model.Command{Verb: model.VerbStop, Proxy: model.ProxyName(string(rune('a' + i)))}, now)
		o.end(id, nil, "done")
	}
	if op, ok := o.get(first); !ok || !op.Ended.IsZero() {
		t.Errorf("the oldest is gone, though it has not ended: %+v, %v", op, ok)
	}
	if n := len(o.snapshot(now)); n != opsMax {
		t.Errorf("%d are kept, want %d", n, opsMax)
	}
}
