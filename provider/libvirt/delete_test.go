package libvirt

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// A removal that has begun goes on to its end, and is not turned round.
func TestDelete_begun(t *testing.T) {
	base := baseFile(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		b := testBuild(base, "p-01")
		if _, err := r.Create(t.Context(), b, nil); err != nil {
			t.Fatal(err)
		}
		d := r.sim.Domains()[0]
		del := provider.Deletion{Owner: b.Owner, Domain: d.Name(), Storage: "default"}
		remove := r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainDestroyFlags, Error: simhost.Error{
			Code: golibvirt.ErrSystemError, Message: "Failed to terminate process 4711 with SIGKILL: Device or resource busy"}})
		err := r.Delete(t.Context(), del, nil)
		const want = "host beelink: delete of domain home-p-01-40dfb8: switch off: code 38: Failed to terminate process 4711 with SIGKILL: Device or resource busy"
		if provider.Classify(err) != provider.ClassTransient || errText(err) != want {
			t.Errorf("%v, want a transient %s", err, want)
		}
		for _, live := range []bool{false, true} {
			if o, err := parseMark(d.Metadata(markURI, live)); err != nil || o.Phase != model.PhaseDeleting {
				t.Errorf("marked %+v, %v", o, err)
			}
		}
		if d.Autostart() || len(r.sim.Volumes("default")) != 4 {
			t.Errorf("autostart %v, volumes %q", d.Autostart(), r.sim.Volumes("default"))
		}
		if _, err := r.Create(t.Context(), b, nil); provider.Classify(err) != provider.ClassConflict {
			t.Errorf("create: %v, want a conflict", err)
		}
		remove()
		if err := r.Delete(t.Context(), del, nil); err != nil || len(r.sim.Domains()) != 0 {
			t.Errorf("%v, %d domains", err, len(r.sim.Domains()))
		}
	})
}

// Delete: whatever state the VM is in, and only what was made for it.
func TestDelete_states(t *testing.T) {
	base := baseFile(t)
	for _, tt := range []struct {
		name string
		prep func(*testing.T, *rig, *provider.Build, *simhost.Domain)
		d    func(*provider.Deletion)
	}{
		{"off", func(t *testing.T, _ *rig, _ *provider.Build, d *simhost.Domain) {
			if err := d.Destroy(); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"paused", func(_ *testing.T, _ *rig, _ *provider.Build, d *simhost.Domain) { d.Pause(golibvirt.DomainPausedUser) }, nil},
		{"renamed", func(t *testing.T, _ *rig, _ *provider.Build, d *simhost.Domain) {
			if err := errors.Join(d.Destroy(), d.Rename("somebody"), d.Start()); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"undefined while it runs", func(_ *testing.T, _ *rig, _ *provider.Build, d *simhost.Domain) { d.Undefine() }, nil},
		{"slow to die", func(_ *testing.T, r *rig, _ *provider.Build, _ *simhost.Domain) {
			r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainDestroyFlags, Kind: simhost.FaultDelay, Delay: 15 * time.Second})
		}, nil},
		{"no word about its storage", func(*testing.T, *rig, *provider.Build, *simhost.Domain) {}, func(d *provider.Deletion) { d.Storage = "" }},
		{"a wrong word about its storage", func(*testing.T, *rig, *provider.Build, *simhost.Domain) {}, func(d *provider.Deletion) { d.Storage = "none" }},
		{"its domain is gone already", func(t *testing.T, _ *rig, _ *provider.Build, d *simhost.Domain) {
			if err := d.Destroy(); err != nil {
				t.Fatal(err)
			}
			d.Undefine()
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, simhost.Options{}, nil)
				b := testBuild(base, "p-01")
				b.Spec.Template.Firmware, b.Spec.Template.Machine = model.FirmwareEFI, ""
				neighbour := testBuild(base, "p-02")
				for _, b := range []provider.Build{b, neighbour} {
					if _, err := r.Create(t.Context(), b, nil); err != nil {
						t.Fatal(err)
					}
				}
				tt.prep(t, r, &b, r.sim.Domain(identify(b.Owner).domain))
				d := provider.Deletion{Owner: b.Owner, Domain: identify(b.Owner).domain, Storage: "default"}
				if tt.d != nil {
					tt.d(&d)
				}
				if err := r.Delete(t.Context(), d, nil); err != nil {
					t.Fatal(err)
				}
				declared(t, r.sim, neighbour)
			})
		})
	}
}
