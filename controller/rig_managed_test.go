package controller

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"virdeck/model"
	"virdeck/provider/libvirt"
	"virdeck/provider/libvirt/simhost"
	"virdeck/store"
)

// managedFleet is a fleet whose VMs virdeck makes, with a store that outlives
// the controllers that run on it.
type managedFleet struct {
	*fleet
	store *store.Memory
	keep  Store // in place of store, for what is written
	audit Audit // nil: there is none
	decl  Declared
}

func newManaged(t *testing.T, hosts ...string) *managedFleet {
	t.Helper()
	f := &managedFleet{fleet: newFleet(t)}
	for i, n := range hosts {
		h := f.host(n)
		h.AddVolume("default", base)
		h.AddNetwork(simhost.NetworkSpec{Name: "default", Gateway: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 1}), 16)})
	}
	f.set.Fleet = "test"
	f.newStore()
	f.decl = Declared{
		Hosts: f.specs,
		Templates: map[string]model.Template{"small": {
			Name: "small", VCPUs: 1, MemoryMB: 128, Storage: "default", Base: model.BaseImage{Volume: "base.qcow2", Format: "qcow2"},
			Network: "default", VirtType: "qemu",
		}},
		Budget: Budget{PerHost: 10, PerPool: 5, Window: time.Hour},
	}
	return f
}

// base is the image that all VMs stand on.
var base = simhost.VolumeSpec{Name: "base.qcow2", Format: "qcow2", Capacity: 1 << 30}

// newStore forgets everything.
func (f *managedFleet) newStore() {
	f.t.Helper()
	var err error
	if f.store, err = store.NewMemory(f.set.Fleet); err != nil {
		f.t.Fatal(err)
	}
}

// pool declares a pool called web over all hosts.
func (f *managedFleet) pool(count int) *model.PoolSpec {
	p := model.PoolSpec{Name: "web", Template: "small", Count: count, Port: 3128, Surge: 1, MinAvailable: max(0, count-1), DrainTime: 5 * time.Second}
	for _, h := range f.specs {
		p.Hosts = append(p.Hosts, h.Name)
	}
	f.decl.Pools = append(f.decl.Pools, p)
	return &f.decl.Pools[len(f.decl.Pools)-1]
}

// single declares a managed proxy of no pool.
func (f *managedFleet) single(host, name string) {
	f.decl.Managed = append(f.decl.Managed, model.ManagedSpec{
		ProxySpec: model.ProxySpec{Name: model.ProxyName(name), Host: model.HostName(host), Port: 3128}, Template: "small",
	})
}

// alone declares a single proxy on host a, runs, and waits until it serves.
func (f *managedFleet) alone() {
	f.t.Helper()
	f.single("a", "one")
	f.begin(1)
}

// attic declares an adopted guest, on host a, that somebody else made.
func (f *managedFleet) attic() {
	f.bridged("a", "attic", "10.9.0.1")
	f.decl.Proxies = f.fleet.decl
}

// run starts a controller on what the store has. The one before must have been
// stopped.
func (f *managedFleet) run() {
	f.t.Helper()
	state, err := f.store.Load(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	var keep Store = f.store
	if f.keep != nil {
		keep = f.keep
	}
	f.launch(Deps{Declared: f.decl, State: state, Store: keep, Audit: f.audit})
}

// begin runs what is declared until all n of it are in rotation, and nothing
// else is there.
func (f *managedFleet) begin(n int) {
	f.t.Helper()
	f.run()
	f.settle(n, 20*time.Second)
}

// again stops the controller, and runs another on what the store has.
func (f *managedFleet) again() {
	f.t.Helper()
	f.stop()
	f.run()
}

// mortal is a store that takes nothing more once its process is dead.
type mortal struct {
	*store.Memory
	dead atomic.Bool
}

func (m *mortal) Apply(ctx context.Context, changes ...store.Change) error {
	if m.dead.Load() {
		return context.Canceled
	}
	return m.Memory.Apply(ctx, changes...)
}

// mortal puts one in place for the next controller.
func (f *managedFleet) mortal() *mortal {
	m := &mortal{Memory: f.store}
	f.keep = m
	return m
}

// killed ends the controller as a kill would: from now on nothing is remembered.
func (f *managedFleet) killed(m *mortal) {
	m.dead.Store(true)
	f.stop()
	f.keep = nil
}

// apply has another configuration applied, with the same settings.
func (f *managedFleet) apply(d Declared) {
	f.t.Helper()
	if err := f.Apply(d, f.set); err != nil {
		f.t.Fatal(err)
	}
}

// bigger is what is declared, with VMs of another size.
func (f *managedFleet) bigger() Declared {
	d := f.decl
	bigger := d.Templates["small"]
	bigger.MemoryMB = 256
	d.Templates = map[string]model.Template{"small": bigger}
	return d
}

// renewed reports whether all of them are in rotation, and of the template as it
// is now.
func (f *managedFleet) renewed(names ...model.ProxyName) bool {
	for _, n := range names {
		p, _ := f.Snapshot().Proxy(n)
		if p == nil || p.Managed.BuiltHash != p.Managed.SpecHash || !p.Health.InRotation {
			return false
		}
	}
	return true
}

// vm is the VM of a managed proxy on host a; nil while it has none.
func (f *managedFleet) vm(name string) *simhost.Domain {
	f.t.Helper()
	return f.sims["a"].Domain(f.proxy(name).Managed.Domain)
}

// vmUUID is the UUID that the VM of a managed proxy has, made or not.
func (f *managedFleet) vmUUID(name string) uuid.UUID {
	f.t.Helper()
	var h libvirt.Host
	return uuid.MustParse(h.Identity(model.Owner{Fleet: f.set.Fleet, Proxy: model.ProxyName(name), UID: f.uid(name)}).UUID)
}

func (f *managedFleet) uid(name string) string {
	f.t.Helper()
	return f.proxy(name).Managed.UID
}

// domains returns the names of all domains, as host/name.
func (f *managedFleet) domains() []string {
	var out []string
	for _, hs := range f.specs {
		for _, d := range f.sims[string(hs.Name)].Domains() {
			out = append(out, string(hs.Name)+"/"+d.Name())
		}
	}
	return out
}

// busy reports whether anything is wanted and not done.
func (f *managedFleet) busy() bool {
	s := f.Snapshot()
	for _, p := range s.Pools {
		if p.Members != p.Count {
			return true
		}
	}
	return len(s.Plan) > 0
}

// settle waits until want are in rotation, nothing is to be done, and no other
// VM is there.
func (f *managedFleet) settle(want int, limit time.Duration) time.Duration {
	f.t.Helper()
	start := time.Now()
	for f.in() != want || f.busy() || len(f.domains()) != want {
		if time.Since(start) > limit {
			f.t.Fatalf("not settled at %d within %s: %d in rotation, domains %q\n%s", want, limit, f.in(), f.domains(), f.dump())
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(start)
}

// another is host a under another name, behind a link that is slower.
func (f *managedFleet) another(name model.HostName) HostSpec {
	hs := f.specs[0]
	hs.Name = name
	hs.Open = opens(libvirt.Options{Link: libvirt.LinkOptions{Host: name, Dial: func(ctx context.Context) (net.Conn, error) {
		time.Sleep(2 * time.Second)
		return f.sims["a"].Dial(ctx)
	}}})
	return hs
}
