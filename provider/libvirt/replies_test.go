package libvirt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// reply builds a frame of the remote program.
func reply(proc, kind, status uint32, payload []byte) []byte {
	b := make([]byte, 0, frameHeader+len(payload))
	for _, w := range []uint32{uint32(frameHeader + len(payload)), remoteProgram, 1, proc, kind, 7, status} {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return append(b, payload...)
}

// header is that of a frame without a payload.
func header(kind, proc, serial uint32) []byte {
	return words(frameHeader, remoteProgram, 1, proc, kind, serial, 0)
}

func words(ws ...uint32) []byte {
	var b []byte
	for _, w := range ws {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

func TestInspect(t *testing.T) {
	tests := []struct {
		name  string
		frame []byte
		pass  bool
		err   string
	}{
		{"no domains", reply(344, typeReply, statusOK, words(0)), true, ""},
		{"a billion domains in four bytes", reply(344, typeReply, statusOK, words(1<<30)), false,
			"the answer to procedure 344 is garbled: it announces more than it holds"},
		{"a text longer than the frame", reply(14, typeReply, statusOK, append(words(1000), "<domain/>"...)), false,
			"the answer to procedure 14 is garbled: it announces more than it holds"},
		{"a text, padded", reply(14, typeReply, statusOK, append(words(9), "<domain/>\x00\x00\x00"...)), true, ""},
		{"an unknown kind of parameter", reply(344, typeReply, statusOK, bytes.Join([][]byte{words(1, 0), make([]byte, 16), words(1, 1, 0, 99)}, nil)), false,
			"the answer to procedure 344 is garbled: it announces more than it holds"},
		{"nothing expected, nothing there", reply(1, typeReply, statusOK, nil), true, ""},
		{"an error", reply(14, typeReply, statusError, append(words(42, 10, 1, 2), append([]byte("no\x00\x00"), words(2)...)...)), true, ""},
		{"an error that announces too much", reply(14, typeReply, statusError, words(42, 10, 1, 1<<31)), false,
			"the answer to procedure 14 is garbled: it announces more than it holds"},
		{"an event that nobody asked for", reply(319, typeMessage, statusOK, words(1<<31)), false, ""},
		{"a garbled event", reply(318, typeMessage, statusOK, words(1, 1<<31)), false,
			"the answer to procedure 318 is garbled: it announces more than it holds"},
		{"a reply to a call never made", reply(5, typeReply, statusOK, nil), false,
			"a frame of type 1 and status 0 for procedure 5, which was never asked for"},
		{"another program", frame(0x20008087, 1, nil), false, "a frame of program 0x20008087, which was never asked for"},
	}
	for _, tt := range tests {
		var o outstanding // one that waits for just this answer
		o.sent(header(typeCall, binary.BigEndian.Uint32(tt.frame[12:]), 7))
		v, err := o.inspect(tt.frame)
		if v != drop != tt.pass || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %v, %v; want %v, %q", tt.name, v, err, tt.pass, tt.err)
		}
	}
}

// Every answer of a host may be noise: the generation ends, its callers learn
// nothing, and neither the process nor its memory notices.
func TestHost_garbageAnswers(t *testing.T) {
	for _, proc := range []simhost.Proc{
		simhost.ProcConnectGetAllDomainStats, simhost.ProcDomainGetXMLDesc, simhost.ProcDomainInterfaceAddresses,
		simhost.ProcNetworkGetDhcpLeases, simhost.ProcNetworkGetXMLDesc, simhost.ProcNetworkLookupByName,
	} {
		t.Run(fmt.Sprint(proc), func(t *testing.T) {
			for seed := range uint64(8) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, simhost.Options{Seed: seed}, nil)
					r.nat("p-01")
					r.sim.Inject(simhost.Fault{Proc: proc, Kind: simhost.FaultGarbage, Times: 1})
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					_, err := r.get(t, "p-01")
					runtime.ReadMemStats(&after)
					if !errors.Is(err, provider.ErrTransient) {
						t.Errorf("%v, want transient", err)
					}
					if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
						t.Errorf("%d bytes allocated for an answer of some dozens", n)
					}
					time.Sleep(time.Second)
					if _, err := r.get(t, "p-01"); err != nil {
						t.Errorf("after the redial: %v", err)
					}
				})
			}
		})
	}
}

// Whatever comes, nothing is announced beyond the frame, and nothing panics.
func FuzzInspect(f *testing.F) {
	f.Add(uint32(344), uint32(1), uint32(0), words(1, 3, 0x61626300))
	f.Add(uint32(353), uint32(1), uint32(0), words(1<<31))
	f.Add(uint32(1), uint32(1), uint32(1), words(1, 2, 3, 4))
	f.Fuzz(func(_ *testing.T, proc, kind, status uint32, payload []byte) {
		var o outstanding
		o.sent(header(typeCall, proc, 7))
		_, _ = o.inspect(reply(proc, kind, status, payload)) // a verdict either way
	})
}

// Closing meets a dial at every moment of it, and returns.
func TestLink_closeDuringDial(t *testing.T) {
	sim, path := simSocket(t)
	_ = sim
	e := Endpoint{Transport: TransportUnix, Sockets: []string{path}}
	for range 200 {
		l := NewLink(LinkOptions{Host: "h", Dial: e.Dialer()})
		end := time.Now().Add(time.Duration(rand.IntN(800)) * time.Microsecond)
		for time.Now().Before(end) {
			runtime.Gosched()
		}
		done := make(chan struct{})
		go func() {
			l.Close()
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("Close does not return: %+v", l.Status())
		}
	}
}
