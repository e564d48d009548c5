package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"sync"
	"time"
)

// Memory is a store that forgets everything with its process: for the demo, and
// for tests of those who use a store. It is one by the same suite as File.
type Memory struct {
	mu     sync.Mutex
	rs     records
	closed bool
}

// NewMemory returns an empty store of a fleet.
func NewMemory(fleet string) (*Memory, error) {
	id, err := newUUID(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("store: controller id: %w", err)
	}
	rs, err := fresh(fleet, id)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &Memory{rs: rs}, nil
}

// Apply makes all changes or none.
func (m *Memory) Apply(ctx context.Context, changes ...Change) error {
	for _, c := range changes {
		if err := c.check(); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	for _, c := range changes {
		if c.value == nil {
			delete(m.rs[c.bucket], c.key)
		} else {
			m.rs.put(c.bucket, c.key, c.value)
		}
	}
	return nil
}

// Heartbeat writes the time at which the store was last known to be current.
func (m *Memory) Heartbeat(ctx context.Context, now time.Time) error {
	return m.Apply(ctx, SavedAt(now))
}

// Load returns everything.
func (m *Memory) Load(ctx context.Context) (State, error) {
	if err := ctx.Err(); err != nil {
		return State{}, fmt.Errorf("store: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return State{}, ErrClosed
	}
	rs := records{}
	for bucket, kv := range m.rs {
		rs[bucket] = maps.Clone(kv)
	}
	t := rs.tally()
	sum, err := t.encode()
	if err != nil {
		return State{}, fmt.Errorf("store: %w", err)
	}
	rs.put(bucketMeta, keySum, sum)
	return rs.state()
}

// Close lets the store go; Reopen takes it up again.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Reopen returns the store after a restart that only Memory knows of: with all
// that was applied.
func (m *Memory) Reopen() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	rs := records{}
	for bucket, kv := range m.rs {
		rs[bucket] = maps.Clone(kv)
	}
	return &Memory{rs: rs}
}
