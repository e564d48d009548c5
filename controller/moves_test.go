package controller

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/model"
	"virdeck/provider/libvirt/simhost"
)

// without is what is declared less a host and all that names it.
func (f *managedFleet) without(host model.HostName) Declared {
	d := f.decl
	d.Hosts, d.Managed, d.Proxies = nil, nil, nil
	for _, h := range f.decl.Hosts {
		if h.Name != host {
			d.Hosts = append(d.Hosts, h)
		}
	}
	for _, m := range f.decl.Managed {
		if m.Host != host {
			d.Managed = append(d.Managed, m)
		}
	}
	for _, p := range f.decl.Proxies {
		if p.Host != host {
			d.Proxies = append(d.Proxies, p)
		}
	}
	return d
}

// A host that was taken out of the file, and put back: its VMs are there still,
// and are those of its proxies, with what operators wanted of them.
func TestMoves_hostTakenOutAndPutBack(t *testing.T) {
	for name, between := range map[string]func(f *managedFleet, all, less Declared){
		"at once": func(*managedFleet, Declared, Declared) {},
		"after a restart": func(f *managedFleet, all, less Declared) {
			f.decl = less
			f.again()
			f.decl = all
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a", "b")
				f.pool(1)
				f.decl.Pools[0].Hosts = []model.HostName{"b"}
				f.single("b", "alone")
				f.single("a", "other")
				f.sims["b"].AddDomain(simhost.DomainSpec{Name: "attic", Running: true, NICs: bridge("10.9.0.1")})
				f.run()
				f.within(30*time.Second, "made", func() bool { return f.in() == 3 })
				spec := model.ProxySpec{Name: "p-attic", Domain: "attic", Port: 3128, Pool: "default"}
				f.done(model.Command{Verb: model.VerbAdopt, Host: "b", Adopt: &spec})
				f.within(30*time.Second, "adopted", func() bool { return f.in() == 4 })
				f.done(model.Command{Verb: model.VerbStop, Host: "b", Proxy: "alone"})
				f.done(model.Command{Verb: model.VerbDrain, Host: "b", Proxy: "p-attic"})
				was := map[string]string{"alone": f.uid("alone"), "web-1": f.uid("web-1")}

				all, less := f.decl, f.without("b")
				f.apply(less)
				f.within(10*time.Second, "gone from the screen", func() bool { return len(f.Snapshot().Hosts) == 1 && f.in() == 1 })
				f.during(time.Minute, "the other one stays", func() bool { return f.in() == 1 })
				between(f, all, less)
				f.apply(all)
				f.within(time.Minute, "back", func() bool { return f.in() == 2 && f.ready("web-1") })
				f.during(30*time.Minute, "no VM is made, none removed, none started", func() bool {
					return len(f.domains()) == 4 && len(f.Snapshot().Hosts[1].Orphans) == 0 && f.in() == 2
				})
				for p, uid := range was {
					if f.uid(p) != uid {
						t.Errorf("%s has uid %s, before %s", p, f.uid(p), uid)
					}
				}
				if p := f.proxy("p-attic"); !p.Drained {
					t.Error("p-attic is not drained any more")
				}
			})
		})
	}
}

// A managed proxy that the file has on another host now: its VM goes first, so
// that there are never two of it, and an unreachable host causes none elsewhere.
func TestMoves_declaredOnAnotherHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.single("a", "alone")
		f.begin(1)
		f.sims["a"].Kill()
		d := f.decl
		d.Managed = nil
		f.decl.Managed[0].Host = "a"
		moved := f.decl.Managed[0]
		moved.Host = "b"
		d.Managed = append(d.Managed, moved)
		f.apply(d)
		f.within(time.Second, "out of the rotation at once", func() bool { return f.in() == 0 })
		f.during(10*time.Minute, "none is made while the old one cannot be removed", func() bool { return len(f.sims["b"].Domains()) == 0 })
		if err := f.sims["a"].Start(); err != nil {
			t.Fatal(err)
		}
		f.within(2*time.Minute, "moved", func() bool {
			return len(f.domains()) == 1 && len(f.sims["b"].Domains()) == 1 && f.in() == 1
		})
		if f.proxy("alone").Spec.Host != "b" {
			t.Errorf("it is on %s", f.proxy("alone").Spec.Host)
		}
		f.apply(f.decl) // and back
		f.within(2*time.Minute, "back", func() bool { return f.in() == 1 && len(f.sims["b"].Domains()) == 0 && len(f.domains()) == 1 })
	})
}

// What is not declared any more leaves the rotation at once, though its host
// cannot be reached.
func TestMoves_undeclaredOnADownHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.single("a", "alone")
		f.begin(1)
		f.sims["a"].Kill()
		f.during(time.Minute, "kept while it is declared", func() bool { return f.in() == 1 })
		d := f.decl
		d.Managed = nil
		f.apply(d)
		f.within(time.Second, "out", func() bool { return f.in() == 0 })
		f.apply(f.decl)
		f.within(10*time.Second, "in again", func() bool { return f.in() == 1 })
	})
}

// A VM that somebody has moved to another host is no reason to make a second
// one, even if it does not serve there.
func TestMoves_migratedBehindOurBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a", "b")
		f.single("a", "alone")
		f.begin(1)
		d := f.vm("alone")
		moved := f.sims["b"].AddDomain(simhost.DomainSpec{Name: d.Name(), UUID: d.UUID(), Running: true, NICs: []simhost.NIC{{Bridge: "br0", MAC: d.MAC()}}})
		moved.SetMetadata("urn:virdeck:owner:1", "virdeck", d.Metadata("urn:virdeck:owner:1", false))
		if err := d.Destroy(); err != nil {
			t.Fatal(err)
		}
		d.Undefine()
		f.within(time.Minute, "said", func() bool { return strings.Contains(f.plan(), "its VM is on b now, moved there by somebody") })
		f.during(time.Hour, "no other is made, and this one is left alone", func() bool {
			return len(f.domains()) == 1 && moved.ID() > 0 && strings.Contains(f.plan(), "its VM is on b now")
		})
	})
}

// Two names for one machine: nothing is written through the second, and what it
// says is shown.
func TestMoves_oneMachineUnderTwoNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		f.bridged("a", "attic", "10.9.0.1")
		f.decl.Hosts = append(f.decl.Hosts, f.another("b"))
		f.decl.Proxies = f.fleet.decl
		f.decl.Proxies[0].Host = "b"
		f.single("b", "alone")
		f.single("a", "other")
		f.run()
		f.within(time.Minute, "read through both, written through one", func() bool { return f.ready("attic", "other") })
		f.during(time.Hour, "no VM through the second name", func() bool { return len(f.sims["a"].Domains()) == 2 && f.in() == 2 })
		uuid := f.Snapshot().Hosts[0].UUID
		want := "b and a show one host UUID, " + uuid + ": they are one machine, or clones that need a host_uuid of their own in libvirtd.conf. Nothing is written through b"
		if got := f.Snapshot().Host("b").Twin; got != want {
			t.Errorf("said of b: %q, want %q", got, want)
		}
		if o := f.Snapshot().Host("b").Orphans; len(o) != 0 {
			t.Errorf("orphans of b: %v", o)
		}
		if got := f.Snapshot().Host("a").Twin; got != "" {
			t.Errorf("said of a: %q", got)
		}
		f.apply(f.without("a")) // the first name is given up: the second is the machine's only one
		f.within(time.Minute, "written through the second", func() bool { return f.ready("alone") && f.Snapshot().Host("b").Twin == "" })
	})
}

// Another machine takes a host's place on an operator's word, and stays after a
// restart.
func TestMoves_repinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newManaged(t, "a")
		other, swap := f.twin()
		f.decl.Hosts = f.specs
		other.AddVolume("default", base)
		other.AddNetwork(simhost.NetworkSpec{Name: "default", Gateway: netip.MustParsePrefix("10.7.0.1/16")})
		f.single("a", "alone")
		f.begin(1)
		f.refused(model.Command{Verb: model.VerbRepin, Host: "a"}, "a is the machine that it always was, as far as is known")
		close(swap)
		f.sims["a"].Kill()
		f.within(time.Minute, "another machine answers", func() bool { return f.Snapshot().Host("a").Misconfig != "" })
		was, is := f.Snapshot().Host("a").UUID, f.Controller.host("a").shows
		want := "this is another machine: host UUID " + is + ", pinned is " + was + "; repin takes it for a"
		if got := f.Snapshot().Host("a").Misconfig; got != want {
			t.Errorf("misconfigured %q, want %q", got, want)
		}
		f.during(10*time.Minute, "nothing is done to it", func() bool { return len(other.Domains()) == 0 && f.in() == 1 })
		f.done(model.Command{Verb: model.VerbRepin, Host: "a"})
		f.during(time.Minute, "it still serves, from wherever it is", func() bool { return len(other.Domains()) == 0 && f.in() == 1 })
		if err := f.vm("alone").Destroy(); err != nil { // the old machine is switched off
			t.Fatal(err)
		}
		f.within(5*time.Minute, "its proxies are made there", func() bool { return len(other.Domains()) == 1 && f.in() == 1 && !f.busy() })
		f.again()
		f.during(time.Minute, "remembered", func() bool { return f.in() == 1 && f.Snapshot().Host("a").Misconfig == "" })
	})
}
