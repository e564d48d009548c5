package libvirt

import (
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// An existing domain is marked, released, and loses nothing by it.
func TestOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		d := r.nat("web")
		o := someOwner()
		o.Phase = ""
		known := func() model.Instance {
			synctest.Wait() // for the events of the write before
			l, err := r.List(t.Context())
			if err != nil || len(l.Instances) != 1 || !l.Instances[0].OwnerKnown {
				t.Fatalf("%+v, %v", l, err)
			}
			return l.Instances[0]
		}
		if in := known(); !in.Owner.Zero() {
			t.Errorf("at first: %+v", in.Owner)
		}
		for range 2 {
			if err := r.SetOwner(t.Context(), "web", o); err != nil {
				t.Fatal(err)
			}
		}
		if in := known(); in.Owner != someOwner() {
			t.Errorf("marked: %+v", in.Owner)
		}
		if n := r.sim.Calls()[simhost.ProcDomainSetMetadata]; n != 1 {
			t.Errorf("%d marks written, want one", n)
		}
		if a, b := d.Metadata(markURI, true), d.Metadata(markURI, false); a != b || a == "" {
			t.Errorf("live %q, configuration %q", a, b)
		}
		theirs := o
		theirs.Controller = "c-2"
		for verb, f := range map[string]func() error{
			"mark":    func() error { return r.SetOwner(t.Context(), "web", theirs) },
			"release": func() error { return r.ClearOwner(t.Context(), "web", theirs) },
			"delete":  func() error { return r.Delete(t.Context(), provider.Deletion{Owner: theirs, Domain: "web"}, nil) },
		} {
			if err := f(); provider.Classify(err) != provider.ClassConflict {
				t.Errorf("%s by another controller: %v", verb, err)
			}
		}
		for range 2 {
			if err := r.ClearOwner(t.Context(), "web", o); err != nil {
				t.Fatal(err)
			}
		}
		if in := known(); !in.Owner.Zero() || d.ID() < 0 {
			t.Errorf("released: %+v, ID %d", in.Owner, d.ID())
		}
		if err := r.SetOwner(t.Context(), "nobody", o); provider.Classify(err) != provider.ClassNotFound {
			t.Errorf("nobody is marked: %v", err)
		}
		if err := r.ClearOwner(t.Context(), "nobody", o); err != nil {
			t.Errorf("nobody is released: %v", err)
		}
	})
}

// A domain that somebody starts between the look and the write: its run has no
// other mark than its configuration.
func TestOwner_startedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		d := r.nat("web")
		o := someOwner()
		for what, mark := range map[string]func() error{
			"released": func() error { return r.ClearOwner(t.Context(), "web", o) },
			"marked":   func() error { return r.SetOwner(t.Context(), "web", o) },
		} {
			before := r.SetOwner
			if what == "marked" {
				before = r.ClearOwner
			}
			if err := before(t.Context(), "web", o); err != nil {
				t.Fatal(err)
			}
			if err := d.Destroy(); err != nil {
				t.Fatal(err)
			}
			r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainSetMetadata, Kind: simhost.FaultDelay, Delay: 2 * time.Second, Times: 1})
			started := make(chan error, 1)
			time.AfterFunc(time.Second, func() { started <- d.Start() })
			if err := mark(); err != nil {
				t.Fatal(err)
			}
			if err := <-started; err != nil {
				t.Fatal(err)
			}
			if live, conf := d.Metadata(markURI, true), d.Metadata(markURI, false); live != conf || (live != "") != (what == "marked") {
				t.Errorf("%s: live %q, configuration %q", what, live, conf)
			}
		}
	})
}

// An adopted domain that was promoted loses its definition, and none of its disks.
func TestDelete_promoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.nat("web")
		r.sim.AddVolume("default", simhost.VolumeSpec{Name: "web.qcow2"})
		o := someOwner()
		if err := r.SetOwner(t.Context(), "web", o); err != nil {
			t.Fatal(err)
		}
		if err := r.Delete(t.Context(), provider.Deletion{Owner: o, Domain: "web", Storage: "default"}, nil); err != nil {
			t.Fatal(err)
		}
		if n, v := len(r.sim.Domains()), r.sim.Volumes("default"); n != 0 || len(v) != 1 {
			t.Errorf("%d domains, volumes %q", n, v)
		}
	})
}

// The mark that a listing shows is the one that is there, whoever changes it, and
// is not read again while nobody does.
func TestList_marks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		d := r.nat("web")
		mark, err := markText(someOwner(), "")
		if err != nil {
			t.Fatal(err)
		}
		look := func(what string, reads int, want model.Owner, note string) {
			t.Helper()
			time.Sleep(time.Second)
			r.sim.ResetCalls()
			l, err := r.List(t.Context())
			if err != nil || len(l.Instances) != 1 {
				t.Fatalf("%s: %+v, %v", what, l, err)
			}
			in := l.Instances[0]
			if n := r.sim.Calls()[simhost.ProcDomainGetMetadata]; n != reads || !in.OwnerKnown || in.Owner != want || in.OwnerNote != note {
				t.Errorf("%s: %d reads, %v %+v %q; want %d, %+v %q", what, n, in.OwnerKnown, in.Owner, in.OwnerNote, reads, want, note)
			}
		}
		look("at first", 1, model.Owner{}, "")
		look("again", 0, model.Owner{}, "")
		d.SetMetadata(markURI, markKey, mark)
		look("marked by somebody", 1, someOwner(), "")
		look("again", 0, someOwner(), "")
		d.SetMetadata("urn:other", "o", "<x/>")
		look("another namespace", 0, someOwner(), "")
		d.SetMetadata(markURI, markKey, "<owner/>")
		look("broken", 1, model.Owner{}, "its mark cannot be read: no fleet")
		r.sim.DropEvents(true)
		d.SetMetadata(markURI, markKey, mark)
		look("nobody tells", 0, model.Owner{}, "its mark cannot be read: no fleet")
		r.sim.DropEvents(false)
		if _, err := r.Reconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		look("on a new link", 1, someOwner(), "")
		if in, err := r.get(t, "web"); err != nil || in.Owner != someOwner() || !in.OwnerKnown {
			t.Errorf("get: %+v, %v", in.Owner, err)
		}
		// One that cannot be read now is unknown, and the listing is none the worse.
		d.SetMetadata(markURI, markKey, mark)
		time.Sleep(time.Second)
		remove := r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainGetMetadata, Error: simhost.Error{Code: golibvirt.ErrOperationDenied, Message: "no"}})
		l, err := r.List(t.Context())
		if err != nil || l.Instances[0].OwnerKnown {
			t.Errorf("refused: %+v, %v", l.Instances, err)
		}
		remove()
		look("and later", 1, someOwner(), "")
	})
}
