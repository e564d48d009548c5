package demo

import (
	"context"
	_ "embed" // the story
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"

	"virdeck/provider/libvirt/simhost/scenario"
)

// The hosts of the demo's own fleet.
const (
	Beelink = "beelink" // its VMs are bridged past it: the agent alone knows addresses
	KVM2    = "kvm2"    // NAT
	Local   = "local"   // NAT
)

//go:embed story.toml
var storyFile []byte

// Story is the demo's own scenario: its hosts, its VMs and what happens to them.
func Story() *scenario.Scenario {
	s, err := scenario.Parse("story.toml", storyFile, nil)
	if err != nil {
		panic("demo: " + err.Error()) // it is part of the program
	}
	return s
}

// Options change the demo. The zero value is the demo.
type Options struct {
	// Scenario is played in place of the demo's own story.
	Scenario *scenario.Scenario
	// Still leaves the story out: the fleet stands as it is at the start.
	Still bool
	// Log gets one line per step of the story. Nil means none.
	Log *slog.Logger
}

// A Fleet is simulated hosts, their VMs and a story that is being told.
type Fleet struct {
	*scenario.Stage
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New makes the fleet and starts its story, which ends with the context, or
// with Close. Close must be called in either case.
func New(ctx context.Context, opts Options) *Fleet {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Scenario == nil {
		opts.Scenario = Story()
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &Fleet{Stage: opts.Scenario.Build(), cancel: cancel}
	if !opts.Still {
		f.wg.Go(func() { f.Play(ctx, opts.Log) })
	}
	return f
}

// OriginURL returns the page that the probes ask for; it shows the exit address.
func (f *Fleet) OriginURL() string { return f.Origin().URL() }

// DialOrigin opens an in-memory connection to the origin without a proxy, for
// control probes.
func (f *Fleet) DialOrigin(ctx context.Context, network, address string) (net.Conn, error) {
	return f.Origin().Dial(ctx, network, address)
}

// Close ends the story, the hosts and the origin, and waits for them.
func (f *Fleet) Close() error {
	f.cancel()
	f.wg.Wait()
	return errors.Join(f.Stage.Close())
}

var _ io.Closer = (*Fleet)(nil)
