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
				return func() { h.AddVolume("default", base) }
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
				f.submit(on(model.VerbReconcile, "web-1"))
				f.settle(1, 20*time.Second)
			})
		})
	}
}

func TestManaged_vmDestroyedBehindOurBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.begin(2)
		if err := f.vm("web-1").Destroy(); err != nil {
			t.Fatal(err)
		}
		f.within(5*time.Second, "noticed", func() bool { return f.in() == 1 })
		took := f.settle(2, 30*time.Second)
		t.Logf("back after %s", took)
		if b := f.Snapshot().Hosts[0].Budget; b.Used != 1 {
			t.Errorf("budget %+v, want one used", b)
		}
		f.again()
		if b := f.Snapshot().Hosts[0].Budget; b.Used != 1 {
			t.Errorf("after a restart: budget %+v, want one used", b)
		}
	})
}

func TestManaged_pausedIsNeverRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		f.set.ReplaceAfter = 2 * time.Minute
		f.begin(1)
		d := f.vm("web-1")
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

// A VM that was of no use and has come back is not replaced later.
func TestHarm_mendedIsNotReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(1)
		f.set.ReplaceAfter = time.Minute
		f.decl.Budget.PerPool = 0 // it holds the replacement
		f.begin(1)
		uid := f.uid("web-1")
		d := f.vm("web-1")
		was := d.Proxy()
		broken := was
		broken.Mode = simhost.ProxyBadGateway
		d.SetProxy(broken)
		f.within(5*time.Minute, "it is to be replaced", func() bool { return len(f.Snapshot().Plan) == 1 && f.Snapshot().Plan[0].Verb == model.PlanReplace })
		d.SetProxy(was)
		f.within(time.Minute, "back", func() bool { return f.in() == 1 })
		f.stop()
		f.decl.Budget.PerPool = 5
		f.run()
		f.during(time.Hour, "the same VM, in rotation", func() bool { return f.in() == 1 && f.uid("web-1") == uid })
	})
}

// A VM of no use that serves again before anything of its removal was written
// stays, and is not counted.
func TestReplace_healedBeforeItsRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.set.ReplaceAfter = 2 * time.Minute
		f.alone()
		d, uid, creds := f.vm("one"), f.uid("one"), f.proxy("one").Spec.Creds
		d.SetProxy(simhost.Proxy{Mode: simhost.ProxyOff})
		h := f.Controller.host("a")
		f.within(10*time.Minute, "it is out", func() bool { return f.in() == 0 })
		h.mu.Lock()
		h.writes += f.set.Writes // as if so many were being made
		h.mu.Unlock()
		f.within(10*time.Minute, "it waits to be removed", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.byName["one"].m.unused != ""
		})
		time.Sleep(time.Second)
		d.SetProxy(simhost.Proxy{User: creds.User, Password: creds.Password})
		f.within(2*time.Minute, "it is back", func() bool { return f.in() == 1 })
		h.mu.Lock()
		h.writes -= f.set.Writes
		h.mu.Unlock()
		f.during(10*time.Minute, "it stays", func() bool { return f.in() == 1 && f.uid("one") == uid })
		if n := f.Snapshot().Hosts[0].Budget.Used; n != 0 {
			t.Errorf("%d of the budget used", n)
		}
	})
}
