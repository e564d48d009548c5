package libvirt

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"

	"virdeck/provider/libvirt/simhost"
)

// libvirt's daemon sends the data of a download from another thread than the
// answer to its call, so either may come first, and all of the data before the
// answer.
func TestDownload_overtakesItsAnswer(t *testing.T) {
	const size = 600000 // three packets, and the empty one
	for frames := range 5 {
		t.Run(fmt.Sprint(frames), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, simhost.Options{}, nil)
				r.sim.AddVolume("default", simhost.VolumeSpec{Name: "v", Capacity: 1 << 20})
				want := bytes.Repeat([]byte("0123456789"), size/10)
				if err := r.Upload(t.Context(), "default", "v", bytes.NewReader(want), size, nil); err != nil {
					t.Fatal(err)
				}
				r.sim.Inject(simhost.Fault{Proc: simhost.ProcStorageVolDownload, Kind: simhost.FaultOvertaken, Frames: frames})
				for range 20 {
					got := newCollector(true)
					if err := r.download(t.Context(), "default", "v", size, got); err != nil || !bytes.Equal(got.data, want) {
						t.Fatalf("%d bytes came, %v", len(got.data), err)
					}
				}
			})
		})
	}
}
