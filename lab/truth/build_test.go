//go:build lab

package truth

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/providertest"
)

var _ providertest.BuildRig = (*rig)(nil)

// builds is the fleet of the VMs that the contract makes; nobody else has it.
const builds = "contract"

func (r *rig) Builder() provider.Builder { return r.prov }

// Build is a VM over the lab's disk that boots by itself. It is swept away at the
// end of its case, whatever has become of it.
func (r *rig) Build(proxy string) provider.Build {
	r.mu.Lock()
	if !r.building {
		r.building = true
		r.t.Cleanup(func() {
			if out, err := r.h.ctl("sh", "bash", "-c", sweep); err != nil {
				r.t.Errorf("sweeping %s: %v\n%s", r.h.name, err, out)
			}
		})
	}
	r.mu.Unlock()
	return provider.Build{
		Owner: model.Owner{
			Fleet: builds, Proxy: model.ProxyName(proxy), UID: "uid-" + proxy, Controller: "c-1", SpecHash: "s", CreatedAt: time.Unix(1e9, 0).UTC(),
		},
		Spec: model.BuildSpec{
			Template: model.Template{
				VCPUs: 1, MemoryMB: 128, Storage: "default", Network: "default", VirtType: "qemu",
				Base: model.BaseImage{Volume: "boot.qcow2", Format: "qcow2"},
			},
			Hostname: proxy, Port: 8080, Creds: model.Credentials{User: proxy, Password: "secret"},
		},
	}
}

const sweep = `for d in $(virsh list --all --name | grep '^` + builds + `-'); do virsh destroy $d; virsh undefine $d --nvram; done
for v in $(virsh vol-list default | awk '/` + builds + `-/{print $1}'); do virsh vol-delete $v default; done; true`

func (r *rig) Left() []string {
	out, err := r.h.ctl("sh", "bash", "-c", `virsh list --all --name; virsh vol-list default | awk 'NR>2{print $1}'`)
	if err != nil {
		r.t.Errorf("looking at %s: %v\n%s", r.h.name, err, out)
	}
	return slices.DeleteFunc(strings.Fields(out), func(n string) bool { return !strings.HasPrefix(n, builds+"-") })
}

func (r *rig) Foreign(name string) error {
	xml := fmt.Sprintf("<domain type='qemu'><name>%s</name><memory unit='MiB'>64</memory><os><type arch='x86_64'>hvm</type></os></domain>", name)
	out, err := r.h.ctl("sh", "bash", "-c", "virsh define /dev/stdin <<'X'\n"+xml+"\nX\n")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
