package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// An operator's word about a VM is never carried out on another machine that
// answers under its host's name.
func TestUnfit_anotherMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		other, swap := f.twin()
		f.decl.Hosts = f.specs
		f.attic()
		d := f.bridged("a", "marked", "10.9.0.2")
		f.decl.Proxies = f.fleet.decl
		f.run()
		f.within(20*time.Second, "in rotation", func() bool { return f.in() == 2 })
		f.done(on(model.VerbManage, "marked"))
		copied := other.AddDomain(simhost.DomainSpec{Name: "attic", Running: true, NICs: bridge("10.9.0.99")})
		mark := d.Metadata("urn:virdeck:owner:1", false)
		promoted := other.AddDomain(simhost.DomainSpec{Name: "marked", Running: true, NICs: bridge("10.9.0.98")})
		promoted.SetMetadata("urn:virdeck:owner:1", "virdeck", mark)
		was, wasPromoted := copied.ID(), promoted.ID()
		close(swap)
		f.sims["a"].Kill()
		f.within(time.Minute, "another machine answers", func() bool { return f.Snapshot().Host("a").Misconfig != "" })
		why := f.Snapshot().Host("a").Misconfig
		for _, v := range []model.Verb{model.VerbStart, model.VerbStop, model.VerbRestart, model.VerbManage} {
			f.refused(on(v, "attic"), why)
		}
		for _, v := range []model.Verb{model.VerbStop, model.VerbRelease} {
			f.refused(on(v, "marked"), why)
		}
		time.Sleep(time.Minute)
		if copied.ID() != was || promoted.ID() != wasPromoted || promoted.Metadata("urn:virdeck:owner:1", false) != mark {
			t.Errorf("written to another machine: %d, before %d; %d, before %d", copied.ID(), was, promoted.ID(), wasPromoted)
		}
	})
}

// Nor is one that was accepted before, and whose turn comes now.
func TestUnfit_turnComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		other, swap := f.twin()
		f.decl.Hosts = f.specs
		f.attic()
		copied := other.AddDomain(simhost.DomainSpec{Name: "attic", Running: true, NICs: bridge("10.9.0.99")})
		was := copied.ID()
		f.run()
		f.within(20*time.Second, "in rotation", func() bool { return f.in() == 1 })
		h := f.Controller.host("a")
		for range powerAtOnce {
			h.mail <- struct{}{}
		}
		id := f.submit(on(model.VerbRestart, "attic"))
		close(swap)
		f.sims["a"].Kill()
		f.within(time.Minute, "another machine answers", func() bool { return f.Snapshot().Host("a").Misconfig != "" })
		for range powerAtOnce {
			<-h.mail
		}
		op := f.ended(id, time.Minute)
		if why := f.Snapshot().Host("a").Misconfig; op.State != model.OpFailed || op.Result != why || copied.ID() != was {
			t.Errorf("%s %q, want %q; %d, before %d", op.State, op.Result, why, copied.ID(), was)
		}
	})
}

// Nothing is written through the second name of a machine.
func TestUnfit_secondName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		d := f.bridged("a", "attic", "10.9.0.1")
		f.decl.Hosts = append(f.decl.Hosts, f.another("b"))
		f.decl.Proxies = f.fleet.decl
		f.decl.Proxies[0].Host = "b"
		f.run()
		f.within(time.Minute, "known for one machine", func() bool { return f.ready("attic") && f.Snapshot().Host("b").Twin != "" })
		was := d.ID()
		for _, v := range []model.Verb{model.VerbStart, model.VerbStop, model.VerbRestart, model.VerbManage} {
			f.refused(model.Command{Verb: v, Host: "b", Proxy: "attic"}, f.Snapshot().Host("b").Twin)
		}
		time.Sleep(time.Minute)
		if d.ID() != was {
			t.Errorf("ID %d, before %d", d.ID(), was)
		}
	})
}

// Nor while the host has not said which machine it is.
func TestUnfit_notSaidYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		other, swap := f.twin()
		f.decl.Hosts = f.specs
		f.attic()
		copied := other.AddDomain(simhost.DomainSpec{Name: "attic", Running: true, NICs: bridge("10.9.0.99")})
		was := copied.ID()
		f.run()
		f.within(20*time.Second, "in rotation", func() bool { return f.in() == 1 })
		other.Inject(simhost.Fault{Kind: simhost.FaultDelay, Delay: time.Second, Proc: simhost.ProcConnectGetCapabilities})
		close(swap)
		f.sims["a"].Kill()
		f.within(time.Minute, "another link is up", func() bool {
			ls := f.Snapshot().Host("a").Link
			return ls.Generation > 1 && ls.State == model.LinkUp
		})
		want := "a has not said since its link came up which machine it is: try again"
		if op := f.do(on(model.VerbRestart, "attic")); op.State != model.OpFailed || op.Result != want || copied.ID() != was {
			t.Errorf("%s %q, want %q; %d, before %d", op.State, op.Result, want, copied.ID(), was)
		}
	})
}
