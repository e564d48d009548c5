package health

import (
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
)

// Another pace and other targets leave everyone in place, with what is known.
func TestEngine_reconfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 4, nil)
		before, _ := b.Health(b.keys[0])
		cfg := Defaults()
		good := b.cfg.Targets[0]
		dead, err := ParseTarget("http://nowhere.invalid/")
		if err != nil {
			t.Fatal(err)
		}
		cfg.Targets = []Target{{URL: dead}, good}
		cfg.Interval, cfg.Fall = 2*time.Second, 5
		b.Reconfigure(cfg)
		for range 120 {
			if n := b.members(); n != 4 {
				t.Fatalf("%d in rotation, want 4: %+v", n, b.Fleet())
			}
			time.Sleep(500 * time.Millisecond)
		}
		after, _ := b.Health(b.keys[0])
		if after.Fall != 5 || after.Since != before.Since || len(after.Samples) <= len(before.Samples)+20 {
			t.Errorf("fall %d, in since %s, %d samples; before %s, %d", after.Fall, after.Since, len(after.Samples), before.Since, len(before.Samples))
		}
		// Without the target whose failure nobody could be blamed for, all is as before.
		cfg.Targets = []Target{good}
		b.Reconfigure(cfg)
		b.within(10*time.Second, "one control, passing", func() bool { return b.Fleet().Control == model.WitnessPassing })
		if n := b.members(); n != 4 {
			t.Errorf("%d in rotation, want 4", n)
		}
		cfg.Control = false
		b.Reconfigure(cfg)
		time.Sleep(time.Minute)
		if n := b.members(); n != 4 {
			t.Errorf("without a control: %d in rotation, want 4", n)
		}
	})
}
