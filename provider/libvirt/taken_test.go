package libvirt

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// Somebody has undefined a VM of ours and has one of their own on its disk or its
// seed: neither is made anew under it, whether it is named by volume or by file.
func TestCreate_diskOfSomebodyElses(t *testing.T) {
	base := baseFile(t)
	for what, source := range map[string]string{
		"disk, by volume": `<disk type="volume" device="disk"><source pool="default" volume="%s.qcow2"/><target dev="vda" bus="virtio"/></disk>`,
		"disk, by file":   `<disk type="file" device="disk"><source file="/var/lib/libvirt/images/%s.qcow2"/><target dev="vda" bus="virtio"/></disk>`,
		"seed, by file":   `<disk type="file" device="cdrom"><source file="/var/lib/libvirt/images/%s-seed.iso"/><target dev="hda" bus="ide"/></disk>`,
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, simhost.Options{}, nil)
				b := testBuild(base, "p-01")
				if _, err := r.Create(t.Context(), b, nil); err != nil {
					t.Fatal(err)
				}
				d := r.sim.Domains()[0]
				name := d.Name()
				if err := d.Destroy(); err != nil {
					t.Fatal(err)
				}
				d.Undefine()
				xml := fmt.Sprintf(`<domain type="qemu"><name>theirs</name><memory unit="MiB">128</memory><os><type>hvm</type></os><devices>`+source+`</devices></domain>`, name)
				if err := r.act(t.Context(), "define", "theirs", func(v *golibvirt.Libvirt) error {
					_, err := v.DomainDefineXMLFlags(xml, 0)
					return err
				}); err != nil {
					t.Fatal(err)
				}
				if err := r.sim.Domain("theirs").Start(); err != nil {
					t.Fatal(err)
				}
				volumes := len(r.sim.Volumes("default"))
				_, err := r.Create(t.Context(), b, nil)
				volume := name + ".qcow2"
				if strings.HasPrefix(what, "seed") {
					volume = name + "-seed.iso"
				}
				want := fmt.Sprintf("host beelink: create of domain %s: volume %s is a disk of domain theirs, which is not this proxy's", name, volume)
				if provider.Classify(err) != provider.ClassConflict || errText(err) != want {
					t.Errorf("%v, want a conflict: %s", err, want)
				}
				if v := r.sim.Violations(); len(v) > 0 {
					t.Errorf("violations: %q", v)
				}
				if n := len(r.sim.Volumes("default")); n != volumes || r.sim.Domain(name) != nil {
					t.Errorf("%d volumes, before %d; its domain is there: %v", n, volumes, r.sim.Domain(name) != nil)
				}
				theirs := r.sim.Domain("theirs")
				if err := theirs.Destroy(); err != nil {
					t.Fatal(err)
				}
				theirs.Undefine()
				if _, err := r.Create(t.Context(), b, nil); err != nil {
					t.Errorf("when theirs is gone: %v", err)
				}
			})
		})
	}
}
