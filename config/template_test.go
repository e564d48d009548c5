package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"virdeck/model"
)

const managed = `
[[health.target]]
url = "http://192.0.2.1/ip"
[[host]]
name = "kvm1"
uri = "qemu+ssh://kvm1/system"
[[host]]
name = "kvm2"
uri = "qemu+ssh://kvm2/system"
[[template]]
name = "small"
base = "base.qcow2"
[[template]]
name = "large"
vcpus = 4
memory = 2048
disk = "1.5 TiB"
storage = "nvme"
base_file = "base.img"
base_format = "raw"
bridge = "br0"
machine = "q35"
arch = "aarch64"
type = "qemu"
firmware = "efi"
user_data_file = "user.yaml"
xml_file = "x.xml"
[[pool]]
name = "web"
template = "small"
count = 3
port = 3128
[[pool]]
name = "api"
template = "large"
count = 4
port = 8080
probe = "connect"
hosts = ["kvm2"]
surge = 2
min_available = 4
max_age = "720h"
drain_time = "1m"
failover = true
failover_after = "10m"
labels = { zone = "north" }
[[proxy]]
name = "solo"
host = "kvm1"
template = "small"
port = 3129
probe = "connect"
labels = { a = "b" }
[[proxy]]
name = "p"
address = "192.0.2.10"
port = 3128
`

func TestParse_managed(t *testing.T) {
	c := mustParse(t, managed)
	sum := sha256.Sum256([]byte("raw"))
	large := model.Template{
		Name: "large", VCPUs: 4, MemoryMB: 2048, DiskMB: 3 << 19, Storage: "nvme", Bridge: "br0", Machine: "q35", Arch: "aarch64",
		VirtType: "qemu", Firmware: model.FirmwareEFI, UserData: "#cloud-config\n", XML: "<memoryBacking/>\n",
		Base: model.BaseImage{File: "/etc/virdeck/base.img", SHA256: hex.EncodeToString(sum[:]), Size: 3, Format: "raw"},
	}
	small := model.Template{
		Name: "small", VCPUs: 1, MemoryMB: 512, Storage: "default", Network: "default", VirtType: "kvm", Firmware: model.FirmwareBIOS,
		Base: model.BaseImage{Volume: "base.qcow2", Format: "qcow2"},
	}
	if diff := cmp.Diff(map[string]model.Template{"small": small, "large": large}, c.TemplatesByName()); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]model.PoolSpec{
		{
			Name: "web", Template: "small", Count: 3, Hosts: []model.HostName{"kvm1", "kvm2"}, Port: 3128,
			Surge: 1, MinAvailable: 2, DrainTime: 30 * time.Second, FailoverAfter: 5 * time.Minute,
		},
		{
			Name: "api", Template: "large", Count: 4, Hosts: []model.HostName{"kvm2"}, Port: 8080, Probe: model.ProbeConnect,
			Surge: 2, MinAvailable: 4, MaxAge: 720 * time.Hour, DrainTime: time.Minute, Failover: true, FailoverAfter: 10 * time.Minute,
			Labels: map[string]string{"zone": "north"},
		},
	}, c.PoolSpecs()); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]model.ManagedSpec{{Template: "small", ProxySpec: model.ProxySpec{
		Name: "solo", Host: "kvm1", Backing: model.BackingManaged, Port: 3129, Probe: model.ProbeConnect, Pool: "default", Labels: map[string]string{"a": "b"},
	}}}, c.ManagedProxies()); diff != "" {
		t.Errorf("managed proxies (-want +got):\n%s", diff)
	}
	if u := c.Unmanaged(); len(u) != 1 || u[0].Name != "p" || len(c.Proxies) != 2 {
		t.Errorf("unmanaged: %v of %v", u, c.Proxies)
	}
	if ws := c.Warnings(); len(ws) != 0 {
		t.Errorf("warnings: %v", ws)
	}
}

func TestWarnings_managed(t *testing.T) {
	c := mustParse(t, strings.Replace(managed, `"720h"`, `"30m"`, 1)+"[[template]]\nname = \"spare\"\nbase = \"b\"\n")
	want := `config.toml:42: pool "api": max_age: replaces 8.0 members in 1h, and budget.per_pool allows 5
config.toml:58: template "spare": no pool and no proxy is made of it`
	if got := Problems(c.Warnings()).Error(); got != want {
		t.Errorf("warnings (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]string{
		"512MiB": "512MiB", "512M": "512MiB", "1GiB": "1GiB", "1.5GiB": "1536MiB", "2048 MiB": "2GiB", "1T": "1TiB", "0MiB": "0MiB", "0.5G": "512MiB",
		"": "", "MiB": "", "1": "", "1,5GiB": "", "1.GiB": "", "-1MiB": "", "1e3MiB": "", "999999999999TiB": "", "1KiB": "", "0.1GiB": "", " 1MiB": "", "1  MiB": "",
	} {
		s, err := parseSize(text)
		if (err == nil) != (want != "") || err == nil && s.String() != want {
			t.Errorf("%q is %s, %v; want %q", text, s, err, want)
		}
	}
	for in, want := range map[string]string{
		`"1mb"`:               `config.toml:3: template "t": disk: "1mb" is not a size; did you mean "1MiB"? allowed: whole MiB with a unit, such as "512MiB", "1.5GiB" or "1TiB"`,
		`1e9`:                 `config.toml:3: template "t": disk: want a size such as "512MiB", or whole MiB, not a number with a fraction`,
		`9223372036854775807`: `config.toml:3: template "t": disk: 1048576TiB is out of range; allowed: 64MiB to 64TiB, or no disk setting for as large as the base`,
	} {
		_, err := Parse("config.toml", []byte("[[template]]\nname = \"t\"\ndisk = "+in+"\nbase = \"b\"\n"), testSources())
		if errText(err) != want {
			t.Errorf("%s: (-want +got):\n%s", in, cmp.Diff(want, errText(err)))
		}
	}
}

// countingFile counts what is read of a file.
type countingFile struct {
	fs.File
	n *int
}

func (f countingFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	*f.n += n
	return n, err
}

func TestHashes(t *testing.T) {
	image := append(qcow2(0, 1<<20), make([]byte, 1<<20)...)
	files := fstest.MapFS{"d/base.qcow2": {Data: image, ModTime: time.Unix(1, 0)}}
	read := 0
	src := testSources()
	src.Dir, src.Hashes = "/d", &Hashes{}
	src.Open = func(path string) (fs.File, error) {
		f, err := files.Open(strings.TrimPrefix(path, "/"))
		return countingFile{f, &read}, err
	}
	hash := func(more string) string {
		t.Helper()
		read = 0
		c, err := Parse("f", []byte("[[template]]\nname = \"t\"\nbase_file = \"base.qcow2\"\n"+more), src)
		if err != nil {
			t.Fatal(err)
		}
		if c.Templates[0].BaseSize != int64(len(image)) {
			t.Errorf("size %d", c.Templates[0].BaseSize)
		}
		return c.Templates[0].BaseSHA256
	}
	sum := sha256.Sum256(image)
	want := hex.EncodeToString(sum[:])
	if got := hash(""); got != want || read != len(image) {
		t.Errorf("first: %s after %d bytes", got, read)
	}
	if got := hash(""); got != want || read > 32 {
		t.Errorf("again: %s after %d bytes", got, read)
	}
	declared := strings.Repeat("AB", 32)
	if got := hash("base_sha256 = \"" + declared + "\""); got != strings.ToLower(declared) || read > 32 {
		t.Errorf("declared: %s after %d bytes", got, read)
	}
	image = bytes.Clone(image)
	image[len(image)-1] = 1
	files["d/base.qcow2"] = &fstest.MapFile{Data: image, ModTime: time.Unix(2, 0)}
	if got := hash(""); got == want || read != len(image) {
		t.Errorf("changed: %s after %d bytes", got, read)
	}
	src.Hashes = nil
	first := hash("")
	if again := hash(""); again != first || read != len(image) {
		t.Errorf("without memory: %d bytes", read)
	}
}

// growing is a file that is longer each time one looks.
type growing struct {
	fs.File
	looks *int64
}

type grownInfo struct {
	fs.FileInfo
	more int64
}

func (i grownInfo) Size() int64 { return i.FileInfo.Size() + i.more }

func (f growing) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	*f.looks++
	return grownInfo{info, *f.looks}, err
}

func TestImage_changedWhileRead(t *testing.T) {
	src := testSources()
	open := src.Open
	var looks int64
	src.Open = func(path string) (fs.File, error) {
		f, err := open(path)
		return growing{f, &looks}, err
	}
	_, err := src.image("/etc/virdeck/good.qcow2", FormatQCOW2, "")
	if errText(err) != "changed while it was read; allowed: an image that is complete" {
		t.Error(err)
	}
}

func TestLoader(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "base.img"), "raw image", 0o644)
	path := filepath.Join(dir, "config.toml")
	write(t, path, "[[template]]\nname = \"t\"\nbase_file = \"base.img\"\nbase_format = \"raw\"\n", 0o644)
	var seen []model.Template
	l := Loader{Env: home, CheckTexts: func(m model.Template) []model.TextProblem {
		seen = append(seen, m)
		return nil
	}}
	first, err := l.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	// another content of the same length and time is not looked at again
	info, err := os.Stat(filepath.Join(dir, "base.img"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "base.img"), "RAW image", 0o644)
	if err := os.Chtimes(filepath.Join(dir, "base.img"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	again, err := l.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Templates, again.Templates); diff != "" {
		t.Error(diff)
	}
	if len(seen) != 2 || seen[0].Base.File != filepath.Join(dir, "base.img") {
		t.Errorf("validated: %+v", seen)
	}
	other, err := Load(path, home)
	if err != nil {
		t.Fatal(err)
	}
	if other.Templates[0].BaseSHA256 == first.Templates[0].BaseSHA256 {
		t.Error("another Loader remembers")
	}
}

func TestHashes_concurrent(t *testing.T) {
	src := testSources()
	src.Hashes = &Hashes{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if c, err := Parse("f", []byte("[[template]]\nname = \"t\"\nbase_file = \"good.qcow2\"\n"), src); err != nil || len(c.Templates[0].BaseSHA256) != 64 {
				t.Errorf("%v, %v", c, err)
			}
		})
	}
	wg.Wait()
}
