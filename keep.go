package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"virdeck/config"
	"virdeck/controller"
	"virdeck/rotation"
	"virdeck/store"
)

// The files in the state directory, beside the socket and its lock.
const (
	storeFile = "virdeck.db"
	auditFile = "audit.jsonl"
)

// kept is what outlives the process. The zero one keeps nothing.
type kept struct {
	state store.State
	store controller.Store
	audit controller.Audit
	close func() error
}

// openKept opens the store and the audit log for the process that owns the state
// directory.
func openKept(ctx context.Context, c *config.Config, f flags, log *slog.Logger) (kept, error) {
	if f.demo {
		m, err := store.NewMemory(c.Fleet.Name)
		if err != nil {
			return kept{}, err
		}
		state, err := m.Load(ctx)
		return kept{state: state, store: m, close: func() error { return nil }}, err
	}
	path := filepath.Join(c.Fleet.StateDir, storeFile)
	s, err := store.Open(path, c.Fleet.Name, store.Options{Socket: filepath.Join(c.Fleet.StateDir, rotation.SocketName)})
	if err != nil {
		return kept{}, err
	}
	for _, n := range s.Notices() {
		log.Warn("store", "notice", n)
	}
	state, err := s.Load(ctx)
	if err != nil {
		return kept{}, errors.Join(err, s.Close())
	}
	a, err := store.OpenAudit(filepath.Join(c.Fleet.StateDir, auditFile))
	if err != nil {
		return kept{}, errors.Join(err, s.Close())
	}
	return kept{state: state, store: s, audit: a, close: func() error { return errors.Join(a.Close(), s.Close()) }}, nil
}

// peek returns what the store of a fleet remembers, for an engine that writes
// nothing. There may be none yet.
func peek(ctx context.Context, c *config.Config, f flags) (kept, error) {
	path := filepath.Join(c.Fleet.StateDir, storeFile)
	_, err := os.Stat(path)
	if f.demo || errors.Is(err, fs.ErrNotExist) {
		return kept{}, nil
	}
	if err != nil {
		return kept{}, fmt.Errorf("store: %w", err)
	}
	s, err := store.Open(path, c.Fleet.Name, store.Options{})
	if err != nil {
		return kept{}, err
	}
	state, err := s.Load(ctx)
	return kept{state: state}, errors.Join(err, s.Close())
}
