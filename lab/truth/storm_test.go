//go:build lab

package truth

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt"
	"virdeck/provider/providertest"
)

// A thousand reads are left by their callers at random points, by eight at a
// time, while a neighbour is read without a pause: the neighbour sees no error,
// the link stays the one that it was, and nothing is left behind.
func TestCancelStorm(t *testing.T) {
	const callers, each = 8, 125
	h := hosts[0]
	base := h.base(t)
	p := h.open(t, libvirt.TransportUnix, nil)
	up(t, p, 10*time.Second)
	read := func(ctx context.Context, g guest) error {
		_, err := p.Get(ctx, provider.GetRequest{Domain: domain(g), Sources: model.Sources(), Fresh: true})
		return err
	}
	for _, g := range running() {
		if err := read(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	over := make(chan struct{})
	var neighbour sync.WaitGroup
	reads := 0
	neighbour.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			if err := read(ctx, providertest.NoAgent); err != nil {
				t.Errorf("neighbour's read %d: %v", reads, err)
			}
			cancel()
			reads++
		}
	})
	var left, answered, notAsked atomic.Int32
	var storm sync.WaitGroup
	start := time.Now()
	for i := range callers {
		storm.Go(func() {
			rnd := rand.New(rand.NewPCG(3, uint64(i)))
			for n := range each {
				ctx, cancel := context.WithCancel(context.Background())
				at := time.AfterFunc(time.Duration(rnd.Int64N(int64(6*time.Millisecond))), cancel)
				switch err := read(ctx, running()[n%len(running())]); {
				case err == nil:
					answered.Add(1)
				case errors.Is(err, context.Canceled):
					left.Add(1)
				case errors.Is(err, provider.ErrNotAsked):
					notAsked.Add(1)
				default:
					t.Errorf("a read that was left: %v", err)
				}
				at.Stop()
				cancel()
			}
		})
	}
	storm.Wait()
	took := time.Since(start)
	close(over)
	neighbour.Wait()
	await(t, 5*time.Second, "every call that was left is answered", func() bool { return p.Link().InFlight == 0 })
	st := p.Link()
	if st.Generation != 1 || st.State != model.LinkUp || st.Abandoned != 0 {
		t.Errorf("generation %d, %v, %d abandoned; want 1, up, 0", st.Generation, st.State, st.Abandoned)
	}
	if left.Load() < callers*each/4 || reads < 100 {
		t.Errorf("%d reads were left and the neighbour read %d times: no storm", left.Load(), reads)
	}
	for _, g := range running() {
		if err := read(t.Context(), g); err != nil {
			t.Errorf("after the storm: %v", err)
		}
	}
	p.Close()
	rest := backTo(t, base)
	t.Logf("on %s, %d reads in %s: %d left, %d answered, %d not asked; neighbour: %d reads without an error; left behind: %s",
		h.name, callers*each, took.Round(time.Millisecond), left.Load(), answered.Load(), notAsked.Load(), reads, rest)
}
