package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// Somebody else's VM that has the name of a managed proxy's domain, an open proxy
// in it: neither is it touched, by virdeck or by an operator's key, nor served.
func TestManaged_foreignDomainOfTheSameNameIsLeftAlone(t *testing.T) {
	for name, tt := range map[string]struct {
		built bool // there was a VM of ours before
		same  bool // it has the UUID, too
	}{
		"before the first VM":                     {},
		"before the first VM, with the same UUID": {same: true},
		"in place of ours":                        {built: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a")
				f.pool(1)
				f.set.DryRun = !tt.built
				f.run()
				f.within(time.Minute, "it has an identity", func() bool { return len(f.Snapshot().Hosts[0].Proxies) == 1 && (f.in() == 1 || !tt.built) })
				f.stop()
				f.set.DryRun = false
				foreign := simhost.DomainSpec{Name: f.proxy("web-1").Managed.Domain, Running: true, NICs: bridge("10.9.0.1")}
				if tt.same {
					foreign.UUID = f.vmUUID("web-1")
				}
				if d := f.vm("web-1"); d != nil {
					if err := d.Destroy(); err != nil {
						t.Fatal(err)
					}
					d.Undefine()
				}
				d := f.sims["a"].AddDomain(foreign)
				// It can be read sooner than its mark.
				f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcDomainGetMetadata, Kind: simhost.FaultDelay, Delay: 500 * time.Millisecond})
				f.run()
				const why = "a domain of its name is there, without virdeck's mark: it is left alone"
				f.within(time.Minute, "the conflict is named", func() bool { return strings.Contains(f.plan(), why) && strings.Contains(f.proxy("web-1").Reason, why) })
				for _, v := range []model.Verb{model.VerbStop, model.VerbRestart, model.VerbStart} {
					f.refused(on(v, "web-1"), why)
				}
				id := d.ID()
				f.during(3*time.Minute, "left alone, and not served", func() bool {
					return d.ID() == id && len(f.domains()) == 1 && f.in() == 0
				})
				if err := d.Destroy(); err != nil {
					t.Fatal(err)
				}
				d.Undefine()
				f.settle(1, time.Minute)
			})
		})
	}
}

func TestManaged_orphanIsRemovedAfterItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.begin(2)
		f.stop()
		f.decl.Pools = nil
		f.run()
		f.during(9*time.Minute, "kept in its grace", func() bool { return len(f.domains()) == 2 })
		if v := f.Snapshot().Hosts[0].Orphans; len(v) != 2 {
			t.Errorf("orphans %+v, want 2", v)
		}
		f.within(3*time.Minute, "removed", func() bool { return len(f.domains()) == 0 })
		if v := f.sims["a"].Volumes("default"); len(v) != 1 || v[0] != "base.qcow2" {
			t.Errorf("volumes %q, want the base alone", v)
		}
	})
}

func TestManaged_twoFleetsOnOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.begin(2)
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

// What virdeck did not make, it does not remove, though its mark is there and no
// proxy has its uid any more.
func TestHarm_promotedAndUndeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.attic()
		f.begin(1)
		f.done(on(model.VerbManage, "attic"))
		d := f.decl
		d.Proxies = nil
		f.apply(d)
		f.during(time.Hour, "the VM stays", func() bool { return f.sims["a"].Domain("attic") != nil && f.sims["a"].Domain("attic").ID() > 0 })
	})
}

// Two hosts of the configuration that are one libvirt.
func TestHarm_oneDaemonUnderTwoNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.pool(2)
		f.decl.Pools[0].Hosts = []model.HostName{"a"}
		f.decl.Hosts = append(f.decl.Hosts, f.another("twin"))
		f.begin(2)
		f.during(time.Hour, "nobody's VMs are orphans of the other name", func() bool { return f.in() == 2 && len(f.sims["a"].Domains()) == 2 })
	})
}
