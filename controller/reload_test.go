package controller

import (
	"testing"
	"testing/synctest"
	"time"
)

// Two of the same, one of which has lost its host's link: only what changed in
// the configuration changes.
func TestApply_whatStaysKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.pool(2)
		f.bridged("a", "old-1", "10.9.0.1")
		f.bridged("b", "old-2", "10.9.0.2")
		f.decl.Proxies = f.fleet.decl
		f.begin(4)
		since := f.proxy("old-1").Health.Since
		up := f.Snapshot().Hosts[1].Link.Since
		d := f.decl
		d.Hosts = []HostSpec{f.specs[0], f.specs[1]}
		d.Hosts[0].Key = "reached in another way"
		d.Proxies = d.Proxies[:1]
		f.apply(d)
		if p, _ := f.Snapshot().Proxy("old-2"); p != nil {
			time.Sleep(time.Second)
		}
		if p, _ := f.Snapshot().Proxy("old-2"); p != nil {
			t.Error("old-2 is still there")
		}
		f.during(time.Minute, "the others keep their places", func() bool { return f.in() == 3 })
		if now := f.proxy("old-1").Health.Since; now != since {
			t.Errorf("old-1 is in since %s, before the reload since %s", now, since)
		}
		if s := f.Snapshot().Hosts[1].Link; s.Since != up {
			t.Errorf("the link of b, which did not change, is up since %s, before since %s", s.Since, up)
		}
		// Declared again: from the beginning, since it was let go.
		f.apply(f.decl)
		f.within(30*time.Second, "all in again", func() bool { return f.in() == 4 })
	})
}

func TestApply_undeclaredPoolIsKeptForItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.begin(2)
		d := f.decl
		d.Pools = nil
		f.apply(d)
		f.within(10*time.Second, "out of rotation", func() bool { return f.in() == 0 })
		f.during(9*time.Minute, "the VMs are kept", func() bool { return len(f.domains()) == 2 })
		f.apply(f.decl) // it was a mistake
		f.settle(2, 10*time.Second)
		f.apply(d)
		f.within(12*time.Minute, "removed after the grace", func() bool { return len(f.domains()) == 0 })
	})
}
