package simhost

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	libvirt "github.com/digitalocean/go-libvirt"
)

const images = "/var/lib/libvirt/images/"

func overlay(name, base string) string {
	return "<volume><name>" + name + "</name><target><format type='qcow2'/></target>" +
		"<backingStore><path>" + base + "</path><format type='qcow2'/></backingStore></volume>"
}

// storageHost has a base volume in its default pool.
func storageHost(t *testing.T) (*Host, *libvirt.Libvirt, libvirt.StoragePool) {
	h := newHost(t, Options{})
	h.AddVolume("default", VolumeSpec{Name: "base.qcow2", Format: "qcow2", Capacity: 2 << 30, Allocation: 300 << 20})
	l := connect(t, h)
	p, err := l.StoragePoolLookupByName("default")
	if err != nil {
		t.Fatal(err)
	}
	return h, l, p
}

func TestPools(t *testing.T) {
	h, l, p := storageHost(t)
	state, capacity, allocation, available, err := l.StoragePoolGetInfo(p)
	if err != nil || state != uint8(libvirt.StoragePoolRunning) || capacity != 100<<30 || allocation != 300<<20 || available != 100<<30-300<<20 {
		t.Errorf("state %d, capacity %d, allocation %d, available %d, %v", state, capacity, allocation, available, err)
	}
	text, err := l.StoragePoolGetXMLDesc(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	var x struct {
		Type string `xml:"type,attr"`
		UUID string `xml:"uuid"`
		Path string `xml:"target>path"`
	}
	if err := xml.Unmarshal([]byte(text), &x); err != nil || x.Type != "dir" || x.UUID != uuidText(p.UUID) || x.Path+"/" != images {
		t.Errorf("%+v, %v in\n%s", x, err, text)
	}
	pools, n, err := l.ConnectListAllStoragePools(1, 0)
	if err != nil || n != 1 || !slices.Equal(pools, []libvirt.StoragePool{p}) {
		t.Errorf("pools %v, %d, %v", pools, n, err)
	}
	_, err = l.StoragePoolLookupByName("none")
	wantError(t, err, libvirt.ErrNoStoragePool, "Storage pool not found: no storage pool with matching name 'none'")
	_, err = l.StoragePoolLookupByUUID(libvirt.UUID{1})
	wantError(t, err, libvirt.ErrNoStoragePool, "Storage pool not found: no storage pool with matching uuid '01000000-0000-0000-0000-000000000000'")
	_, _, _, _, err = l.StoragePoolGetInfo(libvirt.StoragePool{Name: "q"})
	wantError(t, err, libvirt.ErrNoStoragePool, "Storage pool not found: no storage pool with matching uuid '00000000-0000-0000-0000-000000000000' (q)")

	h.SetPoolActive("default", false)
	_, err = l.StorageVolLookupByName(p, "base.qcow2")
	wantError(t, err, libvirt.ErrOperationInvalid, "Requested operation is not valid: storage pool 'default' is not active")
	if active, err := l.StoragePoolIsActive(p); err != nil || active != 0 {
		t.Errorf("active %d, %v", active, err)
	}
}

func TestVolumes(t *testing.T) {
	h, l, p := storageHost(t)
	v, err := l.StorageVolCreateXML(p, overlay("p-01.qcow2", images+"base.qcow2"), 0)
	if err != nil || v != (libvirt.StorageVol{Pool: "default", Name: "p-01.qcow2", Key: images + "p-01.qcow2"}) {
		t.Fatalf("volume %+v, %v", v, err)
	}
	kind, capacity, allocation, err := l.StorageVolGetInfo(v)
	if err != nil || kind != int8(libvirt.StorageVolFile) || capacity != 2<<30 || allocation != overlayAllocation {
		t.Errorf("kind %d, capacity %d, allocation %d, %v; want its backing file's capacity", kind, capacity, allocation, err)
	}
	text, err := l.StorageVolGetXMLDesc(v, 0)
	if err != nil || !strings.Contains(text, "<path>"+images+"base.qcow2</path>") || !strings.Contains(text, "<format type='qcow2'/>") {
		t.Errorf("%v in\n%s", err, text)
	}
	if file, err := l.StorageVolGetPath(v); err != nil || file != images+"p-01.qcow2" {
		t.Errorf("path %q, %v", file, err)
	}
	for what, find := range map[string]func() (libvirt.StorageVol, error){
		"name": func() (libvirt.StorageVol, error) { return l.StorageVolLookupByName(p, "p-01.qcow2") },
		"path": func() (libvirt.StorageVol, error) { return l.StorageVolLookupByPath(images + "p-01.qcow2") },
		"key":  func() (libvirt.StorageVol, error) { return l.StorageVolLookupByKey(images + "p-01.qcow2") },
	} {
		if got, err := find(); err != nil || got != v {
			t.Errorf("by %s: %+v, %v", what, got, err)
		}
	}
	vols, n, err := l.StoragePoolListAllVolumes(p, 1, 0)
	if err != nil || n != 2 || len(vols) != 2 || vols[1] != v {
		t.Errorf("volumes %v, %d, %v", vols, n, err)
	}
	if err := l.StorageVolDelete(v, 0); err != nil {
		t.Fatal(err)
	}
	wantError(t, l.StorageVolDelete(v, 0), libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching name 'p-01.qcow2'")
	_, err = l.StorageVolLookupByPath(images + "p-01.qcow2")
	wantError(t, err, libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching path '"+images+"p-01.qcow2'")
	if got := h.Volumes("default"); !slices.Equal(got, []string{"base.qcow2"}) {
		t.Errorf("volumes %v", got)
	}
}

func TestVolCreate_refused(t *testing.T) {
	h, l, p := storageHost(t)
	h.SetPoolCapacity("default", 400<<20)
	for _, c := range []struct {
		name, xml string
		code      libvirt.ErrorNumber
		message   string
	}{
		{"it exists", overlay("base.qcow2", images+"base.qcow2"), libvirt.ErrStorageVolExist, "storage volume 'base.qcow2' exists already"},
		{"no backing file", overlay("x", images+"none.qcow2"), libvirt.ErrSystemError, "inaccessible backing store volume " + images + "none.qcow2: No such file or directory"},
		{"no capacity", "<volume><name>x</name></volume>", libvirt.ErrXMLError, "XML error: missing capacity element"},
		{"no name", "<volume><capacity>1</capacity></volume>", libvirt.ErrXMLError, "XML error: missing volume name element"},
		{"a path", "<volume><name>../x</name><capacity>1</capacity></volume>", libvirt.ErrXMLError, "XML error: volume name '../x' cannot contain '/'"},
		{"no number", "<volume><name>x</name><capacity unit='MiB'>ten</capacity></volume>", libvirt.ErrXMLError, "XML error: malformed capacity element"},
		{"too large a number", "<volume><name>x</name><capacity unit='GiB'>99999999999999</capacity></volume>", libvirt.ErrXMLError, "XML error: malformed capacity element"},
		{"no room", "<volume><name>x</name><capacity unit='GiB'>1</capacity></volume>", libvirt.ErrOperationFailed, "operation failed: Not enough free space in pool for volume 'x'"},
		{"no XML", "volume", libvirt.ErrXMLDetail, "(storage_volume_definition):1: EOF"},
	} {
		_, err := l.StorageVolCreateXML(p, c.xml, 0)
		t.Log(c.name)
		wantError(t, err, c.code, c.message)
	}
	if _, err := l.StorageVolCreateXML(p, "<volume><name>sparse</name><capacity unit='GiB'>1</capacity><allocation>0</allocation></volume>", 0); err != nil {
		t.Errorf("a sparse one: %v", err)
	}
}

// An upload of any length succeeds, whatever was announced.
func TestUpload(t *testing.T) {
	h, l, p := storageHost(t)
	v, err := l.StorageVolCreateXML(p, "<volume><name>seed.iso</name><capacity>1024</capacity></volume>", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 10, 1024, 5 << 20} { // several packets
		data := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		if err := l.StorageVolUpload(v, bytes.NewReader(data), 0, 1024, 0); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		got, ok := h.Volume("default", "seed.iso")
		if !ok || got.Uploading || !bytes.Equal(got.Content[:size], data) {
			t.Errorf("%d bytes: %d kept, uploading %v", size, len(got.Content), got.Uploading)
		}
	}
	if err := l.StorageVolUpload(v, strings.NewReader("XY"), 3, 0, 0); err != nil {
		t.Fatal(err)
	}
	got, _ := h.Volume("default", "seed.iso")
	if string(got.Content[:8]) != "012XY567" || got.Capacity != 5<<20 || got.Written != 5<<20 {
		t.Errorf("content %q, capacity %d, written %d", got.Content[:8], got.Capacity, got.Written)
	}
	if err := l.StorageVolUpload(v, strings.NewReader("far"), 15<<20, 0, 0); err != nil {
		t.Fatal(err)
	}
	if got, _ := h.Volume("default", "seed.iso"); len(got.Content) != 5<<20 || got.Written != 15<<20+3 {
		t.Errorf("beyond a gap: %d kept, %d written", len(got.Content), got.Written)
	}
	err = l.StorageVolUpload(libvirt.StorageVol{Pool: "default", Name: "none"}, strings.NewReader("x"), 0, 1, 0)
	wantError(t, err, libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching name 'none'")
	if _, err := l.ConnectGetLibVersion(); err != nil {
		t.Errorf("the link after uploads: %v", err)
	}
}

func TestUpload_fullPool(t *testing.T) {
	h, l, p := storageHost(t)
	v, err := l.StorageVolCreateXML(p, "<volume><name>seed.iso</name><capacity>16</capacity></volume>", 0)
	if err != nil {
		t.Fatal(err)
	}
	h.SetPoolCapacity("default", 301<<20)
	err = l.StorageVolUpload(v, bytes.NewReader(make([]byte, 5<<20)), 0, 0, 0)
	wantError(t, err, libvirt.ErrSystemError, "cannot write to stream: No space left on device")
	if got, _ := h.Volume("default", "seed.iso"); got.Uploading {
		t.Error("a stream that has failed is still open")
	}
	if _, err := l.ConnectGetLibVersion(); err != nil {
		t.Errorf("the link after it: %v", err)
	}
}

// failing is a reader that gives some bytes and then an error.
type failing struct{ left int }

var errRead = errors.New("the disk is gone")

func (f *failing) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, errRead
	}
	n := min(f.left, len(p))
	f.left -= n
	return n, nil
}

func TestUpload_aborted(t *testing.T) {
	h, l, p := storageHost(t)
	v, err := l.StorageVolCreateXML(p, "<volume><name>seed.iso</name><capacity>16</capacity></volume>", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.StorageVolUpload(v, &failing{left: 5}, 0, 0, 0); !errors.Is(err, errRead) {
		t.Errorf("upload: %v, want the reader's error", err)
	}
	if got, _ := h.Volume("default", "seed.iso"); got.Uploading || got.Written != 5 {
		t.Errorf("uploading %v, %d written", got.Uploading, got.Written)
	}
}

// While an upload is open, the pool cannot be refreshed and the volume not be
// deleted; the end of its connection ends it.
func TestUpload_open(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h, l, p := storageHost(t)
		v, err := l.StorageVolCreateXML(p, "<volume><name>seed.iso</name><capacity>16</capacity></volume>", 0)
		if err != nil {
			t.Fatal(err)
		}
		other, conn := connectConn(t, h)
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- other.StorageVolUpload(v, r, 0, 0, 0) }()
		if _, err := w.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got, _ := h.Volume("default", "seed.iso"); !got.Uploading || string(got.Content) != "abc" {
			t.Fatalf("uploading %v, content %q", got.Uploading, got.Content)
		}
		wantError(t, l.StoragePoolRefresh(p, 0), libvirt.ErrInternalError, "internal error: pool 'default' has asynchronous jobs running.")
		wantError(t, l.StorageVolDelete(v, 0), libvirt.ErrOperationInvalid, "Requested operation is not valid: volume 'seed.iso' is still in use.")
		wantError(t, l.StorageVolUpload(v, strings.NewReader("x"), 0, 0, 0), libvirt.ErrOperationInvalid, "Requested operation is not valid: volume 'seed.iso' is still in use.")
		if err := errors.Join(conn.Close(), w.Close()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err == nil {
			t.Error("an upload without a connection succeeded")
		}
		time.Sleep(time.Second)
		if err := errors.Join(l.StoragePoolRefresh(p, 0), l.StorageVolDelete(v, 0)); err != nil {
			t.Errorf("after it: %v", err)
		}
	})
}
