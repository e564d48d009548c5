package simhost

import (
	"bytes"
	"strings"
	"testing"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
	"github.com/kdomanski/iso9660"
)

func iso(t testing.TB, label string, files map[string]string) []byte {
	t.Helper()
	w, err := iso9660.NewWriter()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Cleanup(); err != nil {
			t.Error(err)
		}
	}()
	for name, data := range files {
		if err := w.AddFile(strings.NewReader(data), name); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := w.WriteTo(&b, label); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWriteFiles(t *testing.T) {
	const user = "#cloud-config\nhostname: x\nwrite_files:\n- path: /a\n  content: one line\n  permissions: '0600'\n" +
		"-   encoding: b64\n    content: aGk=\n    path: \"/b\"\n- content: |\n    K=V\n\n      more\n    end\n  path: /c\nruncmd:\n- path: /d\n"
	got := writeFiles(user)
	want := map[string]string{"/a": "one line", "/b": "hi", "/c": "K=V\n\n  more\nend\n"}
	if len(got) != len(want) {
		t.Errorf("%q", got)
	}
	for path, data := range want {
		if got[path] != data {
			t.Errorf("%s: %q, want %q", path, got[path], data)
		}
	}
	if got := writeFiles("#!/bin/sh\nwrite_files:\n- path: /a\n"); len(got) != 0 {
		t.Errorf("of a script: %q", got)
	}
}

// A defined guest takes the port and the credentials of its proxy from its seed,
// at each start; half a seed is none.
func TestSeed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHost(t, Options{})
		h.AddVolume("default", VolumeSpec{Name: "p-01.qcow2", Format: "qcow2"})
		h.AddVolume("default", VolumeSpec{Name: "seed"})
		l := connect(t, h)
		dom, err := l.DomainDefineXML(defined("p-01", definedUUID, "<disk type='volume' device='disk'><source pool='default' volume='seed'/><target dev='vdb' bus='virtio'/></disk>"))
		if err != nil {
			t.Fatal(err)
		}
		d := h.Domain("p-01")
		seed := func(port string) []byte {
			return iso(t, "cidata", map[string]string{"meta-data": "x: y\n", "user-data": "#cloud-config\nwrite_files:\n- path: /etc/proxy.env\n  content: |\n    PROXY_PORT=" + port + "\n    PROXY_AUTH=u:p:q\n"})
		}
		v := libvirt.StorageVol{Pool: "default", Name: "seed"}
		for _, c := range []struct {
			img  []byte
			port int
			user string
		}{
			{nil, 3128, ""},
			{seed("8080")[:19*sector], 3128, ""},
			{iso(t, "other", map[string]string{"user-data": "#cloud-config\n"}), 3128, ""},
			{seed("8080"), 8080, "u"},
			{seed("9090"), 9090, "u"},
		} {
			if err := l.StorageVolUpload(v, bytes.NewReader(c.img), 0, 0, 0); err != nil {
				t.Fatal(err)
			}
			if err := l.DomainCreate(dom); err != nil {
				t.Fatal(err)
			}
			if p := d.Proxy(); d.Port() != c.port || p.User != c.user || c.user != "" && p.Password != "p:q" {
				t.Errorf("port %d, credentials %s:%s; want %d, %s", d.Port(), p.User, p.Password, c.port, c.user)
			}
			time.Sleep(5 * time.Second)
			if got := d.ProxyAddress(); !strings.HasPrefix(got, "192.168.122.2:") {
				t.Errorf("proxy at %s", got)
			}
			if err := l.DomainDestroy(dom); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Whatever a volume holds, a guest that boots from it does no harm.
func FuzzSeed(f *testing.F) {
	f.Add(iso(f, "cidata", map[string]string{"user-data": "#cloud-config\nwrite_files:\n- path: /a\n  content: b\n"})[16*sector:])
	f.Add([]byte("\x01CD001"))
	f.Fuzz(func(_ *testing.T, tail []byte) {
		if user, ok := isoFile(append(make([]byte, 16*sector), tail...), "cidata", "user-data"); ok {
			_ = writeFiles(string(user)) // whatever it is
		}
	})
}
