package controller

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/store"
)

// auditor is an audit log in memory.
type auditor struct {
	mu    sync.Mutex
	lines []string
	each  func(store.Entry) // before a line is written; nil: nothing
}

func (a *auditor) Append(e store.Entry) error {
	if a.each != nil {
		a.each(e)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = append(a.lines, string(e.Phase)+" "+e.Verb)
	return nil
}

// free reports whether somebody else can have a lock.
func free(mu *sync.Mutex) bool {
	for range 100_000 {
		if mu.TryLock() {
			mu.Unlock()
			return true
		}
		runtime.Gosched()
	}
	return false
}

// The disk of the audit log holds no host up; and what has ended is written down
// in the order in which it did, to the last line.
func TestAudit_holdsNoHostUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		log := &auditor{}
		log.each = func(e store.Entry) {
			if !free(&f.Controller.host("a").mu) {
				t.Errorf("%s of %s is written down with the host's lock held", e.Phase, e.Verb)
			}
		}
		f.audit = log
		f.begin(1)
		f.done(on(model.VerbStop, "one"))
		time.Sleep(time.Second)
		f.Controller.host("a").setResting(true)
		f.submit(on(model.VerbDelete, "one"))
		f.submit(on(model.VerbStart, "one")) // overtakes it
		f.submit(on(model.VerbDrain, "one"))
		f.stop()
		want := []string{"accepted stop", "done stop", "accepted delete", "accepted start", "failed delete", "accepted drain", "done drain"}
		slices.Sort(want[3:])
		slices.Sort(log.lines[3:]) // whether an end comes before the next command is chance
		if !slices.Equal(log.lines, want) {
			t.Errorf("got  %q\nwant %q", log.lines, want)
		}
	})
}
