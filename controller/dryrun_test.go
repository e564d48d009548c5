package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// One that writes to no host takes nobody out of the rotation for a write that
// will not come. It says what it would do.
func TestDryRun_nobodyLeavesTheRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "one")
		p := f.pool(4)
		f.begin(5)
		f.stop()
		f.set.DryRun = true
		p.Count, p.MinAvailable = 2, 1
		f.decl = f.bigger()
		f.run()
		f.within(10*time.Second, "all are in", func() bool { return f.in() == 5 })
		f.during(10*time.Minute, "all are in", func() bool { return f.in() == 5 })
		for _, want := range []string{
			"plan: replace one " + f.proxy("one").Managed.Domain + " on a: its template has changed | dry run: nothing is written",
			"web-4: would leave: surplus; dry run: nothing is written",
		} {
			if !strings.Contains(f.plan(), want) {
				t.Errorf("%q is not said:\n%s", want, f.plan())
			}
		}
	})
}
