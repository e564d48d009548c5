package controller

import (
	"context"
	"sync"
)

// running holds the goroutines of the hosts. Hosts come and go while the fleet
// runs.
type running struct {
	wg sync.WaitGroup

	mu    sync.Mutex
	ctx   context.Context // nil before begin
	ended bool
}

// begin runs the hosts, and every later one at once.
func (r *running) begin(ctx context.Context, hosts []*host) {
	r.mu.Lock()
	r.ctx = ctx
	r.mu.Unlock()
	for _, h := range hosts {
		r.launch(h)
	}
}

// launch runs a host, as it is reached now, until the fleet stops or halt is
// called. Before begin it does nothing: begin is given all hosts.
func (r *running) launch(h *host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil || r.ended {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	via := h.via()
	via.cancel = cancel
	r.wg.Go(func() {
		defer close(via.ended)
		defer cancel()
		h.run(ctx, via)
	})
}

// halt stops the loops of a host, and returns when they have ended.
func (r *running) halt(via *reach) {
	r.mu.Lock()
	cancel := via.cancel
	r.mu.Unlock()
	if cancel != nil {
		cancel()
		<-via.ended
	}
}

// wait returns when all hosts have stopped; none is launched any more.
func (r *running) wait() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.wg.Wait()
}
