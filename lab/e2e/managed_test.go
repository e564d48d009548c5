//go:build lab

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"virdeck/model"
)

// pooled is a fleet whose VMs virdeck makes on both hosts, over an image that
// neither of them has.
type pooled struct {
	t      *testing.T
	config string
	*engine
}

// poolConfig is the fleet's configuration.
type poolConfig struct {
	count, memory int // MiB
}

func (p poolConfig) text(dir, image string) string {
	state, err := os.ReadFile("/run/vlab/state")
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf(`
[fleet]
name = "made"
state_dir = %q
[log]
level = "debug"
file = %q
[[health.target]]
url = %q
echo_ip = true
[[host]]
name = "h1"
uri = "qemu:///system?socket=%s/h1/run/libvirt-sock"
[[host]]
name = "h2"
uri = "qemu+tcp://10.77.2.2/system"
[controller]
poll = "2s"
[[template]]
name = "small"
vcpus = 1
memory = "%dMiB"
base_file = %q
type = "qemu"
[[pool]]
name = "web"
template = "small"
count = %d
port = 8080
drain_time = "2s"
`, filepath.Join(dir, "state"), filepath.Join(dir, "virdeck.log"), target, strings.TrimSpace(string(state)), p.memory, image, p.count)
}

// image returns the lab's disk that boots by itself, as a file of ours.
func image(t *testing.T) string {
	t.Helper()
	out, err := bounded("/bin/bash", "-c", ". "+script("hosts/lib.sh")+"; echo $guest")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(strings.TrimSpace(out), "boot.qcow2")
}

func newPooled(t *testing.T, c poolConfig) *pooled {
	t.Helper()
	dir := shortDir(t)
	p := &pooled{t: t, config: filepath.Join(dir, "config.toml")}
	t.Cleanup(func() { p.sweep() }) // after the engine has ended
	p.write(c)
	p.engine = serve(t, p.config)
	return p
}

func (p *pooled) write(c poolConfig) {
	p.t.Helper()
	if err := os.WriteFile(p.config, []byte(c.text(filepath.Dir(p.config), image(p.t))), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// reload has another configuration applied.
func (p *pooled) reload(c poolConfig) time.Time {
	p.t.Helper()
	p.write(c)
	now := time.Now()
	if err := p.signal(syscall.SIGHUP); err != nil {
		p.t.Fatal(err)
	}
	return now
}

// sweep leaves nothing behind: neither domains nor volumes.
func (p *pooled) sweep() {
	for _, h := range []string{"h1", "h2"} {
		script := `for d in $(virsh list --all --name | grep '^made-'); do virsh destroy $d; virsh undefine $d --nvram; done
for v in $(virsh vol-list default | awk '/made-|virdeck-base/{print $1}'); do virsh vol-delete $v default; done`
		if out, err := tryCtl(h, "sh", "bash", "-c", script); err != nil {
			p.t.Errorf("sweeping %s: %v\n%s", h, err, out)
		}
	}
}

// settled holds when the pool has n members, all in rotation, n VMs are there
// and nothing is left to do.
func settled(n int) Condition {
	return func(s *model.Status) string {
		i := slices.IndexFunc(s.Pools, func(p model.PoolStatus) bool { return p.Name == "web" })
		switch {
		case i < 0:
			return "there is no pool web"
		case s.Pools[i].Declared != n || s.Pools[i].Members != n || s.Pools[i].InRotation != n:
			return fmt.Sprintf("declared %d, there %d, in rotation %d; plan %v", s.Pools[i].Declared, s.Pools[i].Members, s.Pools[i].InRotation, s.Plan)
		case len(s.Plan) > 0:
			return fmt.Sprintf("something is left to do: %+v", s.Plan)
		}
		return ""
	}
}

func atLeastIn(n int) Condition {
	return func(s *model.Status) string {
		in := 0
		for _, p := range s.Proxies {
			if p.Rotation.In {
				in++
			}
		}
		if in < n {
			return fmt.Sprintf("%d in rotation", in)
		}
		return ""
	}
}

// uids returns the uid of each managed proxy.
func (p *pooled) uids() map[string]string {
	p.t.Helper()
	s, err := look(p.t.Context(), p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	out := map[string]string{}
	for _, q := range s.Proxies {
		if q.Managed != nil {
			out[q.Name] = q.Managed.UID
		}
	}
	return out
}

// TestManaged is a pool's life on two real hosts, from an empty pool of volumes
// to scaling, rolling, and what others do to its VMs.
func TestManaged(t *testing.T) {
	foreign := "made-web-1"
	p := newPooled(t, poolConfig{count: 4, memory: 128})
	p.await(p.start, 60*time.Second, "4 proxies made from nothing, ready", settled(4))
	s, err := look(t.Context(), p.config)
	if err != nil {
		t.Fatal(err)
	}
	domains := map[string]string{}
	perHost := map[string]int{}
	for _, q := range s.Proxies {
		perHost[q.Host]++
		domains[q.Name] = q.Managed.Domain
		want := map[string]string{"h1": "10.77.1.2", "h2": "10.77.2.2"}[q.Host]
		if q.Health.ExitIP != want {
			t.Errorf("%s goes out by %s, want %s", q.Name, q.Health.ExitIP, want)
		}
	}
	if perHost["h1"] != 2 || perHost["h2"] != 2 {
		t.Errorf("proxies by host: %v, want 2 and 2", perHost)
	}

	at := p.reload(poolConfig{count: 6, memory: 128})
	p.await(at, 60*time.Second, "scaled to 6", settled(6))
	at = p.reload(poolConfig{count: 2, memory: 128})
	p.await(at, 60*time.Second, "scaled to 2", settled(2))
	p.always(at, "at least two in rotation", atLeastIn(2))

	// Behind virdeck's back.
	at = time.Now()
	ctl(t, "h1", "virsh", "destroy", domains["web-1"])
	seen := p.await(at, 10*time.Second, "noticed", Not(InRotation("web-1")))
	p.await(seen, 30*time.Second, "a VM that was destroyed is back", settled(2))
	if s, err = look(t.Context(), p.config); err != nil {
		t.Fatal(err)
	}
	if s.Pools[0].Budget.Used == 0 {
		t.Errorf("the budget has counted nothing: %+v", s.Pools[0].Budget)
	}

	// Another template: never fewer than min_available, which is one.
	was := p.uids()
	at = p.reload(poolConfig{count: 2, memory: 160})
	p.await(at, 3*time.Minute, "rolled", All(settled(2), func(*model.Status) string {
		for name, uid := range p.uids() {
			if uid == was[name] {
				return name + " is still the old one"
			}
		}
		return ""
	}))
	p.always(at, "at least one in rotation", atLeastIn(1))
	if out := ctl(t, "h1", "virsh", "dominfo", p.domain("web-1")); !strings.Contains(out, "163840 KiB") {
		t.Errorf("the VM has not the new memory:\n%s", out)
	}

	// A daemon that dies in the middle of a create.
	at = p.reload(poolConfig{count: 4, memory: 160})
	p.await(at, 20*time.Second, "a create is under way on h2", func(s *model.Status) string {
		for _, q := range s.Proxies {
			if q.Host == "h2" && q.Managed != nil && !q.Managed.Built {
				return ""
			}
		}
		return "none"
	})
	mend(t, "h2", "sh", "true")
	ctl(t, "h2", "libvirtd", "kill")
	pause(t, 3*time.Second)
	ctl(t, "h2", "libvirtd", "start")
	p.await(time.Now(), 60*time.Second, "finished after the daemon's return", settled(4))

	// Somebody else's VM under a name of ours.
	at = p.reload(poolConfig{count: 1, memory: 160})
	p.await(at, 60*time.Second, "scaled to 1", settled(1))
	if out, err := guestScript("h1", foreign); err != nil || !strings.HasSuffix(strings.TrimSpace(out), " ready") {
		t.Fatalf("a foreign guest: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := guestScript("h1", foreign, "--destroy"); err != nil {
			t.Logf("%v\n%s", err, out)
		}
	})
	at = p.reload(poolConfig{count: 2, memory: 160})
	p.await(at, 60*time.Second, "two beside the foreign one", settled(2))
	if out := ctl(t, "h1", "virsh", "domstate", foreign); !strings.HasPrefix(out, "running") {
		t.Errorf("the foreign domain is %s", out)
	}
	at = p.reload(poolConfig{count: 0, memory: 160})
	p.await(at, 60*time.Second, "scaled to none", settled(0))
	for _, h := range []string{"h1", "h2"} {
		left := ctl(t, h, "sh", "bash", "-c", "virsh list --all --name | grep '^made-' | grep -v '^"+foreign+"$'; virsh vol-list default | awk '/made-/{print $1}'; true")
		if strings.TrimSpace(left) != "" {
			t.Errorf("left on %s:\n%s", h, left)
		}
	}
}

// domain is the name of a managed proxy's domain.
func (p *pooled) domain(name string) string {
	p.t.Helper()
	s, err := look(p.t.Context(), p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, q := range s.Proxies {
		if q.Name == name && q.Managed != nil {
			return q.Managed.Domain
		}
	}
	p.t.Fatalf("no managed proxy %s", name)
	return ""
}
