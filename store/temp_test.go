package store

import (
	"context"
	"os"
	"path/filepath"
)

// temp is a directory for what is made once for all tests.
type temp struct {
	dir    string
	report func(error)
}

func tempDir(report func(error)) temp {
	dir, err := os.MkdirTemp("", "virdeck-store-")
	if err != nil {
		report(err)
	}
	return temp{dir, report}
}

func (d temp) path(name string) string { return filepath.Join(d.dir, name) }

func (d temp) read(name string) ([]byte, error) { return os.ReadFile(d.path(name)) }

func (d temp) remove() { d.report(os.RemoveAll(d.dir)) }

func noContext() context.Context { return context.Background() }
