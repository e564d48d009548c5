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
	count, memory int    // MiB
	more          string // more tables
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
%s`, filepath.Join(dir, "state"), filepath.Join(dir, "virdeck.log"), target, strings.TrimSpace(string(state)), p.memory, image, p.count, p.more)
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

// newPooled declares a fleet; begin starts a virdeck on it.
func newPooled(t *testing.T, c poolConfig) *pooled {
	t.Helper()
	p := &pooled{t: t, config: filepath.Join(shortDir(t), "config.toml")}
	t.Cleanup(p.sweep) // after the engine has ended
	p.write(c)
	return p
}

func (p *pooled) begin(flags ...string) {
	p.t.Helper()
	p.engine = serve(p.t, p.config, flags...)
}

// file is the path of something that belongs to the fleet.
func (p *pooled) file(name string) string { return filepath.Join(filepath.Dir(p.config), name) }

// read returns what a file of the fleet has in it.
func (p *pooled) read(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(p.file(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
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

// look is one look at the status.
func (p *pooled) look() *model.Status {
	p.t.Helper()
	s, err := look(p.t.Context(), p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	return s
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
		return atLeastIn(n)(s) // the pool's own count is of its last pass
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
func uids(s *model.Status) map[string]string {
	out := map[string]string{}
	for _, q := range s.Proxies {
		if q.Managed != nil {
			out[q.Name] = q.Managed.UID
		}
	}
	return out
}

// managed is what the status says of a managed proxy's VM.
func (p *pooled) managed(name string) *model.ManagedStatus {
	p.t.Helper()
	for _, q := range p.look().Proxies {
		if q.Name == name && q.Managed != nil {
			return q.Managed
		}
	}
	p.t.Fatalf("no managed proxy %s", name)
	return nil
}
