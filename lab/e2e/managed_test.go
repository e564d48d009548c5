//go:build lab

package e2e

import (
	"strings"
	"testing"
	"time"

	"virdeck/model"
)

// TestManaged is a pool's life on two real hosts, from an empty pool of volumes
// to scaling, rolling, and what others do to its VMs.
func TestManaged(t *testing.T) {
	p := newPooled(t, poolConfig{count: 4, memory: 128})
	p.begin()
	p.await(p.start, 60*time.Second, "4 proxies made from nothing, ready", settled(4))
	s := p.look()
	domains := map[string]string{}
	perHost := map[string]int{}
	for _, q := range s.Proxies {
		perHost[q.Host]++
		domains[q.Name] = q.Managed.Domain
		want := map[string]string{"h1": "10.77.1.2", "h2": "10.77.2.2"}[q.Host]
		if q.Health.ExitIP != want {
			t.Errorf("%s goes out by %s, want %s", q.Name, q.Health.ExitIP, want)
		}
	}
	if perHost["h1"] != 2 || perHost["h2"] != 2 {
		t.Errorf("proxies by host: %v, want 2 and 2", perHost)
	}
	seesLoss(t, "h1", domains["web-1"])

	at := p.reload(poolConfig{count: 6, memory: 128})
	p.await(at, 60*time.Second, "scaled to 6", settled(6))
	at = p.reload(poolConfig{count: 2, memory: 128})
	p.await(at, 60*time.Second, "scaled to 2", settled(2))
	p.always(at, "at least two in rotation", atLeastIn(2))

	// Behind virdeck's back.
	at = time.Now()
	ctl(t, "h1", "virsh", "destroy", domains["web-1"])
	seen := p.await(at, 10*time.Second, "noticed", Not(InRotation("web-1")))
	p.await(seen, 30*time.Second, "a VM that was destroyed is back", settled(2))
	if s = p.look(); s.Pools[0].Budget.Used == 0 {
		t.Errorf("the budget has counted nothing: %+v", s.Pools[0].Budget)
	}

	// Another template: never fewer than min_available, which is one.
	was := uids(p.look())
	at = p.reload(poolConfig{count: 2, memory: 160})
	p.await(at, 3*time.Minute, "rolled", All(settled(2), func(s *model.Status) string {
		for name, uid := range uids(s) {
			if uid == was[name] {
				return name + " is still the old one"
			}
		}
		return ""
	}))
	p.always(at, "at least one in rotation", atLeastIn(1))
	if out := ctl(t, "h1", "virsh", "dominfo", p.managed("web-1").Domain); !strings.Contains(out, "163840 KiB") {
		t.Errorf("the VM has not the new memory:\n%s", out)
	}

	// A daemon that dies in the middle of a create.
	at = p.reload(poolConfig{count: 4, memory: 160})
	p.await(at, 20*time.Second, "a create is under way on h2", func(s *model.Status) string {
		for _, q := range s.Proxies {
			if q.Host == "h2" && q.Managed != nil && !q.Managed.Built {
				return ""
			}
		}
		return "none"
	})
	mend(t, "h2", "sh", "true")
	ctl(t, "h2", "libvirtd", "kill")
	pause(t, 3*time.Second)
	ctl(t, "h2", "libvirtd", "start")
	p.await(time.Now(), 60*time.Second, "finished after the daemon's return", settled(4))

	at = p.reload(poolConfig{count: 0, memory: 160})
	p.await(at, 60*time.Second, "scaled to none", settled(0))
	for _, h := range []string{"h1", "h2"} {
		if left := p.holds(h); len(left.domains)+len(left.volumes) > 0 {
			t.Errorf("left on %s: %+v", h, left)
		}
	}
}
