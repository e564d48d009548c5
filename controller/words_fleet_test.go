package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
)

// No sentence on a screen ends where its reason should begin.
func TestWords_noEmptyTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.single("a", "one")
		f.begin(3)
		f.apply(f.bigger())
		said := map[string]bool{}
		f.during(3*time.Minute, "every reason is there", func() bool {
			ok := true
			f.each(func(p *model.ProxyView) {
				texts := []string{p.Reason}
				for _, e := range p.Events {
					texts = append(texts, e.What)
				}
				for _, s := range texts {
					said[s] = true
					ok = ok && !strings.HasSuffix(strings.TrimSpace(s), ":") && !strings.HasPrefix(s, ";")
				}
			})
			return ok
		})
		if !said["its VM is being removed: its template has changed; drains for another 4s"] {
			t.Errorf("said: %q", slices.Sorted(maps.Keys(said)))
		}
	})
}

// A host that gives no reason leaves no colon behind.
func TestWords_pausedForNoReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, d := newPair(t)
		d.Pause(libvirt.DomainPausedUnknown)
		f.within(10*time.Second, "said", func() bool { return f.proxy("p-01").Domain == model.DomainPaused })
		if got, want := f.proxy("p-01").Reason, "probes pass, though the domain is paused"; got != want {
			t.Errorf("reason %q, want %q", got, want)
		}
	})
}
