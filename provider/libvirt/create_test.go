package libvirt

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// baseFile writes an image that passes for a qcow2 one of 1 MiB.
func baseFile(t *testing.T) model.BaseImage {
	t.Helper()
	img := make([]byte, 100_001)
	copy(img, "QFI\xfb\x00\x00\x00\x03")
	img[29] = 0x10 // 1 MiB
	for i := 512; i < len(img); i++ {
		img[i] = byte(i * i >> 7)
	}
	path := filepath.Join(t.TempDir(), "base.qcow2")
	if err := os.WriteFile(path, img, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(img)
	return model.BaseImage{File: path, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(img)), Format: "qcow2"}
}

func testTemplate(base model.BaseImage) model.Template {
	return model.Template{
		Name: "small", VCPUs: 1, MemoryMB: 128, Storage: "default", Base: base, Network: "default", VirtType: "qemu",
		Machine: "pc", Firmware: model.FirmwareBIOS,
	}
}

func testBuild(base model.BaseImage, proxy string) provider.Build {
	spec := model.BuildSpec{
		Template: testTemplate(base), Hostname: proxy, Port: 8080, Creds: model.Credentials{User: "u-" + proxy, Password: "secret: " + proxy},
	}
	return provider.Build{
		Owner: model.Owner{
			Fleet: "home", Proxy: model.ProxyName(proxy), UID: "uid-" + proxy, Controller: "c-1", SpecHash: spec.Hash(), Pool: "web",
			CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		},
		Spec: spec,
	}
}

// declared checks that the host holds exactly these VMs, finished, and nothing
// else of ours, and that nothing was done to a volume under a guest.
func declared(t *testing.T, sim *simhost.Host, builds ...provider.Build) {
	t.Helper()
	declaredThere(t, sim, builds...)
	if v := sim.Violations(); len(v) > 0 {
		t.Errorf("violations: %q", v)
	}
}

// declaredThere checks what is there alone, and not how it came to be.
func declaredThere(t *testing.T, sim *simhost.Host, builds ...provider.Build) {
	t.Helper()
	var wantVols []string
	have := sim.Domains()
	if len(have) != len(builds) {
		t.Errorf("%d domains, want %d", len(have), len(builds))
	}
	for _, b := range builds {
		id := identify(b.Owner)
		d := sim.Domain(id.domain)
		if d == nil {
			t.Errorf("no domain %s", id.domain)
			continue
		}
		if s, _ := d.State(); s != golibvirt.DomainRunning || !d.Autostart() || golibvirt.UUID(d.UUID()) != id.uuid || d.MAC() != id.mac {
			t.Errorf("%s: state %v, autostart %v, UUID %x, MAC %s", id.domain, s, d.Autostart(), d.UUID(), d.MAC())
		}
		for _, live := range []bool{false, true} {
			o, err := parseMark(d.Metadata(markURI, live))
			want := b.Owner
			want.Phase = model.PhaseReady
			if err != nil || o != want {
				t.Errorf("%s: mark %+v, %v, want %+v", id.domain, o, err, want)
			}
		}
		if p := d.Proxy(); d.Port() != int(b.Spec.Port) || p.User != b.Spec.Creds.User || p.Password != b.Spec.Creds.Password {
			t.Errorf("%s: its proxy has port %d and credentials %s:%s", id.domain, d.Port(), p.User, p.Password)
		}
		wantVols = append(wantVols, id.overlay, id.seed)
		tpl := b.Spec.Template
		if v, _ := sim.Volume("default", id.overlay); v.Format != "qcow2" || v.Backing != "/var/lib/libvirt/images/"+tpl.Base.VolumeName() || v.BackingFormat != tpl.Base.Format {
			t.Errorf("%s: its disk is %+v", id.domain, v.VolumeSpec)
		}
		img, err := seedImage(id, b.Spec)
		if v, _ := sim.Volume("default", id.seed); err != nil || !bytes.Equal(v.Content, img) || v.Capacity != uint64(len(img)) {
			t.Errorf("%s: its seed is not what was asked for (%d bytes of %d), %v", id.domain, v.Written, len(img), err)
		}
		if v, _ := sim.Volume("default", tpl.Base.VolumeName()); tpl.Base.File != "" {
			if sum := sha256.Sum256(v.Content); hex.EncodeToString(sum[:]) != tpl.Base.SHA256 {
				t.Errorf("the base volume does not hold the image: %d bytes, SHA-256 %x", v.Written, sum)
			}
		}
		if b.Spec.Template.Base.File != "" {
			wantVols = append(wantVols, b.Spec.Template.Base.VolumeName(), b.Spec.Template.Base.VolumeName()+proofEnd)
		} else {
			wantVols = append(wantVols, b.Spec.Template.Base.Volume)
		}
	}
	slices.Sort(wantVols)
	wantVols = slices.Compact(wantVols)
	vols := sim.Volumes("default")
	slices.Sort(vols)
	if !slices.Equal(vols, wantVols) {
		t.Errorf("volumes %q, want %q", vols, wantVols)
	}
}

func TestCreateDelete(t *testing.T) {
	base := baseFile(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		b := testBuild(base, "p-01")
		var steps []string
		tell := func(p model.Progress) {
			if len(steps) == 0 || steps[len(steps)-1] != p.Step {
				steps = append(steps, p.Step)
			}
		}
		for range 2 {
			built, err := r.Create(t.Context(), b, tell)
			if err != nil {
				t.Fatal(err)
			}
			if want := r.Identity(b.Owner); built != want {
				t.Errorf("built %+v, want %+v", built, want)
			}
			declared(t, r.sim, b)
		}
		t.Logf("%q", steps)
		time.Sleep(10 * time.Second)
		in, err := r.get(t, r.Identity(b.Owner).Domain)
		if err != nil || in.State != model.InstanceRunning {
			t.Errorf("%+v, %v", in, err)
		}
		c, err := r.sim.DialProxy(t.Context(), "tcp", in.Address.String()+":8080")
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		l, err := r.List(t.Context())
		if err != nil || len(l.Instances) != 1 || !l.Instances[0].OwnerKnown || l.Instances[0].Owner.UID != "uid-p-01" {
			t.Errorf("%+v, %v", l, err)
		}
		spec, err := r.Recover(t.Context(), in.Name)
		if err != nil || spec.Port != 8080 || spec.Creds != b.Spec.Creds || spec.Hostname != "p-01" {
			t.Errorf("recovered %+v, %v", spec, err)
		}
		for range 2 {
			if err := r.Delete(t.Context(), provider.Deletion{Owner: b.Owner, Domain: in.Name, Storage: "default"}, nil); err != nil {
				t.Fatal(err)
			}
			if n, v := len(r.sim.Domains()), r.sim.Volumes("default"); n != 0 || len(v) != 2 {
				t.Errorf("%d domains, volumes %q", n, v)
			}
		}
		if v := r.sim.Violations(); len(v) > 0 {
			t.Errorf("violations: %q", v)
		}
	})
}
