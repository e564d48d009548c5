package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// The mark is written, and nobody learns that it is: what the domain says holds,
// in this process and in the next one, and with a store that knows nothing.
func TestPromote_answerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		d := f.bridged("a", "attic", "10.9.0.1")
		f.decl.Proxies = f.fleet.decl
		f.run()
		f.within(20*time.Second, "in rotation", func() bool { return f.in() == 1 })
		id := d.ID()
		lost := func(v model.Verb) {
			f.within(time.Minute, "the link is up", func() bool { return f.Snapshot().Hosts[0].Link.State == model.LinkUp })
			f.sims["a"].Inject(simhost.Fault{Proc: simhost.ProcDomainSetMetadata, Kind: simhost.FaultCutReply, Times: 1})
			if op := f.do(model.Command{Verb: v, Host: "a", Proxy: "attic"}); op.State != model.OpFailed {
				t.Errorf("%s: %s %q", v, op.State, op.Result)
			}
		}
		lost(model.VerbManage)
		f.within(time.Minute, "managed by its mark", func() bool {
			m := f.proxy("attic").Managed
			return m != nil && m.UID == m.Owner.UID && m.Owner.SpecHash == adoptedHash
		})
		f.refused(model.Command{Verb: model.VerbManage, Host: "a", Proxy: "attic"}, "attic is managed already")
		f.stop()
		f.newStore() // and with it another controller
		f.set.Takeover = true
		f.run()
		f.within(20*time.Second, "managed, with an empty store", func() bool { return f.in() == 1 && f.proxy("attic").Managed != nil })
		lost(model.VerbRelease)
		f.within(time.Minute, "adopted by its want of a mark", func() bool { return f.proxy("attic").Managed == nil })
		f.stop()
		f.run()
		f.during(time.Minute, "adopted", func() bool { return f.in() == 1 && f.proxy("attic").Managed == nil })
		if d.ID() != id || len(f.Snapshot().Hosts[0].Orphans) != 0 {
			t.Errorf("ID %d, before %d; orphans %v", d.ID(), id, f.Snapshot().Hosts[0].Orphans)
		}
	})
}

// A mark that another controller or another proxy has set is nobody's to take.
func TestPromote_byTheMarkOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.bridged("a", "attic", "10.9.0.1")
		f.decl.Proxies = f.fleet.decl
		f.run()
		f.within(20*time.Second, "in rotation", func() bool { return f.in() == 1 })
		mine := model.Owner{
			Fleet: "test", Proxy: "attic", UID: "6a1f9f0e-0000-4000-8000-000000000001", Controller: f.id,
			SpecHash: adoptedHash, Phase: model.PhaseReady, CreatedAt: time.Now(),
		}
		h := f.Controller.host("a")
		for _, change := range []func(*model.Owner){
			func(o *model.Owner) { o.Controller = "another" },
			func(o *model.Owner) { o.Proxy = "cellar" },
			func(o *model.Owner) { o.Fleet = "another" },
			func(o *model.Owner) { o.SpecHash = "0123456789abcdef" },
		} {
			o := mine
			change(&o)
			if err := h.via().build.SetOwner(t.Context(), "attic", o); err != nil {
				t.Fatal(err)
			}
			f.during(time.Minute, "adopted", func() bool { return f.in() == 1 && f.proxy("attic").Managed == nil })
			if err := h.via().build.ClearOwner(t.Context(), "attic", o); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.via().build.SetOwner(t.Context(), "attic", mine); err != nil {
			t.Fatal(err)
		}
		f.within(time.Minute, "managed by its own", func() bool { m := f.proxy("attic").Managed; return m != nil && m.UID == mine.UID })
	})
}

// A promoted VM whose delete outlived a kill, and which another has marked
// meanwhile: it is adopted again, and stands on its domain still.
func TestPromoted_deletedAndMarkedByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.attic()
		dying := f.mortal()
		f.begin(1)
		f.done(on(model.VerbManage, "attic"))
		f.within(time.Minute, "managed", func() bool { m := f.proxy("attic").Managed; return m != nil && m.Owner.UID == m.UID })
		d := f.sims["a"].Domain("attic")
		mark := d.Metadata("urn:virdeck:owner:1", false)
		f.Controller.host("a").setResting(true)
		f.submit(on(model.VerbDelete, "attic"))
		f.killed(dying)
		d.SetMetadata("urn:virdeck:owner:1", "virdeck", strings.Replace(mark, f.id, "another", 1))
		f.run()
		f.within(time.Minute, "adopted again", func() bool { return f.proxy("attic").Managed == nil && f.in() == 1 })
		f.during(time.Minute, "as it is", func() bool { return f.proxy("attic").Spec.Domain == "attic" && len(f.domains()) == 1 && d.ID() > 0 })
	})
}

// A promoted VM that somebody has removed by hand: an operator's delete is done,
// and nothing is made in its place.
func TestPromoted_removedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.attic()
		f.begin(1)
		f.done(on(model.VerbManage, "attic"))
		d := f.sims["a"].Domain("attic")
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		d.Undefine()
		f.within(time.Minute, "missed", func() bool { return strings.Contains(f.plan(), "its domain is missing, and virdeck did not make it") })
		f.done(on(model.VerbDelete, "attic"))
		f.within(time.Minute, "adopted again", func() bool { return f.proxy("attic").Managed == nil })
		f.during(time.Minute, "none is made", func() bool { return len(f.domains()) == 0 })
	})
}
