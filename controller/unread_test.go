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

// unreadable adds a domain on host b whose mark nobody may read, until it is
// called.
func (f *managedFleet) unreadable(name string) (mend func()) {
	f.sims["b"].AddDomain(simhost.DomainSpec{Name: name, Running: true})
	return f.sims["b"].Inject(simhost.Fault{Proc: simhost.ProcDomainGetMetadata, Domain: name, Kind: simhost.FaultError, Error: simhost.Error{Code: libvirt.ErrAccessDenied, Message: "access denied"}})
}

// Where nothing is remembered, a domain that cannot be one of ours by its name
// holds nothing up.
func TestUnread_stranger(t *testing.T) {
	for _, name := range []string{"stranger", "test-web-x-abcdef", "test-web-1", "other-web-1-abcdef", "test-gone-1-abcdef", "test-web-1-ghijkl"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a", "b")
				f.unreadable(name)
				f.pool(2)
				f.single("a", "one")
				f.run()
				f.within(30*time.Second, "all are made", func() bool { return f.in() == 3 })
			})
		})
	}
}

// One that can be holds all of it up, and is named.
func TestUnread_perhapsOurs(t *testing.T) {
	for _, name := range []string{"test-web-17-abcdef", "test-one-012345"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newManaged(t, "a", "b")
				mend := f.unreadable(name)
				f.pool(2)
				f.single("a", "one")
				f.run()
				why := "the store began empty, and the mark of domain " + name + " on b has not been read yet (code 88: access denied)"
				said := func() bool {
					s := f.Snapshot()
					return len(s.Notices) == 1 && s.Notices[0].Text == "no VM is made, removed or taken over: "+why &&
						len(s.Pools) == 1 && len(s.Pools[0].Wait) == 1 && s.Pools[0].Wait[0] == why &&
						strings.Contains(f.plan(), "it is declared, and has no VM yet | "+why)
				}
				f.within(10*time.Second, "said", said)
				f.during(10*time.Minute, "nothing is made", func() bool { return len(f.domains()) == 1 && said() })
				mend()
				f.within(time.Minute, "all are made", func() bool { return f.in() == 3 && len(f.Snapshot().Notices) == 0 })
			})
		})
	}
}

// Names of domains are cut: a long one may be anybody's with the same beginning.
func TestPerhapsOurs(t *testing.T) {
	long := strings.Repeat("x", 31)
	c := &Controller{}
	c.set.Store(&Settings{Fleet: "home"})
	c.declared.Store(&Declared{
		Managed: []model.ManagedSpec{{ProxySpec: model.ProxySpec{Name: "one"}}, {ProxySpec: model.ProxySpec{Name: model.ProxyName("y" + long + "-and-more")}}},
		Pools:   []model.PoolSpec{{Name: "web"}, {Name: long + "-pool"}, {Name: "z" + long[:29]}},
	})
	for domain, want := range map[string]bool{
		"home-one-012345": true, "home-one-two-012345": false, "home-on-012345": false,
		"home-web-1-012345": true, "home-web-123456-012345": true, "home-web-01-012345": false, "home-web-012345": false,
		"home-y" + long + "-012345": true, "home-y" + long[1:] + "-012345": false,
		"home-" + long + "--012345": true, "home-" + long + "-012345": false,
		"home-z" + long[:29] + "-1-012345": true, "home-z" + long[:29] + "-2-012345": true,
		"work-one-012345": false, "one": false,
	} {
		if got := c.perhapsOurs(domain); got != want {
			t.Errorf("%s: %v, want %v", domain, got, want)
		}
	}
}
