package libvirt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

func TestUpload(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	failing := errors.New("the disk is gone")
	tests := []struct {
		name   string
		volume string
		r      io.Reader
		size   int64
		fault  *simhost.Fault
		want   string // in the error
		is     error
	}{
		{name: "whole", volume: "v", r: bytes.NewReader(data), size: int64(len(data))},
		{name: "short", volume: "v", r: bytes.NewReader(data[:100]), size: 200, want: "100 bytes were there to send, 200 were announced"},
		{name: "long", volume: "v", r: bytes.NewReader(data[:100]), size: 50, want: "were announced"},
		{name: "no such volume", volume: "w", r: strings.NewReader("x"), size: 1, want: "host beelink: upload to volume default/w: code 50: "},
		{name: "the reader fails", volume: "v", r: io.MultiReader(bytes.NewReader(data[:100]), failingReader{failing}), size: int64(len(data)), is: failing},
		{name: "the connection is cut", volume: "v", r: bytes.NewReader(data), size: int64(len(data)),
			fault: &simhost.Fault{Proc: simhost.ProcStorageVolUpload, Kind: simhost.FaultCutBefore}, is: provider.ErrLinkDown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, simhost.Options{}, nil)
				r.nat("p-01")
				r.sim.AddVolume("default", simhost.VolumeSpec{Name: "v", Capacity: 1 << 20})
				if tt.fault != nil {
					r.sim.Inject(*tt.fault)
				}
				var told int64
				err := r.Upload(t.Context(), "default", tt.volume, tt.r, tt.size, func(n int64) { told = n })
				switch {
				case tt.want == "" && tt.is == nil:
					if err != nil {
						t.Fatal(err)
					}
					if told != tt.size {
						t.Errorf("told of %d bytes, want %d", told, tt.size)
					}
				case err == nil || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is):
					t.Errorf("%v, want %q, %v", err, tt.want, tt.is)
				}
				// The pooled link knows nothing of it.
				if _, err := r.get(t, "p-01"); err != nil {
					t.Errorf("a neighbour: %v", err)
				}
				if g := r.Link().Generation; g != 1 {
					t.Errorf("generation %d, want 1", g)
				}
			})
		})
	}
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// A caller that leaves ends its upload and nothing else, however slow the reader.
func TestUpload_cancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.sim.AddVolume("default", simhost.VolumeSpec{Name: "v", Capacity: 1 << 20})
		if _, err := r.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		pr, pw := io.Pipe()
		defer func() { _ = pw.Close() }()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Upload(ctx, "default", "v", pr, 1<<20, nil) }()
		if _, err := pw.Write([]byte("some")); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's own error", err)
		}
		if n := r.Link().Generation; n != 1 {
			t.Errorf("generation %d", n)
		}
	})
}

// A daemon that is frozen under a transfer ends it, though nobody else does.
func TestTransfer_stalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.sim.AddVolume("default", simhost.VolumeSpec{Name: "v", Capacity: 1 << 20})
		for what, f := range map[string]func() error{
			"upload to volume default/v: nothing could be sent for 1m0s": func() error {
				return r.Upload(t.Context(), "default", "v", strings.NewReader("x"), 1, nil)
			},
			"read back volume default/v: nothing came for 1m0s": func() error {
				return r.download(t.Context(), "default", "v", 10, newCollector(false))
			},
		} {
			remove := r.sim.Inject(simhost.Fault{Proc: simhost.ProcStorageVolLookupByName, Kind: simhost.FaultHang})
			start := time.Now()
			err := f()
			if !strings.HasSuffix(errText(err), what) || provider.Classify(err) != provider.ClassTransient {
				t.Errorf("%v, want %s", err, what)
			}
			if took := time.Since(start); took > 61*time.Second {
				t.Errorf("after %s", took)
			}
			remove()
		}
	})
}

// However many transfers are asked for, four connections carry them; the rest wait
// for as long as they like, and leave when they like.
func TestTransfer_bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.sim.AddVolume("default", simhost.VolumeSpec{Name: "v", Capacity: 1 << 20})
		if _, err := r.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		remove := r.sim.Inject(simhost.Fault{Proc: simhost.ProcStorageVolDownload, Kind: simhost.FaultHang})
		errs := make(chan error)
		for range 10 {
			go func() { errs <- r.download(t.Context(), "default", "v", 10, newCollector(false)) }()
		}
		time.Sleep(10 * time.Second)
		if n := r.sim.Conns(); n != 1+maxApart {
			t.Errorf("%d connections, want the link's and %d", n, maxApart)
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if err := r.download(ctx, "default", "v", 10, newCollector(false)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one that waits and leaves: %v", err)
		}
		remove()
		for range 10 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// A transfer obeys its caller while it is being dialled, and Close in every phase.
func TestTransfer_obeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.sim.AddVolume("default", simhost.VolumeSpec{Name: "v", Capacity: 1 << 20})
		if _, err := r.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		upload := func(ctx context.Context) error {
			return r.Upload(ctx, "default", "v", strings.NewReader("x"), 1, nil)
		}
		r.sim.Freeze()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := upload(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, provider.ErrLinkDown) || time.Since(start) != 100*time.Millisecond {
			t.Errorf("while it is dialled: %v after %s, want the caller's own 100ms", err, time.Since(start))
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		start = time.Now()
		if err := upload(gone); !errors.Is(err, context.Canceled) || time.Since(start) != 0 {
			t.Errorf("a caller who has left: %v after %s", err, time.Since(start))
		}
		start = time.Now()
		err := upload(t.Context())
		if want := "host beelink: upload to volume default/v: link down: connected, but the daemon does not answer"; errText(err) != want || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %s, want %s", err, time.Since(start), want)
		}
		r.sim.Thaw()
		time.Sleep(10 * time.Second)
		defer r.sim.Inject(simhost.Fault{Proc: simhost.ProcStoragePoolLookupByName, Kind: simhost.FaultHang})()
		errs := make(chan error)
		for range maxApart + 1 { // one waits for its turn
			go func() { errs <- upload(context.Background()) }()
		}
		time.Sleep(time.Second)
		r.Close()
		for range maxApart + 1 {
			if err := <-errs; errText(err) != "host beelink: upload to volume default/v: link down: closed by virdeck" {
				t.Errorf("at the end of the link: %v", err)
			}
		}
	})
}
