package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Options are what Open can be told. The zero value is good.
type Options struct {
	// Socket is the path of the dashboard's socket of this process, for whoever
	// finds the store held.
	Socket string
	// Timeout is how long another owner may take to let go. 0: 300 ms.
	Timeout time.Duration
	// Rand gives the 16 bytes of a new controller id. nil: crypto/rand.
	Rand io.Reader

	openFile func(string, int, os.FileMode) (*os.File, error) // for bbolt; tests
}

// File is a store in a file.
type File struct {
	path    string
	notices []string

	queueMu sync.Mutex
	queue   []*write

	mu     sync.Mutex // over db and what follows; held during a commit
	db     *bolt.DB
	lock   *lock
	broken error // why nothing can be asked any more
	closed bool
}

// Open opens the store of a fleet, or makes it. Its errors are ErrHeld,
// ErrRefused, or those of the file system (errors.Is with fs.ErrPermission and
// the like), each one line with the path in it. It reads the whole file.
func Open(path, fleet string, o Options) (*File, error) {
	return open(path, fleet, o, currentSchema())
}

func open(path, fleet string, o Options, sc schema) (*File, error) {
	if fleet == "" {
		return nil, fmt.Errorf("store %s: no name of a fleet", path)
	}
	if o.Timeout == 0 {
		o.Timeout = 300 * time.Millisecond
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	f := &File{path: path}
	if err := f.open(fleet, o, sc); err != nil {
		if f.lock != nil {
			err = errors.Join(err, f.lock.release())
		}
		return nil, err
	}
	return f, nil
}

func (f *File) open(fleet string, o Options, sc schema) error {
	notice, err := makeDir(filepath.Dir(f.path))
	if err != nil {
		return fmt.Errorf("store %s: directory: %w", f.path, err)
	}
	f.notice(notice)
	if f.lock, err = acquire(f.path, o.Timeout, holder{PID: os.Getpid(), Socket: o.Socket}); err != nil {
		if held := (ErrHeld{}); errors.As(err, &held) {
			return err
		}
		return fmt.Errorf("store %s: %w", f.path, err)
	}
	if err := create(f.path, fleet, o.Rand); err != nil {
		return fmt.Errorf("store %s: make it: %w", f.path, err)
	}
	found, err := examine(f.path, fleet, sc)
	if err != nil {
		return err
	}
	if found < sc.version {
		if err := backup(f.path, found); err != nil {
			return fmt.Errorf("store %s: copy it before it is changed to schema %d: %w", f.path, sc.version, err)
		}
	}
	if notice, err = tighten(f.path); err != nil {
		return fmt.Errorf("store %s: %w", f.path, err)
	}
	f.notice(notice)
	if f.db, err = openBolt(f.path, o); err != nil {
		return err
	}
	if found < sc.version {
		if err := f.migrate(found, sc); err != nil {
			return errors.Join(fmt.Errorf("store %s: change schema %d to %d: %w", f.path, found, sc.version, err), f.db.Close())
		}
		f.notice(fmt.Sprintf("%s: changed from schema %d to %d; a copy is beside it", f.path, found, sc.version))
	}
	return nil
}

func (f *File) notice(text string) {
	if text != "" {
		f.notices = append(f.notices, text)
	}
}

// Notices returns what Open had to put right, one line each, for the log.
func (f *File) Notices() []string { return f.notices }

// openBolt opens a file that has been examined. The flock of bbolt comes on top
// of ours, for programs that know bbolt and not virdeck.
func openBolt(path string, o Options) (db *bolt.DB, err error) {
	err = guard(func() error {
		db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: o.Timeout, OpenFile: o.openFile, NoStatistics: true})
		return err
	})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, ErrHeld{Path: path}
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	return db, nil
}

// create makes a new store beside the path and renames it into place, so that a
// crash leaves a whole one or none. It does nothing if something is there.
func create(path, fleet string, random io.Reader) error {
	if _, err := os.Lstat(path); err == nil || !os.IsNotExist(err) {
		return err
	}
	id, err := newUUID(random)
	if err != nil {
		return fmt.Errorf("controller id: %w", err)
	}
	rs, err := fresh(fleet, id)
	if err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.Remove(tmp); err != nil && !os.IsNotExist(err) { // of a crash
		return err
	}
	db, err := bolt.Open(tmp, 0o600, nil)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range buckets() {
			b, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			for key, value := range rs[name] {
				if err := b.Put([]byte(key), value); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
