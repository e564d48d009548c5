package store

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// oldStore makes a file of a schema 0 that never was: its proxies say "address"
// for "ip", and it has no budgets.
func oldStore(t *testing.T, path string) {
	t.Helper()
	f := mustOpen(t, path)
	mustApply(t, f, PutProxy(Proxy{Name: "p-01", UID: "u1"}), PutProxy(Proxy{Name: "p-02", UID: "u2"}), PinHost("h", "uuid"))
	mustClose(t, f)
	edit(t, path, func(tx *bolt.Tx) error {
		return errors.Join(tx.DeleteBucket([]byte(bucketBudget)), rename(tx, "ip", "address"), setMeta(keySchema, "0")(tx))
	})
}

func rename(tx *bolt.Tx, from, to string) error {
	b := tx.Bucket([]byte(bucketProxies))
	for name, value := range map[string]string{"p-01": "192.0.2.1", "p-02": "192.0.2.2"} {
		var fields map[string]any
		if err := json.Unmarshal(b.Get([]byte(name)), &fields); err != nil {
			return err
		}
		delete(fields, from)
		fields[to] = value
		text, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		if err := b.Put([]byte(name), text); err != nil {
			return err
		}
	}
	return nil
}

func TestOpen_migrates(t *testing.T) {
	path := at(t)
	oldStore(t, path)
	mustWrite(t, path+".schema0", []byte("an earlier copy"))
	before := mustRead(t, path)
	sc := schema{version: 1, steps: map[int]func(*bolt.Tx) error{0: func(tx *bolt.Tx) error { return rename(tx, "address", "ip") }}}
	f, err := open(path, "test", Options{}, sc)
	if err != nil {
		t.Fatal(err)
	}
	want := path + ": changed from schema 0 to 1; a copy is beside it"
	if n := f.Notices(); len(n) != 1 || n[0] != want {
		t.Errorf("notices %q", n)
	}
	s := mustLoad(t, f)
	if s.Schema != 1 || s.Proxies["p-02"].IP.String() != "192.0.2.2" || s.Proxies["p-02"].UID != "u2" || s.Hosts["h"] != "uuid" {
		t.Errorf("state %+v", s)
	}
	mustApply(t, f, PutBudget("host/h", []time.Time{time.Unix(1, 0)}))
	mustClose(t, f)
	if string(mustRead(t, path+".schema0.2")) != string(before) {
		t.Error("the copy is not what was there before")
	}
	if string(mustRead(t, path+".schema0")) != "an earlier copy" {
		t.Error("an earlier copy was written over")
	}
	if fi, err := os.Stat(path + ".schema0.2"); err != nil || fi.Mode() != 0o600 {
		t.Errorf("the copy: %v, %v", fi.Mode(), err)
	}
	mustClose(t, mustOpen(t, path)) // and is of this schema from now on
}

// A migration that fails, or whose result nobody can read, leaves the old store.
func TestOpen_migrationFails(t *testing.T) {
	for want, step := range map[string]func(*bolt.Tx) error{
		"no such thing": func(*bolt.Tx) error { return errors.New("no such thing") },
		`proxy p-01: json: unknown field "colour"`: func(tx *bolt.Tx) error { return rename(tx, "address", "colour") },
		"fault: half way": func(tx *bolt.Tx) error {
			if err := rename(tx, "address", "ip"); err != nil {
				return err
			}
			panic("half way")
		},
	} {
		t.Run(want, func(t *testing.T) {
			path := at(t)
			oldStore(t, path)
			before := mustRead(t, path)
			steps := map[int]func(*bolt.Tx) error{0: func(tx *bolt.Tx) error {
				// One proxy alone, so that the message is always the same.
				if err := tx.Bucket([]byte(bucketProxies)).Put([]byte("p-02"), []byte(`{"wish":"present","backing":"managed"}`)); err != nil {
					return err
				}
				if err := step(tx); err != nil {
					return err
				}
				return tx.Bucket([]byte(bucketProxies)).Delete([]byte("p-02"))
			}}
			_, err := open(path, "test", Options{}, schema{version: 1, steps: steps})
			wantError(t, err, "store "+path+": change schema 0 to 1: "+want)
			if string(mustRead(t, path)) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

// A store of an earlier schema goes on as it is.
func TestOpen_earlierSchemas(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		t.Run(version, func(t *testing.T) {
			path := at(t)
			f := mustOpen(t, path)
			mustApply(t, f, PutProxy(Proxy{Name: "p-01", UID: "u1", Wish: WishStopped}))
			mustClose(t, f)
			edit(t, path, setMeta(keySchema, version))
			f = mustOpen(t, path)
			defer mustClose(t, f)
			want := path + ": changed from schema " + version + " to 3; a copy is beside it"
			if n := f.Notices(); len(n) != 1 || n[0] != want {
				t.Errorf("notices %q, want %q", n, want)
			}
			if s := mustLoad(t, f); s.Schema != 3 || s.Proxies["p-01"].UID != "u1" || s.Proxies["p-01"].Wish != WishStopped || s.Proxies["p-01"].Port != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}
