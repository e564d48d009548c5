package store_test

import (
	"path/filepath"
	"testing"

	"virdeck/store"
	"virdeck/store/storetest"
)

var (
	_ storetest.Store = (*store.File)(nil)
	_ storetest.Store = (*store.Memory)(nil)
)

func TestFile_contract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Open {
		path := filepath.Join(t.TempDir(), "virdeck.db")
		return func(t *testing.T) storetest.Store {
			t.Helper()
			f, err := store.Open(path, storetest.Fleet, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			})
			return f
		}
	})
}

func TestMemory_contract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Open {
		m, err := store.NewMemory(storetest.Fleet)
		if err != nil {
			t.Fatal(err)
		}
		return func(*testing.T) storetest.Store {
			m = m.Reopen()
			return m
		}
	})
}
