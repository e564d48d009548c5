package store

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

func TestOpen_held(t *testing.T) {
	path := at(t)
	f, err := Open(path, "test", Options{Socket: "/run/v.sock"})
	if err != nil {
		t.Fatal(err)
	}
	before := fingerprint(t, path)
	begun := time.Now()
	_, err = Open(path, "test", Options{Timeout: 50 * time.Millisecond})
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	held := ErrHeld{}
	if !errors.As(err, &held) || held != (ErrHeld{path, os.Getpid(), "/run/v.sock"}) {
		t.Fatalf("error %#v", err)
	}
	held.PID = 42
	wantError(t, held, "store "+path+": held by process 42, and one store has one owner; "+
		`ask it with "virdeck status" (its socket is /run/v.sock), or stop it first`)
	if fingerprint(t, path) != before {
		t.Error("the file was changed")
	}
	mustApply(t, f, PinHost("h", "u"))
	mustClose(t, f)
	if s := mustLoad(t, mustOpen(t, path)); s.Hosts["h"] != "u" {
		t.Errorf("hosts %v", s.Hosts)
	}
}

func TestOpen_waitsForTheOneThatStops(t *testing.T) {
	path := at(t)
	f := mustOpen(t, path)
	stop := time.AfterFunc(60*time.Millisecond, func() { mustClose(t, f) })
	defer stop.Stop()
	g, err := Open(path, "test", Options{Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, g)
}

func TestOpen_heldByAProgramThatKnowsBboltOnly(t *testing.T) {
	path := at(t)
	mustClose(t, mustOpen(t, path))
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(path, "test", Options{Timeout: 60 * time.Millisecond})
	wantError(t, err, "store "+path+": held by another process, and one store has one owner; "+
		`ask it with "virdeck status", or stop it first`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, path) // and our own lock was given back
}

func TestOpen_staleLockFile(t *testing.T) {
	for name, text := range map[string]string{
		"of a dead process": `{"pid":1,"socket":"/run/gone.sock"}`,
		"longer than ours":  strings.Repeat("x", 9000),
		"empty":             "",
	} {
		t.Run(name, func(t *testing.T) {
			path := at(t)
			mustWrite(t, path+".lock", []byte(text))
			f := mustOpen(t, path)
			_, err := Open(path, "test", Options{Timeout: time.Nanosecond})
			if held := (ErrHeld{}); !errors.As(err, &held) || held.PID != os.Getpid() || held.Socket != "" {
				t.Errorf("error %v", err)
			}
			mustClose(t, f)
			if left := mustRead(t, path+".lock"); len(left) != 0 {
				t.Errorf("a closed store is said to be held: %s", left)
			}
		})
	}
}

// Whoever comes when nothing is there yet: one makes the store, the others find
// it held or made, and all see one controller id.
func TestOpen_manyAtOnce(t *testing.T) {
	path := at(t)
	var inside, opened atomic.Int32
	var ids sync.Map
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			f, err := Open(path, "test", Options{Timeout: 20 * time.Second})
			if err != nil {
				t.Error(err)
				return
			}
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d owners", n)
			}
			s, err := f.Load(t.Context())
			if err != nil {
				t.Error(err)
			}
			ids.Store(s.Controller, true)
			opened.Add(1)
			inside.Add(-1)
			mustClose(t, f)
		})
	}
	wg.Wait()
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	if n != 1 || opened.Load() != 12 {
		t.Errorf("%d ids, %d opened", n, opened.Load())
	}
}

// A lock file that is removed while it is waited for is not locked by two.
func TestAcquire_removedLockFile(t *testing.T) {
	path := at(t)
	f := mustOpen(t, path)
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path, "test", Options{Timeout: 60 * time.Millisecond})
	if held := (ErrHeld{}); !errors.As(err, &held) { // by the flock of bbolt
		t.Fatalf("error %v", err)
	}
	mustApply(t, f, PinHost("h", "u"))
}
