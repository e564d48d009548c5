package simhost

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	libvirt "github.com/digitalocean/go-libvirt"
)

// A download brings the file from end to end, what was never written as zeros.
func TestDownload(t *testing.T) {
	h, l, p := storageHost(t)
	v, err := l.StorageVolCreateXML(p, "<volume><name>v</name><capacity>600000</capacity><allocation>0</allocation></volume>", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 600000)
	copy(want, bytes.Repeat([]byte("0123456789"), 30000))
	if err := l.StorageVolUpload(v, bytes.NewReader(want[:300000]), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ at, n, from, to uint64 }{{0, 0, 0, 600000}, {0, 10, 0, 10}, {299990, 100, 299990, 300090}, {599999, 9, 599999, 600000}, {700000, 0, 600000, 600000}} {
		var got bytes.Buffer
		if err := l.StorageVolDownload(v, &got, c.at, c.n, 0); err != nil || !bytes.Equal(got.Bytes(), want[c.from:c.to]) {
			t.Errorf("%d bytes from %d: %d came, %v", c.n, c.at, got.Len(), err)
		}
	}
	var got bytes.Buffer
	err = l.StorageVolDownload(libvirt.StorageVol{Pool: "default", Name: "none"}, &got, 0, 0, 0)
	wantError(t, err, libvirt.ErrNoStorageVol, "Storage volume not found: no storage vol with matching name 'none'")

	h.Inject(Fault{Proc: ProcStorageVolDownload, Kind: FaultCutStream})
	got.Reset()
	if err := l.StorageVolDownload(v, &got, 0, 0, 0); !errors.Is(err, libvirt.ErrInterrupted) || got.Len() >= len(want) {
		t.Errorf("cut: %d bytes, %v", got.Len(), err)
	}
}

// An upload that is cut leaves half a packet in the volume, and the volume free.
func TestUpload_cut(t *testing.T) {
	h, l, _ := storageHost(t)
	h.AddVolume("default", VolumeSpec{Name: "v", Capacity: 1000})
	h.Inject(Fault{Kind: FaultCutStream, Times: 1})
	v := libvirt.StorageVol{Pool: "default", Name: "v"}
	if err := l.StorageVolUpload(v, bytes.NewReader(make([]byte, 1000)), 0, 0, 0); err == nil {
		t.Error("no error")
	}
	if err := connect(t, h).StorageVolUpload(v, bytes.NewReader([]byte("again")), 0, 0, 0); err != nil {
		t.Errorf("the next one: %v", err)
	}
	if got, _ := h.Volume("default", "v"); got.Written != 500 || got.Uploading {
		t.Errorf("written up to %d, uploading %v", got.Written, got.Uploading)
	}
}

func TestFault_after(t *testing.T) {
	h := newHost(t, Options{})
	l := connect(t, h)
	h.Inject(Fault{Proc: ProcConnectGetLibVersion, After: 2, Times: 1, Error: Error{Code: libvirt.ErrInternalError, Message: "now"}})
	var failed []int
	for i := range 5 {
		if _, err := l.ConnectGetLibVersion(); err != nil {
			failed = append(failed, i)
		}
	}
	if !slices.Equal(failed, []int{2}) {
		t.Errorf("calls %v failed, want the third", failed)
	}
}

// What a daemon lets clients do to a running guest's volumes is recorded.
func TestViolations(t *testing.T) {
	h, l, p := storageHost(t)
	v, err := l.StorageVolCreateXML(p, overlay("p-01.qcow2", images+"base.qcow2"), 0)
	if err != nil {
		t.Fatal(err)
	}
	dom, err := l.DomainDefineXML(defined("p-01", definedUUID, ""))
	if err != nil {
		t.Fatal(err)
	}
	base := libvirt.StorageVol{Pool: "default", Name: "base.qcow2"}
	write := func(s string) {
		if err := l.StorageVolUpload(base, bytes.NewReader([]byte(s)), 0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	write("QFI\xfbone")
	if err := l.DomainCreate(dom); err != nil {
		t.Fatal(err)
	}
	write("QFI\xfbone") // the same again
	if got := h.Violations(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	write("QFI\xfbtwo")
	if err := l.StorageVolDelete(v, 0); err != nil {
		t.Fatal(err)
	}
	want := []string{"volume base.qcow2 was changed under the running domain p-01", "volume p-01.qcow2 was deleted under the running domain p-01"}
	if got := h.Violations(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a start needs beside the disks, and what an overlay needs beneath it.
func TestStart_refused(t *testing.T) {
	h, l, p := storageHost(t)
	if _, err := l.StorageVolCreateXML(p, overlay("p-01.qcow2", images+"base.qcow2"), 0); err != nil {
		t.Fatal(err)
	}
	dom, err := l.DomainDefineXML(defined("p-01", definedUUID, ""))
	if err != nil {
		t.Fatal(err)
	}
	h.UndefineNetwork("default")
	wantError(t, l.DomainCreate(dom), libvirt.ErrNoNetwork, "Network not found: no network with matching name 'default'")
	h.AddNetwork(DefaultNetwork())
	if err := l.StorageVolUpload(libvirt.StorageVol{Pool: "default", Name: "base.qcow2"}, bytes.NewReader([]byte("no image")), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	wantError(t, l.DomainCreate(dom), libvirt.ErrInternalError,
		"internal error: process exited while connecting to monitor: Could not open '"+images+"base.qcow2': Image is not in qcow2 format")
	_, err = l.StorageVolCreateXML(p, overlay("p-02.qcow2", images+"base.qcow2"), 0)
	wantError(t, err, libvirt.ErrInternalError, "internal error: Child process (/usr/bin/qemu-img create) unexpected exit status 1: "+
		"qemu-img: "+images+"p-02.qcow2: Image is not in qcow2 format\nCould not open backing image.")
}

// A domain whose firmware keeps variables goes only with them.
func TestUndefine_nvram(t *testing.T) {
	h := newHost(t, Options{})
	h.AddVolume("default", VolumeSpec{Name: "p-01.qcow2"})
	l := connect(t, h)
	text := defined("p-01", definedUUID, "")
	dom, err := l.DomainDefineXML(text[:len("<domain type='kvm'>")] + "<os firmware='efi'/>" + text[len("<domain type='kvm'>"):])
	if err != nil {
		t.Fatal(err)
	}
	if err := l.DomainCreate(dom); err != nil {
		t.Fatal(err)
	}
	if err := l.DomainDestroy(dom); err != nil {
		t.Fatal(err)
	}
	wantError(t, l.DomainUndefine(dom), libvirt.ErrOperationInvalid, "Requested operation is not valid: cannot undefine domain with nvram")
	if err := l.DomainUndefineFlags(dom, libvirt.DomainUndefineNvram); err != nil || len(h.Domains()) != 0 {
		t.Errorf("%v, %d domains", err, len(h.Domains()))
	}
}
