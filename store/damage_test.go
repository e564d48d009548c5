package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"virdeck/model"
)

// specimen is a store with all that a file can have: branch pages, overflow
// pages, inline buckets, free pages, large and small records.
var specimen = sync.OnceValues(func() ([]byte, error) {
	var file []byte
	var failed error
	report := func(err error) { failed = errors.Join(failed, err) }
	dir := tempDir(report)
	defer dir.remove()
	f, err := Open(dir.path("virdeck.db"), "test", Options{})
	if err != nil {
		return nil, err
	}
	ctx := noContext()
	var all []Change
	for i := range 120 {
		p := Proxy{Name: model.ProxyName(fmt.Sprintf("p-%03d", i)), UID: "u", Host: "beelink", Creds: model.Credentials{User: "u", Password: "secret"}}
		if i%40 == 7 {
			p.Domain = strings.Repeat("x", 9000)
		}
		all = append(all, PutProxy(p))
	}
	report(f.Apply(ctx, all...))
	report(f.Apply(ctx, PinHost("beelink", "uuid"), PutAdopted(Adopted{Name: "a", Labels: map[string]string{"dc": "a"}})))
	for i := range 30 {
		report(f.Apply(ctx, DeleteProxy(model.ProxyName(fmt.Sprintf("p-%03d", 60+i)))))
	}
	report(f.Close())
	file, err = dir.read("virdeck.db")
	report(err)
	return file, failed
})

func load(file []byte) (State, error) {
	rs, err := inspect(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return State{}, err
	}
	return rs.state()
}

func diffStates(a, b State) string {
	return cmp.Diff(a, b, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b model.Credentials) bool { return a == b }))
}

func mustSpecimen(t testing.TB) ([]byte, State) {
	t.Helper()
	file, err := specimen()
	if err != nil {
		t.Fatal(err)
	}
	s, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Proxies) != 90 || len(s.Hosts) != 1 || len(s.Adopted) != 1 {
		t.Fatalf("%d proxies", len(s.Proxies))
	}
	return file, s
}

// judgeDamage holds what is read from a damaged file to the promise: all of it,
// or an error.
func judgeDamage(t *testing.T, file []byte, want State, what string) (accepted bool) {
	t.Helper()
	got, err := load(file)
	if err != nil {
		return false
	}
	if reflect.DeepEqual(want, got) {
		return true // cmp is thorough and slow
	}
	if d := diffStates(want, got); d != "" {
		t.Errorf("%s: loads, with other contents:\n%s", what, d)
	}
	return true
}

// Bytes of the whole file are spoilt in turn: each of them with VIRDECK_SOAK=1.
func TestInspect_everyByte(t *testing.T) {
	file, want := mustSpecimen(t)
	accepted, random := 0, rand.New(rand.NewPCG(1, 2))
	step := 83
	if soak() {
		step = 1
	}
	n := 0
	for i := 0; i < len(file); i += step {
		b := file[i]
		file[i] ^= byte(1 + random.IntN(255))
		if judgeDamage(t, file, want, fmt.Sprintf("byte %d: %02x for %02x", i, file[i], b)) {
			accepted++
		}
		file[i] = b
		n++
	}
	t.Logf("%d bytes of %d spoilt: %d refused, %d hit nothing in use", n, len(file), n-accepted, accepted)
	if accepted == 0 || accepted > n*3/4 {
		t.Errorf("%d of %d accepted: the check checks nothing", accepted, n)
	}
}

// The bits of each page header, of the elements behind it, and of the meta pages.
func TestInspect_everyBitOfTheStructure(t *testing.T) {
	file, want := mustSpecimen(t)
	page := os.Getpagesize()
	for at := 0; at < len(file); at += page {
		for bit := range 8 * 96 {
			if !soak() && (bit+at/page)%13 != 0 {
				continue
			}
			file[at+bit/8] ^= 1 << (bit % 8)
			judgeDamage(t, file, want, fmt.Sprintf("page %d, bit %d", at/page, bit))
			file[at+bit/8] ^= 1 << (bit % 8)
		}
	}
}

func TestInspect_everyLength(t *testing.T) {
	file, want := mustSpecimen(t)
	for n := 0; n < len(file); n += 509 {
		judgeDamage(t, file[:n], want, fmt.Sprintf("cut to %d bytes", n))
	}
	if !judgeDamage(t, append(bytes.Clone(file), make([]byte, 5000)...), want, "with more at its end") {
		t.Error("a file that has grown in vain is refused")
	}
}

type failingReader struct {
	io.ReaderAt
	from int64
}

func (r failingReader) ReadAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) > r.from {
		return 0, errors.New("input/output error")
	}
	return r.ReaderAt.ReadAt(b, off)
}

func TestInspect_diskCannotBeRead(t *testing.T) {
	file, _ := mustSpecimen(t)
	page := int64(os.Getpagesize())
	for from, want := range map[int64]string{
		0:        "read: input/output error",
		100:      "meta page 1: input/output error",
		2 * page: "free list: page 16: input/output error",
	} {
		if _, err := inspect(failingReader{bytes.NewReader(file), from}, int64(len(file))); err == nil || err.Error() != want {
			t.Errorf("from %d: %v, want %s", from, err, want)
		}
	}
}

// What inspect accepts bbolt accepts too, by its own Check, and can write to.
func TestInspect_agreesWithBbolt(t *testing.T) {
	file, want := mustSpecimen(t)
	path := at(t)
	random := rand.New(rand.NewPCG(3, 4))
	checked := 0
	for checked < 10 {
		spoilt := bytes.Clone(file)
		i := random.IntN(len(file))
		spoilt[i] ^= byte(1 + random.IntN(255))
		if !judgeDamage(t, spoilt, want, fmt.Sprintf("byte %d", i)) {
			continue
		}
		checked++
		mustWrite(t, path, spoilt)
		f := mustOpen(t, path)
		for k := range 40 {
			mustApply(t, f, DeleteProxy(model.ProxyName(fmt.Sprintf("p-%03d", k))), PutProxy(Proxy{Name: model.ProxyName(fmt.Sprintf("n-%03d", k))}))
		}
		err := f.db.View(func(tx *bolt.Tx) error {
			var all []error
			for err := range tx.Check() {
				all = append(all, err)
			}
			return errors.Join(all...)
		})
		if err != nil {
			t.Errorf("byte %d: %v", i, err)
		}
		mustLoad(t, f)
		mustClose(t, f)
		mustClose(t, mustOpen(t, path))
	}
}

func FuzzOpen_damaged(f *testing.F) {
	file, want := mustSpecimen(f)
	f.Add(uint32(len(file)), []byte{0, 0, 0, 1})
	f.Add(uint32(8000), []byte{0, 0x40, 0x20, 0xff, 0, 0x20, 0x10, 7})
	f.Fuzz(func(t *testing.T, length uint32, edits []byte) {
		spoilt := bytes.Clone(file)
		for len(edits) >= 4 { // three bytes of offset, one of value
			at := (int(edits[0])<<16 | int(edits[1])<<8 | int(edits[2])) % len(spoilt)
			spoilt[at], edits = edits[3], edits[4:]
		}
		spoilt = spoilt[:min(int(length), len(spoilt))]
		path := at(t)
		mustWrite(t, path, spoilt)
		s, err := openAndLoad(t, path)
		if err != nil {
			if !errors.As(err, new(ErrRefused)) {
				t.Errorf("error %v", err)
			}
			if !bytes.Equal(mustRead(t, path), spoilt) {
				t.Error("refused, and changed")
			}
			return
		}
		if d := diffStates(want, s); d != "" {
			t.Errorf("loads, with other contents:\n%s", d)
		}
	})
}

func openAndLoad(t *testing.T, path string) (State, error) {
	f, err := Open(path, "test", Options{})
	if err != nil {
		return State{}, err
	}
	defer mustClose(t, f)
	return f.Load(t.Context())
}
