package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
)

// What an operator has stopped is left alone by its pool's roll, and does not
// hold it up.
func TestStopped_isNotRolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(3).MinAvailable = 1
		f.begin(3)
		f.done(on(model.VerbStop, "web-1"))
		uid := f.uid("web-1")
		f.apply(f.bigger())
		f.within(5*time.Minute, "the others are of the new template", func() bool {
			return f.proxy("web-1").Managed.SpecHash != f.proxy("web-1").Managed.BuiltHash && f.renewed("web-2", "web-3")
		})
		f.during(10*time.Minute, "it stays off, and as it was", func() bool { return f.uid("web-1") == uid && !f.runs("web-1") })
		start := f.do(on(model.VerbStart, "web-1"))
		if want := "overtaken by its pool: its template has changed"; start.State != model.OpCanceled || start.Result != want {
			t.Errorf("%v, %q, want %q", start.State, start.Result, want)
		}
		f.within(5*time.Minute, "now it is replaced", func() bool { return f.renewed("web-1", "web-2", "web-3") && len(f.domains()) == 3 })
	})
}

// Nor does one that an operator has deleted.
func TestStopped_deletedHoldsNoRollUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(3).MinAvailable = 1
		f.begin(3)
		f.done(on(model.VerbDelete, "web-1"))
		old := f.proxy("web-1").Managed.SpecHash
		f.apply(f.bigger())
		f.within(5*time.Minute, "the others are of the new template", func() bool {
			return f.proxy("web-1").Managed.SpecHash != old && f.renewed("web-2", "web-3") && len(f.domains()) == 2
		})
	})
}

// A proxy of no pool: its other template waits until it is started.
func TestStopped_isNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		f.done(on(model.VerbStop, "one"))
		uid := f.uid("one")
		f.apply(f.bigger())
		f.during(10*time.Minute, "it stays off, and as it was", func() bool { return f.uid("one") == uid && !f.runs("one") })
		f.done(on(model.VerbStart, "one"))
		f.settle(1, time.Minute)
		if !f.renewed("one") || f.uid("one") == uid {
			t.Errorf("it is of the old template\n%s", f.dump())
		}
	})
}

// A stop while another VM is to take its place: neither of them runs.
func TestStopped_whileItIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.alone()
		f.apply(f.bigger())
		f.within(5*time.Second, "it drains", func() bool { return f.state("one") == model.StateDeleting })
		f.done(on(model.VerbStop, "one"))
		f.during(10*time.Minute, "off", func() bool { return !f.runs("one") })
		if f.in() != 0 {
			t.Error("it is in rotation")
		}
	})
}

// A mistake in the configuration, mended within the grace.
func TestStopped_undeclaredAndBack(t *testing.T) {
	for name, tt := range map[string]struct {
		declare func(*managedFleet)
		proxy   model.ProxyName
	}{
		"of no pool": {func(f *managedFleet) { f.single("a", "one") }, "one"},
		"of a pool":  {func(f *managedFleet) { f.pool(1) }, "web-1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a")
				tt.declare(f)
				f.begin(1)
				f.done(on(model.VerbStop, tt.proxy))
				d := f.decl
				d.Managed, d.Pools = nil, nil
				f.apply(d)
				time.Sleep(10 * time.Second)
				if w := f.proxy(string(tt.proxy)).Managed.Wish; w != "gone" {
					t.Errorf("not declared, and its wish is shown as %q", w)
				}
				f.apply(f.decl)
				time.Sleep(time.Second)
				f.during(10*time.Minute, "it stays stopped", func() bool {
					return !f.runs(string(tt.proxy)) && f.proxy(string(tt.proxy)).Managed.Wish == "stop"
				})
				f.again()
				f.during(10*time.Minute, "it stays stopped", func() bool { return !f.runs(string(tt.proxy)) })
			})
		})
	}
}
