package libvirt

import (
	"bytes"
	"encoding/binary"
	"net"
	"runtime"
	"testing"

	golibvirt "github.com/digitalocean/go-libvirt"
)

// decoded are calls whose answers go-libvirt decodes, each with the number of its
// procedure.
func decoded() []struct {
	proc uint32
	call func(*golibvirt.Libvirt) error
} {
	return []struct {
		proc uint32
		call func(*golibvirt.Libvirt) error
	}{
		{procStatistics, func(v *golibvirt.Libvirt) error { _, err := v.ConnectGetAllDomainStats(nil, 1, 0); return err }},
		{341, func(v *golibvirt.Libvirt) error {
			_, _, err := v.NetworkGetDhcpLeases(golibvirt.Network{}, nil, 1, 0)
			return err
		}},
		{353, func(v *golibvirt.Libvirt) error {
			_, err := v.DomainInterfaceAddresses(golibvirt.Domain{}, 1, 0)
			return err
		}},
		{14, func(v *golibvirt.Libvirt) error { _, err := v.DomainGetXMLDesc(golibvirt.Domain{}, 0); return err }},
		{23, func(v *golibvirt.Libvirt) error { _, err := v.DomainLookupByName("x"); return err }},
		{46, func(v *golibvirt.Libvirt) error { _, err := v.NetworkLookupByName("x"); return err }},
		{95, func(v *golibvirt.Libvirt) error {
			_, err := v.StorageVolLookupByName(golibvirt.StoragePool{}, "x")
			return err
		}},
		{98, func(v *golibvirt.Libvirt) error {
			_, _, _, err := v.StorageVolGetInfo(golibvirt.StorageVol{})
			return err
		}},
		{procAuthList, func(v *golibvirt.Libvirt) error { _, err := v.AuthList(); return err }},
		{procDownload, func(v *golibvirt.Libvirt) error {
			return v.StorageVolDownload(golibvirt.StorageVol{}, &bytes.Buffer{}, 0, 0, 0)
		}},
	}
}

// Whatever frame answers a call, go-libvirt's decoder neither panics nor allocates
// more than a little for each byte that came.
func FuzzDecoder(f *testing.F) {
	stat := bytes.Join([][]byte{words(1, 2), []byte("vm\x00\x00"), make([]byte, 16), words(3, 1, 4), []byte("name"), words(1, 9)}, nil)
	f.Add(byte(0), uint32(0), uint32(typeReply), uint32(statusOK), int8(0), stat)
	f.Add(byte(0), uint32(1), uint32(typeReply), uint32(statusOK), int8(0), append(words(30_000_000), make([]byte, 64)...))
	f.Add(byte(0), uint32(318), uint32(typeReply), uint32(statusError), int8(0), words(1, 1_000_000_000, 0, 0, 0))
	f.Add(byte(3), uint32(318), uint32(typeMessage), uint32(statusOK), int8(0), append(append(words(7, 3), 'v', 'm', '1', 0), append(make([]byte, 16), words(1, 2, 0)...)...))
	f.Add(byte(1), uint32(0), uint32(typeReply), uint32(statusOK), int8(0), words(1<<30))
	f.Add(byte(2), uint32(0), uint32(typeReply), uint32(statusOK), int8(0), words(1, 2, 0x6c6f0000, 0, 1, 0, 4, 0x312e3200, 8))
	f.Add(byte(3), uint32(0), uint32(typeReply), uint32(statusError), int8(0), daemonSays(42, "no such domain"))
	f.Add(byte(9), uint32(0), uint32(typeReply), uint32(statusOK), int8(0), []byte{})
	f.Add(byte(3), uint32(0), uint32(typeReply), uint32(statusOK), int8(1), words(0))
	calls := decoded()
	f.Fuzz(func(t *testing.T, which byte, proc, kind, status uint32, off int8, payload []byte) {
		k := calls[int(which)%len(calls)]
		opened := false
		c, err := fakeDaemon(func(c net.Conn, a asked) bool {
			if !opened || a.proc != k.proc {
				return false
			}
			b := reply(proc, kind, status, payload)
			if proc == 0 {
				binary.BigEndian.PutUint32(b[12:], k.proc)
			}
			binary.BigEndian.PutUint32(b[20:], a.serial+uint32(int32(off))) //nolint:gosec // any serial will do
			_, _ = c.Write(b)
			_ = c.Close() // no call is to wait for more
			return true
		})(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := newSession(c, 4)
		defer s.kill(errClosed)
		if err := s.open(t.Context(), "x", func(string) {}); err != nil {
			t.Fatal(err)
		}
		opened = true
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_ = k.call(s.lv) // what it says is not the point
		runtime.ReadMemStats(&after)
		if n, most := after.TotalAlloc-before.TotalAlloc, uint64(64<<10+100*len(payload)); n > most {
			t.Errorf("%d bytes allocated for a payload of %d, at most %d", n, len(payload), most)
		}
	})
}
