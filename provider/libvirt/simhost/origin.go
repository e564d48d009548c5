package simhost

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// OriginMode says how an [Origin] behaves.
type OriginMode int

// The modes of an origin.
const (
	// OriginOK answers.
	OriginOK OriginMode = iota
	// OriginDown refuses connections; proxies answer 502 for it.
	OriginDown
	// OriginHang drops packets: connecting to it hangs, and proxies hang with it.
	OriginHang
	// OriginError answers 503 to every request.
	OriginError
)

// An Origin is the web server that the simulated proxies reach, and that a
// control probe reaches without one. It serves plain HTTP on every port:
//
//	/ip        200, the address that the request came from, one line
//	/status/N  N
//	/          200, a short text; any other path 404
//
// One origin may serve several hosts. All methods are safe for concurrent use.
type Origin struct {
	name string
	wg   sync.WaitGroup

	mu      sync.Mutex
	mode    OriginMode
	closed  bool
	done    chan struct{}
	changed chan struct{} // closed at the next change of mode
	served  int
	exits   uint32 // how many exit addresses were given out
}

// NewOrigin makes an origin of that host name; "" means "origin.sim".
func NewOrigin(name string) *Origin {
	if name == "" {
		name = "origin.sim"
	}
	return &Origin{name: name, done: make(chan struct{}), changed: make(chan struct{})}
}

// Name returns the origin's host name.
func (o *Origin) Name() string { return o.name }

// URL returns the address of the page that shows the exit address.
func (o *Origin) URL() string { return "http://" + o.name + "/ip" }

// ControlAddr is the address that the origin sees when it is reached without a proxy.
func ControlAddr() netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, 1}) }

// newExit gives out the next exit address of 198.18.0.0/15, which is set aside
// for benchmarks. It is the origin that does, so that those of its hosts differ.
func (o *Origin) newExit() netip.Addr {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.exits++
	n := o.exits
	return netip.AddrFrom4([4]byte{198, 18 + byte(n>>16)&1, byte(n >> 8), byte(n)})
}

// SetMode changes how the origin behaves from now on.
func (o *Origin) SetMode(m OriginMode) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mode = m
	close(o.changed)
	o.changed = make(chan struct{})
}

// Served returns how many requests the origin has answered.
func (o *Origin) Served() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.served
}

// Dial opens an in-memory connection to the origin without a proxy. It resolves
// the origin's name alone: any other host is a *net.DNSError.
func (o *Origin) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err == nil && host != o.name {
		err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	if err := o.reach(ctx); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: simAddr(address), Err: err}
	}
	client, server := newPipe(network, simAddr(ControlAddr().String()+":40000"), simAddr(address))
	if !o.serve(server) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: simAddr(address), Err: syscall.ECONNREFUSED}
	}
	return client, nil
}

// reach waits for a connection to the origin to be possible: nil when it is,
// ECONNREFUSED when it is refused, the context's error when that ends first.
func (o *Origin) reach(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		o.mu.Lock()
		mode, changed, closed := o.mode, o.changed, o.closed
		o.mu.Unlock()
		switch {
		case closed || mode == OriginDown:
			return syscall.ECONNREFUSED
		case mode != OriginHang:
			return nil
		}
		select {
		case <-changed:
		case <-o.done:
		case <-ctx.Done():
		}
	}
}

// Close ends the origin and waits for its goroutines.
func (o *Origin) Close() error {
	o.mu.Lock()
	if !o.closed {
		o.closed = true
		close(o.done)
	}
	o.mu.Unlock()
	o.wg.Wait()
	return nil
}
