package libvirt

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// What a host can lack: the class, libvirt's own words, and that the same call
// works when the cause is gone.
func TestCreate_causes(t *testing.T) {
	base := baseFile(t)
	noImage := func(content string) func(*testing.T, *rig, *provider.Build) func() {
		return func(t *testing.T, _ *rig, b *provider.Build) func() {
			good, err := os.ReadFile(base.File)
			if err != nil {
				t.Fatal(err)
			}
			bad := b.Spec.Template.Base.File + ".other"
			if err := os.WriteFile(bad, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			b.Spec.Template.Base.File = bad
			return func() {
				if err := os.WriteFile(bad, good, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, tt := range []struct {
		name  string
		prep  func(*testing.T, *rig, *provider.Build) (repair func())
		class provider.Class
		want  string
	}{
		{"no pool", func(_ *testing.T, r *rig, b *provider.Build) func() {
			b.Spec.Template.Storage = "fast"
			return func() { r.sim.AddPool(simhost.PoolSpec{Name: "fast", Path: "/fast"}) }
		}, provider.ClassTransient, "look up the base image: code 49: Storage pool not found: no storage pool with matching name 'fast'"},
		{"inactive pool", func(_ *testing.T, r *rig, _ *provider.Build) func() {
			r.sim.SetPoolActive("default", false)
			return func() { r.sim.SetPoolActive("default", true) }
		}, provider.ClassTransient, "look up the base image: code 55: Requested operation is not valid: storage pool 'default' is not active"},
		{"pool full, for the base", func(_ *testing.T, r *rig, _ *provider.Build) func() {
			r.sim.SetPoolCapacity("default", 1000)
			return func() { r.sim.SetPoolCapacity("default", 1<<30) }
		}, provider.ClassTransient, "code 38: cannot write to stream: No space left on device"},
		{"pool full, for the disk", func(_ *testing.T, r *rig, _ *provider.Build) func() {
			r.sim.SetPoolCapacity("default", uint64(base.Size)+1000)
			return func() { r.sim.SetPoolCapacity("default", 1<<30) }
		}, provider.ClassTransient, "create the disk: code 9: operation failed: Not enough free space in pool for volume 'home-p-01-40dfb8.qcow2'"},
		{"no network", func(_ *testing.T, r *rig, _ *provider.Build) func() {
			r.sim.UndefineNetwork("default")
			return func() { r.sim.AddNetwork(simhost.DefaultNetwork()) }
		}, provider.ClassTransient, "start the domain: code 43: Network not found: no network with matching name 'default'"},
		{"no base volume", func(_ *testing.T, r *rig, b *provider.Build) func() {
			b.Spec.Template.Base = model.BaseImage{Volume: "debian.qcow2", Format: "qcow2"}
			return func() { r.sim.AddVolume("default", simhost.VolumeSpec{Name: "debian.qcow2", Format: "qcow2"}) }
		}, provider.ClassTransient, "look up the base image: code 50: Storage volume not found: no storage vol with matching name 'debian.qcow2'"},
		{"disk too small for the base volume", func(_ *testing.T, r *rig, b *provider.Build) func() {
			r.sim.AddVolume("default", simhost.VolumeSpec{Name: "debian.qcow2", Format: "qcow2", Capacity: 3 << 30})
			b.Spec.Template.Base, b.Spec.Template.DiskMB = model.BaseImage{Volume: "debian.qcow2", Format: "qcow2"}, 2048
			return func() { b.Spec.Template.DiskMB = 4096 }
		}, provider.ClassPermanent, "create the disk: disk of 2048 MiB is smaller than the base volume debian.qcow2 (3072 MiB)"},
		{"base image of another length", noImage("QFI\xfb"), provider.ClassPermanent, "has changed: it has 4 bytes, it had 100001"},
		{"base image is no qcow2", noImage(strings.Repeat("x", int(base.Size))), provider.ClassPermanent, "is no qcow2 image"},
		{"base image of other content", noImage("QFI\xfb\x00\x00\x00\x03" + strings.Repeat("\x00", int(base.Size)-8)),
			provider.ClassPermanent, "has changed: its SHA-256 is "},
		{"base image is gone", func(_ *testing.T, _ *rig, b *provider.Build) func() {
			b.Spec.Template.Base.File += ".none"
			return func() { b.Spec.Template.Base.File = base.File }
		}, provider.ClassTransient, "no such file or directory"},
		{"seed upload cut", func(_ *testing.T, r *rig, _ *provider.Build) func() {
			return r.sim.Inject(simhost.Fault{Proc: simhost.ProcStorageVolUpload, Kind: simhost.FaultCutStream, After: 1})
		}, provider.ClassTransient, "upload to volume default/home-p-01-40dfb8-seed.iso: link down"},
		{"the host refuses the machine", func(_ *testing.T, r *rig, _ *provider.Build) func() {
			return r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainCreate, Error: simhost.Error{
				Code: golibvirt.ErrConfigUnsupported, Message: "unsupported configuration: Emulator does not support machine type 'pc'"}})
		}, provider.ClassPermanent, "start the domain: code 67: unsupported configuration: Emulator does not support machine type 'pc'"},
		{"a spec that cannot be", func(_ *testing.T, _ *rig, b *provider.Build) func() {
			b.Spec.Hostname = "a_b"
			return func() { b.Spec.Hostname = "p-01" }
		}, provider.ClassPermanent, `host beelink: create of domain home-p-01-40dfb8: hostname: "a_b" is none`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, simhost.Options{}, nil)
				b := testBuild(base, "p-01")
				repair := tt.prep(t, r, &b)
				for range 2 {
					_, err := r.Create(t.Context(), b, nil)
					if c := provider.Classify(err); c != tt.class || !strings.Contains(errText(err), tt.want) {
						t.Errorf("%v: %v\nwant %v with %q", c, err, tt.class, tt.want)
					}
				}
				repair()
				if _, err := r.Create(t.Context(), b, nil); err != nil {
					t.Fatalf("with the cause gone: %v", err)
				}
				if d := r.sim.Domain("home-p-01-40dfb8"); d == nil || d.ID() < 0 || d.Port() != 8080 {
					t.Error("it does not run, or not with its seed")
				}
				if v := r.sim.Violations(); len(v) > 0 {
					t.Errorf("violations: %q", v)
				}
				if g := r.Link().Generation; g != 1 {
					t.Errorf("generation %d: the shared link was harmed", g)
				}
			})
		})
	}
}

// What is not ours stays as it is.
func TestCreate_conflicts(t *testing.T) {
	base := baseFile(t)
	b := testBuild(base, "p-01")
	id := identify(b.Owner)
	other := func(change func(*model.Owner)) func(*testing.T, *rig) {
		return func(t *testing.T, r *rig) {
			o := b.Owner
			o.Phase = model.PhaseReady
			change(&o)
			mark, err := markText(o, "")
			if err != nil {
				t.Fatal(err)
			}
			r.sim.AddDomain(simhost.DomainSpec{Name: id.domain, UUID: id.uuid, Running: true}).SetMetadata(markURI, markKey, mark)
		}
	}
	for _, tt := range []struct {
		name string
		prep func(*testing.T, *rig)
		want string
	}{
		{"the name is taken", func(_ *testing.T, r *rig) { r.sim.AddDomain(simhost.DomainSpec{Name: id.domain, UUID: [16]byte{1}}) },
			"a domain of this name is there with another UUID (01000000-0000-0000-0000-000000000000): it has no mark"},
		{"the UUID is taken", func(_ *testing.T, r *rig) { r.sim.AddDomain(simhost.DomainSpec{Name: "web", UUID: id.uuid}) },
			"domain web has this proxy's UUID, and is not ours: it has no mark"},
		{"both, without a mark", func(_ *testing.T, r *rig) {
			r.sim.AddDomain(simhost.DomainSpec{Name: id.domain, UUID: id.uuid, Running: true})
		}, "domain home-p-01-40dfb8 has this proxy's UUID, and is not ours: it has no mark"},
		{"a broken mark", func(_ *testing.T, r *rig) {
			r.sim.AddDomain(simhost.DomainSpec{Name: id.domain, UUID: id.uuid}).SetMetadata(markURI, markKey, "<owner/>")
		}, "its mark cannot be read (no fleet)"},
		{"another fleet's", other(func(o *model.Owner) { o.Fleet = "work" }),
			`it is marked as proxy "p-01" (uid uid-p-01) of fleet "work", controller c-1`},
		{"another controller's", other(func(o *model.Owner) { o.Controller = "c-2" }),
			`domain home-p-01-40dfb8 is another controller's: it is marked as proxy "p-01" (uid uid-p-01) of fleet "home", controller c-2; --takeover takes it over`},
		{"being removed", other(func(o *model.Owner) { o.Phase = model.PhaseDeleting }), "domain home-p-01-40dfb8 is being removed; that must end first"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, simhost.Options{}, nil)
				tt.prep(t, r)
				d := r.sim.Domains()[0]
				before := snapshot(d)
				_, err := r.Create(t.Context(), b, nil)
				if provider.Classify(err) != provider.ClassConflict || !strings.HasSuffix(errText(err), tt.want) {
					t.Errorf("%v\nwant a conflict: %s", err, tt.want)
				}
				if tt.name != "being removed" {
					err = r.Delete(t.Context(), provider.Deletion{Owner: b.Owner, Domain: d.Name(), Storage: "default"}, nil)
					if provider.Classify(err) != provider.ClassConflict {
						t.Errorf("delete: %v, want a conflict", err)
					}
				}
				if after := snapshot(d); after != before || len(r.sim.Domains()) != 1 || len(r.sim.Volumes("default")) != 0 {
					t.Errorf("it was %+v and is %+v; %d domains, volumes %q", before, after, len(r.sim.Domains()), r.sim.Volumes("default"))
				}
			})
		})
	}
}

type domainLook struct {
	id        int32
	state     golibvirt.DomainState
	autostart bool
	mark      string
}

func snapshot(d *simhost.Domain) domainLook {
	s, _ := d.State()
	return domainLook{d.ID(), s, d.Autostart(), d.Metadata(markURI, false)}
}

func TestCreate_takeover(t *testing.T) {
	base := baseFile(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		b := testBuild(base, "p-01")
		if _, err := r.Create(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
		run := r.sim.Domains()[0].ID()
		b.Owner.Controller, b.Takeover = "c-2", true
		if _, err := r.Create(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
		declared(t, r.sim, b)
		if r.sim.Domains()[0].ID() != run {
			t.Error("it was started anew")
		}
	})
}

// A finished VM is repaired, not made anew: started when it is off, and given a
// new disk only when that is gone.
func TestCreate_repairs(t *testing.T) {
	base := baseFile(t)
	for _, tt := range []struct {
		name    string
		harm    func(*testing.T, *rig, *simhost.Domain)
		newDisk bool
	}{
		{"shut off", func(t *testing.T, _ *rig, d *simhost.Domain) {
			if err := d.Destroy(); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"its disk is gone", func(t *testing.T, r *rig, d *simhost.Domain) {
			if err := d.Destroy(); err != nil {
				t.Fatal(err)
			}
			r.sim.RemoveVolume("default", "home-p-01-40dfb8.qcow2")
		}, true},
		{"its proof and seed are gone", func(t *testing.T, r *rig, d *simhost.Domain) {
			if err := d.Destroy(); err != nil {
				t.Fatal(err)
			}
			r.sim.RemoveVolume("default", "home-p-01-40dfb8-seed.iso")
			r.sim.RemoveVolume("default", base.VolumeName()+proofEnd)
		}, true},
		{"a late definition has marked it new", func(_ *testing.T, _ *rig, d *simhost.Domain) {
			mark := strings.Replace(d.Metadata(markURI, false), `"ready"`, `"new"`, 1)
			d.SetMetadata(markURI, markKey, mark)
		}, false},
		{"undefined while it runs", func(_ *testing.T, _ *rig, d *simhost.Domain) { d.Undefine() }, false},
		{"autostart is off", func(t *testing.T, r *rig, d *simhost.Domain) {
			if err := r.act(t.Context(), "test", d.Name(), func(v *golibvirt.Libvirt) error {
				return v.DomainSetAutostart(golibvirt.Domain{Name: d.Name(), UUID: d.UUID()}, 0)
			}); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"paused", func(_ *testing.T, _ *rig, d *simhost.Domain) {
			d.Pause(golibvirt.DomainPausedIoerror)
			defer d.Resume()
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, simhost.Options{}, nil)
				b := testBuild(base, "p-01")
				if _, err := r.Create(t.Context(), b, nil); err != nil {
					t.Fatal(err)
				}
				tt.harm(t, r, r.sim.Domains()[0])
				r.sim.ResetCalls()
				if _, err := r.Create(t.Context(), b, nil); err != nil {
					t.Fatal(err)
				}
				declared(t, r.sim, b)
				if n := r.sim.Calls()[simhost.ProcStorageVolCreateXML]; (n > 0) != tt.newDisk {
					t.Errorf("%d volumes made, want some: %v", n, tt.newDisk)
				}
			})
		})
	}
}

// What an earlier run has left half done under the names of a VM is not used.
func TestCreate_leftovers(t *testing.T) {
	base := baseFile(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		b := testBuild(base, "p-01")
		id := identify(b.Owner)
		r.sim.AddVolume("default", simhost.VolumeSpec{Name: id.overlay, Capacity: 1000})
		r.sim.AddVolume("default", simhost.VolumeSpec{Name: id.seed, Capacity: 1 << 20})
		r.sim.AddVolume("default", simhost.VolumeSpec{Name: base.VolumeName() + proofEnd, Capacity: 512}) // of a base that is gone
		if _, err := r.Create(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
		declared(t, r.sim, b)
	})
}

// The caller's end is its own, in whatever step.
func TestCreate_leave(t *testing.T) {
	base := baseFile(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		remove := r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainCreate, Kind: simhost.FaultHang})
		ctx, leave := context.WithTimeout(t.Context(), 5*time.Second)
		defer leave()
		b := testBuild(base, "p-01")
		_, err := r.Create(ctx, b, nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the context's own error", err)
		}
		if l, err := r.List(t.Context()); err != nil || len(l.Instances) != 1 || r.Link().Generation != 1 {
			t.Errorf("a neighbour: %+v, %v", l, err)
		}
		time.AfterFunc(3*time.Second, remove)
		if _, err := r.Create(t.Context(), b, nil); err != nil { // waits for the first one's start
			t.Fatal(err)
		}
		declared(t, r.sim, b)
	})
}
