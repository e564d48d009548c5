package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// Whatever keeps a VM from being made is shown in the host's own words, and
// mended by mending the cause and reconciling.
func TestManaged_whatFailsIsSaidAndMended(t *testing.T) {
	fault := func(p simhost.Proc, code libvirt.ErrorNumber, msg string) func(*simhost.Host) func() {
		return func(h *simhost.Host) func() {
			return h.Inject(simhost.Fault{Proc: p, Kind: simhost.FaultError, Error: simhost.Error{Code: code, Message: msg}})
		}
	}
	for name, tt := range map[string]struct {
		hurt  func(*simhost.Host) (mend func())
		words string
		state model.State
	}{
		"the base image is not there": {
			func(h *simhost.Host) func() {
				h.RemoveVolume("default", "base.qcow2")
				return func() {
					h.AddVolume("default", simhost.VolumeSpec{Name: "base.qcow2", Format: "qcow2", Capacity: 1 << 30})
				}
			},
			"no storage vol with matching name 'base.qcow2'", model.StatePending,
		},
		"the storage pool is full": {
			func(h *simhost.Host) func() {
				h.SetPoolCapacity("default", 1)
				return func() { h.SetPoolCapacity("default", 100<<30) }
			},
			"Not enough free space in pool", model.StatePending,
		},
		"the network is missing": {
			fault(simhost.ProcDomainCreate, libvirt.ErrNoNetwork, "Network not found: no network with matching name 'default'"),
			"no network with matching name 'default'", model.StatePending,
		},
		"the memory is too small": {
			fault(simhost.ProcDomainCreate, libvirt.ErrInternalError, "internal error: process exited while connecting to monitor: cannot set up guest memory"),
			"cannot set up guest memory", model.StatePending,
		},
		"the spec is refused": {
			fault(simhost.ProcDomainDefineXMLFlags, libvirt.ErrXMLError, "XML error: unsupported machine type"),
			"unsupported machine type", model.StateFailed,
		},
		"the upload of the seed is cut": {
			func(h *simhost.Host) func() {
				return h.Inject(simhost.Fault{Proc: simhost.ProcStorageVolUpload, Kind: simhost.FaultCutStream})
			},
			"-seed.iso", model.StatePending,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a")
				mend := tt.hurt(f.sims["a"])
				f.pool(1)
				f.run()
				f.within(30*time.Second, "the cause is said", func() bool {
					p, _ := f.Snapshot().Proxy("web-1")
					return p != nil && p.Managed.Write == "" && strings.Contains(p.Managed.LastError, tt.words)
				})
				p := f.proxy("web-1")
				if p.State != tt.state || p.Managed.Latched != (tt.state == model.StateFailed) {
					t.Errorf("%v, latched %v: %s", p.State, p.Managed.Latched, p.Reason)
				}
				if !strings.Contains(p.Reason, tt.words) {
					t.Errorf("the reason hides it: %s", p.Reason)
				}
				time.Sleep(5 * time.Minute) // it is tried again, ever more slowly, or not at all
				if len(f.domains()) > 1 {
					t.Errorf("domains %q", f.domains())
				}
				mend()
				if _, err := f.Submit(model.Command{Verb: model.VerbReconcile, Host: "a", Proxy: "web-1", By: "test"}); err != nil {
					t.Fatal(err)
				}
				f.settle(1, 20*time.Second)
			})
		})
	}
}

func TestManaged_twoFleetsOnOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.run()
		f.settle(2, 30*time.Second)
		f.stop()
		first := f.domains()
		// The other fleet, with a name of its own, the same names of proxies, and no
		// memory of the first.
		f.set.Fleet = "other"
		f.newStore()
		f.run()
		f.within(time.Minute, "its own VMs are made", func() bool { return f.in() == 2 && len(f.domains()) == 4 })
		f.during(30*time.Minute, "the other fleet's are left alone", func() bool {
			return len(f.domains()) == 4 && len(f.Snapshot().Hosts[0].Orphans) == 0
		})
		for _, d := range first {
			if f.sims["a"].Domain(strings.TrimPrefix(d, "a/")) == nil {
				t.Errorf("%s is gone", d)
			}
		}
	})
}

func TestManaged_unreachableHostCausesNothingElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.pool(4)
		f.run()
		f.settle(4, 30*time.Second)
		f.sims["b"].Kill()
		f.during(time.Hour, "no VM is made elsewhere, and nobody leaves", func() bool { return len(f.domains()) == 4 && f.in() == 4 })
		if err := f.sims["b"].Start(); err != nil {
			t.Fatal(err)
		}
		f.settle(4, 2*time.Minute)
	})
}

func TestManaged_pausedIsNeverRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		f.set.ReplaceAfter = 2 * time.Minute
		f.run()
		f.settle(1, 30*time.Second)
		d := f.sims["a"].Domain(strings.TrimPrefix(f.domains()[0], "a/"))
		id := d.ID()
		d.Pause(libvirt.DomainPausedIoerror)
		f.during(30*time.Minute, "the same VM, paused", func() bool {
			s, _ := d.State()
			return len(f.domains()) == 1 && d.ID() == id && s == libvirt.DomainPaused
		})
	})
}

// A broken image: VMs that never serve. They are made anew, ever more slowly, and
// within the budget; nothing loops.
func TestManaged_brokenImageDoesNotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		f.set.ReplaceAfter = time.Minute
		f.onDefine = func(s *simhost.DomainSpec) { s.Boot = simhost.Boot{Lease: -1, Agent: -1, Proxy: -1} }
		f.run()
		time.Sleep(4 * time.Hour)
		defines := f.sims["a"].Calls()[simhost.ProcDomainDefineXMLFlags]
		if defines < 3 || defines > 40 {
			t.Errorf("%d defines in 4 hours", defines)
		}
		if len(f.domains()) > 1 {
			t.Errorf("domains %q", f.domains())
		}
	})
}

// Two of the same, one of which has lost its host's link: only what changed in
// the configuration changes.
func TestApply_whatStaysKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.pool(2)
		f.bridged("a", "old-1", "10.9.0.1")
		f.bridged("b", "old-2", "10.9.0.2")
		f.decl.Proxies = f.fleet.decl
		f.run()
		f.within(30*time.Second, "all in", func() bool { return f.in() == 4 })
		since := f.proxy("old-1").Health.Since
		up := f.Snapshot().Hosts[1].Link.Since
		d := f.decl
		d.Hosts = []HostSpec{f.specs[0], f.specs[1]}
		d.Hosts[0].Key = "reached in another way"
		d.Proxies = d.Proxies[:1]
		if err := f.Apply(d, f.set); err != nil {
			t.Fatal(err)
		}
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
		if err := f.Apply(f.decl, f.set); err != nil {
			t.Fatal(err)
		}
		f.within(30*time.Second, "all in again", func() bool { return f.in() == 4 })
	})
}

func TestApply_undeclaredPoolIsKeptForItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.run()
		f.settle(2, 30*time.Second)
		d := f.decl
		d.Pools = nil
		if err := f.Apply(d, f.set); err != nil {
			t.Fatal(err)
		}
		f.within(10*time.Second, "out of rotation", func() bool { return f.in() == 0 })
		f.during(9*time.Minute, "the VMs are kept", func() bool { return len(f.domains()) == 2 })
		if err := f.Apply(f.decl, f.set); err != nil { // it was a mistake
			t.Fatal(err)
		}
		f.settle(2, 10*time.Second)
		if err := f.Apply(d, f.set); err != nil {
			t.Fatal(err)
		}
		f.within(12*time.Minute, "removed after the grace", func() bool { return len(f.domains()) == 0 })
	})
}
