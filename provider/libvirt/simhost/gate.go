package simhost

import (
	"context"
	"sync"
)

// gate is open or shut; who comes to a shut gate waits until it opens.
type gate struct {
	mu   sync.Mutex
	wait chan struct{} // nil when open
}

func newGate() *gate { return &gate{} }

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wait == nil {
		g.wait = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wait != nil {
		close(g.wait)
		g.wait = nil
	}
}

// pass waits for the gate to be open, or for the context to end.
func (g *gate) pass(ctx context.Context) error {
	for {
		g.mu.Lock()
		wait := g.wait
		g.mu.Unlock()
		if wait == nil {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
