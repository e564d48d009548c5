package store

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// examine reads the file at a path, and returns its schema if it is a whole
// store of the fleet that can be used here. It writes nothing.
func examine(path, fleet string, sc schema) (int, error) {
	refuse := func(r Reason, format string, args ...any) (int, error) {
		return 0, ErrRefused{Path: path, Reason: r, Detail: fmt.Sprintf(format, args...)}
	}
	// Not blocking: a fifo would wait for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, fmt.Errorf("store %s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // only read
	fi, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("store %s: %w", path, err)
	}
	switch {
	case fi.IsDir():
		return refuse(NotStore, "it is a directory")
	case !fi.Mode().IsRegular():
		return refuse(NotStore, "it is not a regular file")
	case fi.Size() == 0:
		return refuse(Damaged, "it is empty, which a store never is")
	}
	rs, err := inspect(f, fi.Size())
	switch {
	case errors.Is(err, errNotBolt):
		return refuse(NotStore, "%v", err)
	case err != nil:
		return refuse(Damaged, "%v", err)
	}
	return judge(rs, fleet, sc, refuse)
}

func judge(rs records, fleet string, sc schema, refuse func(Reason, string, ...any) (int, error)) (int, error) {
	var is, name string
	var version int
	meta := rs[bucketMeta]
	if err := decode(meta[keyFormat], &is); err != nil || is != format {
		return refuse(NotStore, "a bbolt file of something else")
	}
	if err := decode(meta[keySchema], &version); err != nil {
		return refuse(Damaged, "meta schema: %v", err)
	}
	if version > sc.version {
		return refuse(NewerSchema, "schema %d, and this version knows %d", version, sc.version)
	}
	if err := rs.checkSum(); err != nil {
		return refuse(Damaged, "%v", err)
	}
	if err := decode(meta[keyFleet], &name); err != nil {
		return refuse(Damaged, "meta fleet: %v", err)
	}
	if name != fleet {
		return refuse(OtherFleet, "of fleet %q, and this one is %q", name, fleet)
	}
	if version < sc.version {
		for v := version; v < sc.version; v++ {
			if sc.steps[v] == nil {
				return refuse(OlderSchema, "schema %d, and there is no way from %d to %d", version, v, v+1)
			}
		}
		return version, nil // its records are read once they are of this schema
	}
	if _, err := rs.state(); err != nil {
		return refuse(Damaged, "%v", err)
	}
	for _, name := range buckets() {
		if rs[name] == nil {
			return refuse(Damaged, "no bucket %s", name)
		}
	}
	return version, nil
}
