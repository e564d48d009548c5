package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// edit changes a store with bbolt alone.
func edit(t testing.TB, path string, change func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(change), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// setMeta writes a record of the meta bucket, and a sum that is right.
func setMeta(key, value string) func(*bolt.Tx) error {
	return func(tx *bolt.Tx) error {
		if err := tx.Bucket([]byte(bucketMeta)).Put([]byte(key), []byte(value)); err != nil {
			return err
		}
		return resum(tx)
	}
}

func resum(tx *bolt.Tx) error {
	rs, err := readAll(tx)
	if err != nil {
		return err
	}
	sum := rs.tally()
	text, err := sum.encode()
	if err != nil {
		return err
	}
	return tx.Bucket([]byte(bucketMeta)).Put([]byte(keySum), text)
}

func TestOpen_refuses(t *testing.T) {
	const anew = "started with --takeover, virdeck takes uids and passwords of managed proxies back from the hosts; " +
		"drains, the rotation and the budget are lost"
	const damaged = "Put back a copy, or move it away (mv PATH PATH.bad): " + anew
	const notOurs = "Move it away, or set fleet.state_dir to another directory; " + anew
	page := os.Getpagesize()
	overwrite := func(bucket, key, value string) func(testing.TB, string) {
		return func(t testing.TB, path string) {
			edit(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(key), []byte(value)) })
		}
	}
	meta := func(key, value string) func(testing.TB, string) {
		return func(t testing.TB, path string) { edit(t, path, setMeta(key, value)) }
	}
	for name, tt := range map[string]struct {
		spoil func(t testing.TB, path string)
		want  Reason
		text  string
	}{
		"empty": {func(t testing.TB, path string) { mustWrite(t, path, nil) }, Damaged,
			"damaged: it is empty, which a store never is; it is left as it is. " + damaged},
		"text": {func(t testing.TB, path string) { mustWrite(t, path, []byte("hello")) }, NotStore,
			"not a store of virdeck: not a bbolt file; it is left as it is. " + notOurs},
		"long text": {func(t testing.TB, path string) { mustWrite(t, path, bytes.Repeat([]byte("hello "), 1e5)) }, NotStore,
			"not a store of virdeck: not a bbolt file; it is left as it is. " + notOurs},
		"fifo": {func(t testing.TB, path string) {
			if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)); err != nil {
				t.Fatal(err)
			}
		}, NotStore, "not a store of virdeck: it is not a regular file; it is left as it is. " + notOurs},
		"directory": {func(t testing.TB, path string) {
			if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
				t.Fatal(err)
			}
		}, NotStore, "not a store of virdeck: it is a directory; it is left as it is. " + notOurs},
		"bbolt of something else": {func(t testing.TB, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			edit(t, path, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("other")); return err })
		}, NotStore, "not a store of virdeck: a bbolt file of something else; it is left as it is. " + notOurs},
		"cut to two pages": {func(t testing.TB, path string) { mustWrite(t, path, mustRead(t, path)[:2*page]) }, Damaged,
			fmt.Sprintf("damaged: 6 pages of %d bytes in a file of %d bytes; it is left as it is. ", page, 2*page) + damaged},
		"cut to a half page": {func(t testing.TB, path string) { mustWrite(t, path, mustRead(t, path)[:page/2]) }, Damaged,
			"damaged: meta page 1: EOF; it is left as it is. " + damaged},
		"newer meta page": {func(t testing.TB, path string) {
			b := mustRead(t, path)
			b[16+50] ^= 1
			mustWrite(t, path, b)
		}, Damaged, "damaged: meta page 0: wrong checksum; it is left as it is. " + damaged},
		"value": {overwrite(bucketHosts, "h", `"another"`), Damaged,
			"damaged: a record is not what was written; it is left as it is. " + damaged},
		"record too many": {overwrite(bucketHosts, "h2", `"u"`), Damaged,
			"damaged: 6 records where there should be 5; it is left as it is. " + damaged},
		"unreadable record": {func(t testing.TB, path string) {
			overwrite(bucketProxies, "p-01", `{"uid":"u","colour":"red"}`)(t, path)
			edit(t, path, resum)
		}, Damaged, `damaged: proxy p-01: json: unknown field "colour"; it is left as it is. ` + damaged},
		"no bucket": {func(t testing.TB, path string) {
			edit(t, path, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(bucketBudget)) })
		}, Damaged, "damaged: no bucket budget; it is left as it is. " + damaged},
		"strange bucket": {func(t testing.TB, path string) {
			edit(t, path, func(tx *bolt.Tx) error {
				b, err := tx.CreateBucket([]byte("strange"))
				return errors.Join(err, b.Put([]byte("k"), []byte("1")), resum(tx))
			})
		}, Damaged, "damaged: strange k: a kind of record that is not known; it is left as it is. " + damaged},
		"other fleet": {meta(keyFleet, `"lab"`), OtherFleet,
			`another fleet's: of fleet "lab", and this one is "test"; it is left as it is. ` +
				"Set fleet.name to that name, or fleet.state_dir to a directory of this fleet's own"},
		"newer schema": {meta(keySchema, "4"), NewerSchema,
			"written by a newer virdeck: schema 4, and this version knows 3; it is left as it is. " +
				"Start that version, or move it away (mv PATH PATH.newer): " + anew},
		"older schema": {meta(keySchema, "0"), OlderSchema,
			"written by an older virdeck: schema 0, and there is no way from 0 to 1; it is left as it is. " +
				"Start a version between that one and this, or move it away (mv PATH PATH.old): " + anew},
	} {
		t.Run(name, func(t *testing.T) {
			path := at(t)
			f := mustOpen(t, path)
			mustApply(t, f, PinHost("h", "u"))
			mustClose(t, f)
			tt.spoil(t, path)
			before := fingerprint(t, path)

			_, err := Open(path, "test", Options{})
			refused := ErrRefused{}
			if !errors.As(err, &refused) || refused.Reason != tt.want {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			wantError(t, err, "store "+path+": "+strings.ReplaceAll(tt.text, "PATH", path))
			if after := fingerprint(t, path); after != before {
				t.Errorf("the file was changed: %s, then %s", before, after)
			}
			// The way out leads out.
			if err := os.Rename(path, path+".bad"); err != nil {
				t.Fatal(err)
			}
			if s := mustLoad(t, mustOpen(t, path)); len(s.Hosts) != 0 {
				t.Errorf("hosts %v", s.Hosts)
			}
		})
	}
}

// fingerprint is all of a file that must stay: bytes, mode, and time of change.
func fingerprint(t testing.TB, path string) string {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	var sum [sha256.Size]byte
	if fi.Mode().IsRegular() {
		sum = sha256.Sum256(mustRead(t, path))
	}
	return fmt.Sprintf("%x %v %v %d", sum, fi.Mode(), fi.ModTime(), fi.Size())
}

func TestOpen_noFleet(t *testing.T) {
	_, err := Open("/nowhere/x", "", Options{})
	wantError(t, err, "store /nowhere/x: no name of a fleet")
}

func TestOpen_controllerID(t *testing.T) {
	path := at(t)
	_, err := Open(path, "test", Options{Rand: strings.NewReader("short")})
	wantError(t, err, "store "+path+": make it: controller id: unexpected EOF")
	f, err := Open(path, "test", Options{Rand: strings.NewReader("0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, f) })
	if id := mustLoad(t, f).Controller; id != "30313233-3435-4637-b839-616263646566" {
		t.Errorf("id %s", id)
	}
}

func TestOpen_remainsOfACrash(t *testing.T) {
	path := at(t)
	mustWrite(t, path+".new", []byte("half a store"))
	mustOpen(t, path)
	if _, err := os.Stat(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestOpen_modes(t *testing.T) {
	path := at(t)
	dir := filepath.Dir(path)
	f := mustOpen(t, path)
	for _, name := range []string{path, path + ".lock"} {
		if fi, err := os.Stat(name); err != nil || fi.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
	}
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v, %v", dir, fi, err)
	}
	if n := f.Notices(); len(n) != 0 {
		t.Errorf("notices %q", n)
	}
	mustClose(t, f)

	if err := errors.Join(os.Chmod(path, 0o644), os.Chmod(path+".lock", 0o666), os.Chmod(dir, 0o775)); err != nil {
		t.Fatal(err)
	}
	f = mustOpen(t, path)
	want := []string{"directory " + dir + ": others could write in it (mode 0775); made 0755",
		path + ": others could read it (mode 0644); made 0600"}
	if got := f.Notices(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("notices %q", got)
	}
	for name, mode := range map[string]fs.FileMode{path: 0o600, path + ".lock": 0o600, dir: 0o755} {
		if fi, err := os.Stat(name); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("%s: mode %04o, want %04o", name, fi.Mode().Perm(), mode)
		}
	}
	mustClose(t, f)

	if err := os.Chmod(dir, fs.ModeSticky|0o777); err != nil { // like /tmp: left alone
		t.Fatal(err)
	}
	if n := mustOpen(t, path).Notices(); len(n) != 0 {
		t.Errorf("notices %q", n)
	}
}

// unprivileged runs a test on a thread of its own that has no more rights over
// files than a user without any, even where the tests run as root.
func unprivileged(t *testing.T, do func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if os.Geteuid() == 0 {
			const nobody = 65534
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0) // tells the old one, not an error
		}
		do()
	}()
	<-ended
}

func TestOpen_permissionDenied(t *testing.T) {
	path := at(t)
	mustClose(t, mustOpen(t, path))
	dir := filepath.Dir(path)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(path+".lock", 0o400); err != nil {
		t.Fatal(err)
	}
	unprivileged(t, func() {
		_, err := Open(path, "test", Options{})
		if !errors.Is(err, fs.ErrPermission) || !strings.HasPrefix(err.Error(), "store "+path+": ") ||
			!strings.HasSuffix(err.Error(), ": permission denied") || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v", err)
		}
	})
}

func TestOpen_readOnlyFileSystem(t *testing.T) {
	path := at(t)
	mustClose(t, mustOpen(t, path))
	dir := filepath.Dir(path)
	before := fingerprint(t, path)
	var skip error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // never unlocked: the mount is seen by this thread alone
		if skip = unix.Unshare(unix.CLONE_NEWNS); skip != nil {
			return
		}
		if skip = errors.Join(unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""), unix.Mount(dir, dir, "", unix.MS_BIND, ""),
			unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")); skip != nil {
			return
		}
		_, err := Open(path, "test", Options{})
		wantError(t, err, "store "+path+": open "+path+".lock: read-only file system")
	}()
	<-ended
	if skip != nil {
		t.Skipf("a file system cannot be mounted here: %v", skip)
	}
	if after := fingerprint(t, path); after != before {
		t.Error("the file was changed")
	}
}

func TestOpen_directoryIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file", "virdeck.db")
	mustWrite(t, filepath.Dir(path), nil)
	_, err := Open(path, "test", Options{})
	wantError(t, err, "store "+path+": directory: "+filepath.Dir(path)+": not a directory")
}
