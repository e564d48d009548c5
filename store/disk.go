package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// makeDir makes the directory of a store, or looks at the one that is there.
// What it changed is returned in words.
func makeDir(dir string) (notice string, err error) {
	fi, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
		return "", syncDir(filepath.Dir(dir))
	}
	if err != nil {
		return "", err
	}
	if !fi.IsDir() {
		return "", fmt.Errorf("%s: not a directory", dir)
	}
	// In a sticky directory nobody can take away a file of another.
	if fi.Mode().Perm()&0o022 == 0 || fi.Mode()&fs.ModeSticky != 0 {
		return "", nil
	}
	tight := fi.Mode().Perm() &^ 0o022
	if err := os.Chmod(dir, tight); err != nil {
		return "", fmt.Errorf("others may write in it: %w", err)
	}
	return fmt.Sprintf("directory %s: others could write in it (mode %04o); made %04o", dir, fi.Mode().Perm(), tight), nil
}

// tighten makes a file of ours readable to its owner alone.
func tighten(path string) (notice string, err error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if fi.Mode().Perm()&0o077 == 0 {
		return "", nil
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return "", fmt.Errorf("others may read it: %w", err)
	}
	return fmt.Sprintf("%s: others could read it (mode %04o); made 0600", path, fi.Mode().Perm()), nil
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}
