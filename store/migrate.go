package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// schema is the version that a store is brought to, and how to get there:
// steps[n] changes records of schema n into those of n+1, in a transaction that
// it shares with all the others. meta/schema and meta/sum are not its business.
type schema struct {
	version int
	steps   map[int]func(*bolt.Tx) error
}

// currentSchema is where a migration is entered.
func currentSchema() schema {
	return schema{version: Schema, steps: map[int]func(*bolt.Tx) error{
		1: func(*bolt.Tx) error { return nil }, // what lacks a port has none that is known
		2: func(*bolt.Tx) error { return nil }, // all of its wishes are still known
	}}
}

// migrate takes all steps in one transaction, which ends only if the result can
// be read.
func (f *File) migrate(from int, sc schema) error {
	return guard(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			for v := from; v < sc.version; v++ {
				if err := sc.steps[v](tx); err != nil {
					return err
				}
			}
			for _, name := range buckets() {
				if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
					return fmt.Errorf("bucket %s: %w", name, err)
				}
			}
			version, err := encode(sc.version)
			if err != nil {
				return err
			}
			meta := tx.Bucket([]byte(bucketMeta))
			if err := meta.Put([]byte(keySchema), version); err != nil {
				return err
			}
			rs, err := readAll(tx)
			if err != nil {
				return err
			}
			t := rs.tally()
			sum, err := t.encode()
			if err != nil {
				return err
			}
			if err := meta.Put([]byte(keySum), sum); err != nil {
				return err
			}
			rs.put(bucketMeta, keySum, sum)
			_, err = rs.state()
			return err
		})
	})
}

// backup copies a store beside itself before its schema is changed. A copy that
// is there already is never written over.
func backup(path string, version int) error {
	src, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // only read
	dst, err := backupFile(path, version)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err == nil {
		err = dst.Sync()
	}
	if err = errors.Join(err, dst.Close()); err != nil {
		return errors.Join(err, os.Remove(dst.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func backupFile(path string, version int) (*os.File, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.schema%d", path, version)
		if n > 1 {
			name = fmt.Sprintf("%s.%d", name, n)
		}
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}
