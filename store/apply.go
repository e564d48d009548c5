package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
)

// errUnchanged ends a transaction that would write what is there already.
var errUnchanged = errors.New("unchanged")

// write is one Apply on its way to the disk. All but changes is guarded by
// File.mu.
type write struct {
	changes []Change
	done    bool
	err     error
}

// Apply makes all changes durable in one transaction, in their order, or none
// of them. Applies that come while another one is at the disk go together in
// the next transaction, in the order in which they came. Changes to what is
// there already cost nothing.
func (f *File) Apply(ctx context.Context, changes ...Change) error {
	for _, c := range changes {
		if err := c.check(); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	w := &write{changes: slices.Clone(changes)}
	f.queueMu.Lock()
	f.queue = append(f.queue, w)
	f.queueMu.Unlock()

	f.mu.Lock()
	defer f.mu.Unlock()
	if w.done { // somebody who waited before us took it along
		return w.err
	}
	f.queueMu.Lock()
	batch := f.queue
	f.queue = nil
	f.queueMu.Unlock()
	err := f.commit(batch)
	for _, w := range batch {
		w.done, w.err = true, err
	}
	return err
}

// Heartbeat writes the time at which the store was last known to be current.
func (f *File) Heartbeat(ctx context.Context, now time.Time) error {
	return f.Apply(ctx, SavedAt(now))
}

// Load returns everything. It reads and checks the whole store.
func (f *File) Load(ctx context.Context) (State, error) {
	if err := ctx.Err(); err != nil {
		return State{}, fmt.Errorf("store: %w", err)
	}
	var rs records
	err := f.use(func() error {
		return f.db.View(func(tx *bolt.Tx) error {
			var err error
			rs, err = readAll(tx)
			return err
		})
	})
	if err != nil {
		return State{}, err
	}
	s, err := rs.state()
	if err != nil {
		return State{}, ErrRefused{Path: f.path, Reason: Damaged, Detail: err.Error()}
	}
	return s, nil
}

// Close lets the store go. It waits for a write that has begun. Another Close
// does nothing.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var err error
	// After a panic in it bbolt may hold its own locks, and Close would wait for
	// them for ever. Its file and its flock then go with the process.
	if p := (panicked{}); !errors.As(f.broken, &p) {
		err = guard(f.db.Close)
	}
	if err = errors.Join(err, f.lock.release()); err != nil {
		return fmt.Errorf("store %s: close: %w", f.path, err)
	}
	return nil
}

// commit writes a batch. The caller has f.mu.
func (f *File) commit(batch []*write) error {
	err := f.ready()
	if err != nil {
		return err
	}
	committing := false
	err = guard(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			err := applyAll(tx, batch)
			committing = err == nil
			return err
		})
	})
	switch {
	case err == nil, errors.Is(err, errUnchanged):
		return nil
	case committing && !harmless(err), errors.As(err, new(panicked)):
		f.broken = fmt.Errorf("store %s: the disk failed, and what was last written is in doubt: %w; "+
			"stop virdeck, see to the disk, start it again", f.path, err)
		return f.broken
	}
	return fmt.Errorf("store %s: nothing was written: %w", f.path, err)
}

// harmless reports whether a commit failed before it could have become
// permanent, so that the next one may be tried: the disk had no room, or would
// not be written to at all. After a failed fsync nobody knows what is on it.
func harmless(err error) bool {
	if errors.Is(err, syscall.EIO) {
		return false
	}
	var path *fs.PathError // of a write, or of a truncate that bbolt has turned into text
	return errors.As(err, &path) || strings.HasPrefix(err.Error(), "file resize error:")
}

// use does something with the database.
func (f *File) use(do func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready(); err != nil {
		return err
	}
	err := guard(do)
	if errors.As(err, new(panicked)) {
		f.broken = fmt.Errorf("store %s: the file has been changed under virdeck: %w", f.path, err)
		return f.broken
	}
	if err != nil {
		return fmt.Errorf("store %s: read: %w", f.path, err)
	}
	return nil
}

func (f *File) ready() error {
	if f.closed {
		return ErrClosed
	}
	return f.broken
}

func applyAll(tx *bolt.Tx, batch []*write) error {
	meta := tx.Bucket([]byte(bucketMeta))
	t, err := decodeTally(meta.Get([]byte(keySum)))
	if err != nil {
		return fmt.Errorf("meta sum: %w", err)
	}
	before := t
	for _, w := range batch {
		for _, c := range w.changes {
			if err := apply(tx, c, &t); err != nil {
				return fmt.Errorf("%s: %w", c, err)
			}
		}
	}
	if t == before {
		return errUnchanged
	}
	sum, err := t.encode()
	if err != nil {
		return fmt.Errorf("meta sum: %w", err)
	}
	return meta.Put([]byte(keySum), sum)
}

func apply(tx *bolt.Tx, c Change, t *tally) error {
	b, key := tx.Bucket([]byte(c.bucket)), []byte(c.key)
	old := b.Get(key)
	if string(old) == string(c.value) {
		return nil
	}
	if old != nil {
		t.remove(c.bucket, c.key, old)
	}
	if c.value == nil {
		return b.Delete(key)
	}
	t.add(c.bucket, c.key, c.value)
	return b.Put(key, c.value)
}

// readAll copies everything out of the mapping.
func readAll(tx *bolt.Tx) (records, error) {
	rs := records{}
	err := tx.ForEach(func(name []byte, b *bolt.Bucket) error {
		rs[string(name)] = map[string][]byte{}
		return b.ForEach(func(k, v []byte) error {
			rs.put(string(name), string(k), slices.Clone(v))
			return nil
		})
	})
	return rs, err
}

// panicked is a panic or a fault of bbolt, as an error.
type panicked struct{ what any }

func (p panicked) Error() string { return fmt.Sprintf("fault: %v", p.what) }

// guard turns a panic into an error, and with it a fault at a page that is no
// longer in the file.
func guard(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = panicked{r}
		}
	}()
	return do()
}
