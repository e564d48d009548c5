package simhost

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	libvirt "github.com/digitalocean/go-libvirt"
)

// every is a struct with every form that the codec knows.
type every struct {
	I8    int8
	I16   int16
	I32   int32
	U8    uint8
	U16   uint16
	U32   uint32
	I64   int64
	U64   uint64
	F     float64
	B     bool
	S     string
	Bytes []byte
	Fixed [5]byte
	Chars [3]int8
	List  []string
	Opt   libvirt.OptString
	None  libvirt.OptDomain
	Ptr   *uint32
	Nil   *string
	Param []libvirt.TypedParam
}

func sample() every {
	n := uint32(7)
	return every{
		I8: -2, I16: -300, I32: -70000, U8: 200, U16: 60000, U32: 4e9, I64: -5e15, U64: 1 << 63, F: 2.5, B: true,
		S: "vier", Bytes: []byte{1, 2, 3}, Fixed: [5]byte{9, 8, 7, 6, 5}, Chars: [3]int8{'a', 'b', 'c'},
		List: []string{"", "x"}, Opt: libvirt.OptString{"y"}, None: libvirt.OptDomain{}, Ptr: &n,
		Param: []libvirt.TypedParam{
			{Field: "a", Value: libvirt.TypedParamValue{D: 1, I: int32(-1)}},
			{Field: "b", Value: libvirt.TypedParamValue{D: 2, I: uint32(1)}},
			{Field: "c", Value: libvirt.TypedParamValue{D: 3, I: int64(-1)}},
			{Field: "d", Value: libvirt.TypedParamValue{D: 4, I: uint64(1)}},
			{Field: "e", Value: libvirt.TypedParamValue{D: 5, I: 0.25}},
			{Field: "f", Value: libvirt.TypedParamValue{D: 6, I: int32(1)}},
			{Field: "g", Value: libvirt.TypedParamValue{D: 7, I: "text"}},
		},
	}
}

func TestXDRRoundTrip(t *testing.T) {
	want := sample()
	data, err := marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got every
	n, err := unmarshal(data, &got)
	if err != nil || n != len(data) || !reflect.DeepEqual(got, want) {
		t.Errorf("%d of %d bytes, %v\ngot  %+v\nwant %+v", n, len(data), err, got, want)
	}
	// Cut anywhere, it is an error.
	for i := range data {
		var cut every
		if _, err := unmarshal(data[:i], &cut); !errors.Is(err, errShort) {
			t.Errorf("cut at %d: %v, want %v", i, err, errShort)
		}
	}
}

// The bytes of each form, by RFC 4506.
func TestXDRBytes(t *testing.T) {
	one := uint32(1)
	for _, c := range []struct {
		name string
		v    any
		want []byte
	}{
		{"int8", int8(-1), []byte{255, 255, 255, 255}},
		{"uint16", uint16(258), []byte{0, 0, 1, 2}},
		{"int64", int64(-2), []byte{255, 255, 255, 255, 255, 255, 255, 254}},
		{"double", 1.0, []byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0}},
		{"bool", true, []byte{0, 0, 0, 1}},
		{"string", "abcde", []byte{0, 0, 0, 5, 'a', 'b', 'c', 'd', 'e', 0, 0, 0}},
		{"opaque", []byte{1}, []byte{0, 0, 0, 1, 1, 0, 0, 0}},
		{"fixed opaque", [2]byte{1, 2}, []byte{1, 2, 0, 0}},
		{"chars", [2]int8{1, 2}, []byte{0, 0, 0, 1, 0, 0, 0, 2}},
		{"slice", []uint32{5}, []byte{0, 0, 0, 1, 0, 0, 0, 5}},
		{"present", &one, []byte{0, 0, 0, 1, 0, 0, 0, 1}},
		{"absent", (*uint32)(nil), []byte{0, 0, 0, 0}},
		{"optional text", libvirt.OptString{"a"}, []byte{0, 0, 0, 1, 0, 0, 0, 1, 'a', 0, 0, 0}},
		{"no text", libvirt.OptString(nil), []byte{0, 0, 0, 0}},
	} {
		got, err := marshal(c.v)
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: % x, %v; want % x", c.name, got, err, c.want)
		}
	}
}

func TestXDRErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func() error
		want string
	}{
		{"a map", func() error { _, err := marshal(map[string]int{}); return err }, "xdr: a map cannot be encoded"},
		{"a map inside", func() error {
			_, err := marshal(struct{ M []map[string]int }{make([]map[string]int, 1)})
			return err
		}, "xdr: a map cannot be encoded"},
		{"a wrong parameter", func() error {
			_, err := marshal(libvirt.TypedParamValue{D: 1, I: "text"})
			return err
		}, "xdr: typed parameter of kind 1 with a string"},
		{"into a map", func() error { var v map[string]int; _, err := unmarshal(nil, &v); return err }, "xdr: a map cannot be decoded"},
		{"too large for int8", func() error { var v int8; _, err := unmarshal([]byte{0, 0, 1, 0}, &v); return err }, "xdr: 256 does not fit a int8"},
		{"too large for uint8", func() error { var v uint8; _, err := unmarshal([]byte{0, 0, 1, 0}, &v); return err }, "xdr: 256 does not fit a uint8"},
		{"parameter kind", func() error {
			var v libvirt.TypedParamValue
			_, err := unmarshal([]byte{0, 0, 0, 9}, &v)
			return err
		}, "xdr: typed parameter of kind 9"},
		{"count beyond the data", func() error {
			var v []libvirt.Domain
			_, err := unmarshal([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, &v)
			return err
		}, "xdr: the data ends too early"},
		{"length beyond the data", func() error {
			var v string
			_, err := unmarshal([]byte{0xff, 0xff, 0xff, 0xff, 'a', 0, 0, 0}, &v)
			return err
		}, "xdr: the data ends too early"},
	} {
		if err := c.do(); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// FuzzXDR decodes anything into the struct of all forms: it must not panic, and
// what it accepts must come out the same when it goes round once more.
func FuzzXDR(f *testing.F) {
	data, err := marshal(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:40])
	f.Fuzz(func(t *testing.T, data []byte) {
		var v, again every
		n, err := unmarshal(data, &v)
		if n > len(data) {
			t.Fatalf("took %d of %d bytes", n, len(data))
		}
		if err != nil {
			return
		}
		out, err := marshal(v)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		if _, err := unmarshal(out, &again); err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		back, err := marshal(again)
		if err != nil || !bytes.Equal(out, back) {
			t.Fatalf("not the same: %v\n% x\n% x", err, out, back)
		}
	})
}

// FuzzCalls sends anything as the arguments of any procedure: every call is
// answered or ends its connection, and nothing panics.
func FuzzCalls(f *testing.F) {
	domain, err := marshal(struct {
		Dom   libvirt.Domain
		Words [2]uint32
	}{Dom: libvirt.Domain{Name: "d", UUID: derivedUUID("domain", "sim", "d")}})
	if err != nil {
		f.Fatal(err)
	}
	for p := range procedures() {
		f.Add(uint32(p), domain)
		f.Add(uint32(p), []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1})
	}
	f.Fuzz(func(t *testing.T, proc uint32, args []byte) {
		h := New(Options{})
		defer func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}()
		h.AddDomain(DomainSpec{Name: "d", Running: true})
		c, err := h.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }() // the host closes its end only
		for i, fr := range [][]byte{
			frame(header{prog: progRemote, vers: 1, proc: uint32(ProcConnectOpen), serial: 1}, make([]byte, 8)),
			frame(header{prog: progRemote, vers: 1, proc: proc, serial: 2}, args),
		} {
			if _, err := c.Write(fr); err != nil {
				t.Fatal(err)
			}
			for {
				head, _, err := readFrame(c)
				if err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
				if head.typ == typeReply {
					break
				}
			}
		}
	})
}
