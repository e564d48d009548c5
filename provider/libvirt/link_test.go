package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// version is the cheapest read there is.
func version(ctx context.Context, l *Link) error {
	_, _, err := do(ctx, l, call{Class: ClassRead, What: "version"},
		func(v *golibvirt.Libvirt) (uint64, error) { return v.ConnectGetLibVersion() })
	return err
}

func newLink(t *testing.T, change func(*LinkOptions)) (*Link, *simhost.Host) {
	t.Helper()
	sim := simhost.New(simhost.Options{})
	o := LinkOptions{Host: "beelink", Dial: sim.Dial, Endpoint: "simulated"}
	if change != nil {
		change(&o)
	}
	l := NewLink(o)
	t.Cleanup(func() {
		l.Close()
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, sim
}

// hang takes n slots of a class with calls that the daemon never answers, and
// whose callers leave.
func hang(t *testing.T, l *Link, sim *simhost.Host, class Class, n int) {
	t.Helper()
	remove := sim.Inject(simhost.Fault{Proc: simhost.ProcConnectGetHostname, Kind: simhost.FaultHang})
	t.Cleanup(remove)
	for i := range n {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, _, err := do(ctx, l, call{Class: class, What: "hang", Domain: fmt.Sprint("d", i)},
			func(v *golibvirt.Libvirt) (string, error) { return v.ConnectGetHostname() })
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("hung call %d: %v, want its caller's deadline", i, err)
		}
	}
}

// While as many calls hang as the slow classes may have, neighbours do not
// notice, on the same generation.
func TestLink_neighboursOfHungCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, sim := newLink(t, nil)
		hang(t, l, sim, ClassWrite, 3)
		for i := range 1000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := version(ctx, l); err != nil {
				t.Fatalf("neighbour %d: %v", i, err)
			}
			cancel()
		}
		st := l.Status()
		if st.Generation != 1 || st.State != model.LinkUp || st.Abandoned != 3 {
			t.Errorf("generation %d, %v, %d abandoned; want 1, up, 3", st.Generation, st.State, st.Abandoned)
		}
		// One more of a slow class finds no slot: not asked, and no failure.
		_, _, err := do(t.Context(), l, call{Class: ClassAgent, What: "agent"}, func(v *golibvirt.Libvirt) (uint64, error) { return v.ConnectGetLibVersion() })
		if !errors.Is(err, provider.ErrNotAsked) {
			t.Errorf("a fourth slow call: %v, want ErrNotAsked", err)
		}
	})
}

// Calls of every slot abandoned: the ping is still answered, and yet the
// connection is of no use. It is replaced; the daemon is not called down.
func TestLink_cloggedIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, sim := newLink(t, nil)
		hang(t, l, sim, ClassRead, 4)
		start := time.Now()
		if err := version(t.Context(), l); !errors.Is(err, provider.ErrNotAsked) {
			t.Errorf("with all slots taken: %v, want ErrNotAsked", err)
		}
		for version(t.Context(), l) != nil {
			if time.Since(start) > 20*time.Second {
				t.Fatal("not replaced")
			}
		}
		if d := time.Since(start); d > 9*time.Second {
			t.Errorf("replaced after %s, want at most clogged (5 s) and one ping round", d)
		}
		if st := l.Status(); st.Generation != 2 || st.State != model.LinkUp {
			t.Errorf("generation %d, %v; want 2, up", st.Generation, st.State)
		}
	})
}

// A frozen daemon is noticed within 6 s; callers of a down link fail at once;
// after the thaw the link comes back by itself.
func TestLink_frozenDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, sim := newLink(t, nil)
		if err := version(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		sim.Freeze()
		start := time.Now()
		err := version(t.Context(), l) // in flight when it is noticed
		if !errors.Is(err, provider.ErrLinkDown) {
			t.Errorf("in flight: %v, want ErrLinkDown", err)
		}
		if d := time.Since(start); d > 6*time.Second {
			t.Errorf("noticed after %s, want 6 s at most", d)
		}
		synctest.Wait()
		start = time.Now()
		if err := version(t.Context(), l); !errors.Is(err, provider.ErrLinkDown) || time.Since(start) != 0 {
			t.Errorf("while down: %v after %s, want ErrLinkDown at once", err, time.Since(start))
		}
		st := l.Status()
		if st.State != model.LinkDown || !strings.Contains(st.LastError, "no answer for 1.5s after a keepalive, and a new connection failed") {
			t.Errorf("status %v %q", st.State, st.LastError)
		}
		time.Sleep(4 * time.Second)
		sim.Thaw()
		start = time.Now()
		for l.Status().State != model.LinkUp {
			time.Sleep(10 * time.Millisecond)
			if time.Since(start) > 4*time.Second {
				t.Fatalf("not up %s after the thaw", time.Since(start))
			}
		}
	})
}

// The operator's reconnect frees callers at once on a frozen daemon, and after
// the thaw the link is up within 2 s, whenever the thaw comes.
func TestLink_reconnectOnAFrozenDaemon(t *testing.T) {
	for _, thaw := range []time.Duration{0, 500 * time.Millisecond, 4900 * time.Millisecond, 5100 * time.Millisecond, 12 * time.Second, 29 * time.Second} {
		t.Run(thaw.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, sim := newLink(t, nil)
				if err := version(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				sim.Freeze()
				got := make(chan error, 1)
				go func() { got <- version(t.Context(), l) }()
				synctest.Wait()
				rep := make(chan provider.ReconnectReport, 1)
				go func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					r, _ := l.Reconnect(ctx) // its error is the next lines' matter
					rep <- r
				}()
				synctest.Wait()
				select {
				case err := <-got:
					if !errors.Is(err, provider.ErrLinkDown) {
						t.Errorf("the interrupted call: %v, want ErrLinkDown", err)
					}
				default:
					t.Error("the call was not interrupted at once")
				}
				time.Sleep(thaw)
				sim.Thaw()
				start := time.Now()
				for l.Status().State != model.LinkUp {
					time.Sleep(10 * time.Millisecond)
					if time.Since(start) > 2*time.Second {
						t.Fatal("not up within 2 s of the thaw")
					}
				}
				if r := <-rep; len(r.Interrupted) != 1 || !strings.HasPrefix(r.Interrupted[0], "version, ") || r.From != 1 {
					t.Errorf("report %+v, want one interrupted call of generation 1", r)
				}
			})
		})
	}
}

// A daemon that was killed: in flight calls end at once, the link dials with
// backoff, and is back soon after the daemon.
func TestLink_killedDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, sim := newLink(t, nil)
		if err := version(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		sim.Kill()
		synctest.Wait()
		if st := l.Status(); st.State != model.LinkDown || st.NextRetry.IsZero() {
			t.Errorf("%v, next retry %v; want down with a retry", st.State, st.NextRetry)
		}
		time.Sleep(30 * time.Second)
		if err := sim.Start(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for l.Status().State != model.LinkUp {
			time.Sleep(10 * time.Millisecond)
			if time.Since(start) > 3100*time.Millisecond {
				t.Fatal("not back within the backoff of the first minute")
			}
		}
		if g := l.Status().Generation; g != 2 {
			t.Errorf("generation %d, want 2", g)
		}
	})
}

// It never gives up, and does not hammer either.
func TestLink_backsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials []time.Time
		var mu sync.Mutex
		l, sim := newLink(t, func(o *LinkOptions) {
			inner := o.Dial
			o.Dial = func(ctx context.Context) (net.Conn, error) {
				mu.Lock()
				dials = append(dials, time.Now())
				mu.Unlock()
				return inner(ctx)
			}
		})
		if err := version(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		var down time.Time
		time.Sleep(5 * time.Minute) // up for long: its first minute down is one all the same
		down = time.Now()
		mu.Lock()
		dials = dials[:1]
		mu.Unlock()
		sim.Kill()
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if first := dials[1].Sub(down); first > 200*time.Millisecond {
			t.Errorf("the first redial came after %s", first)
		}
		for i := 2; i < len(dials); i++ {
			gap, limit := dials[i].Sub(dials[i-1]), 3*time.Second
			if dials[i-1].Sub(down) > time.Minute {
				limit = 30 * time.Second
			}
			if gap > limit || gap < 50*time.Millisecond {
				t.Errorf("dial %d came %s after the one before, want 50ms to %s", i, gap, limit)
			}
		}
		if n := len(dials); n < 40 || n > 80 {
			t.Errorf("%d dials in ten minutes", n)
		}
	})
}

// Late errors of an old generation never hurt the one that followed it.
func TestLink_staleGenerationIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newLink(t, nil)
		if err := version(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		l.mu.Lock()
		old := l.cur
		l.mu.Unlock()
		if _, err := l.Reconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		old.kill(errors.New("late news"))
		for range 10 {
			if err := version(t.Context(), l); err != nil {
				t.Fatalf("generation 2: %v", err)
			}
		}
		if g := l.Status().Generation; g != 2 {
			t.Errorf("generation %d, want 2", g)
		}
	})
}

// Frames that no libvirt would send end the connection; the process lives.
func TestLink_badFrames(t *testing.T) {
	for name, kind := range map[string]simhost.FaultKind{
		"noise": simhost.FaultNoise, "short": simhost.FaultShort, "huge": simhost.FaultHuge,
		"cut before": simhost.FaultCutBefore, "cut inside": simhost.FaultCutInside, "cut reply": simhost.FaultCutReply,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, sim := newLink(t, nil)
				if err := version(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				sim.Inject(simhost.Fault{Proc: simhost.ProcConnectGetLibVersion, Kind: kind, Times: 1})
				if err := version(t.Context(), l); !errors.Is(err, provider.ErrLinkDown) {
					t.Errorf("%v, want ErrLinkDown", err)
				}
				time.Sleep(time.Second)
				if err := version(t.Context(), l); err != nil {
					t.Errorf("after the redial: %v", err)
				}
			})
		})
	}
}

// A storm of callers that leave at random times harms no neighbour.
func TestLink_cancelStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		for i := range 20 {
			r.bridged(fmt.Sprintf("p-%02d", i), netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)}).String()+"/24")
		}
		r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainInterfaceAddresses, Kind: simhost.FaultDelay, Delay: 30 * time.Millisecond})
		var wg sync.WaitGroup
		for i := range soak(1000) {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%40)*time.Millisecond)
				defer cancel()
				_, _ = r.Get(ctx, provider.GetRequest{Domain: fmt.Sprintf("p-%02d", i%20), Sources: model.Sources()})
			})
		}
		bad := 0
		for range soak(500) {
			time.Sleep(14 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			if _, err := r.List(ctx); err != nil {
				bad++
				t.Logf("neighbour: %v", err)
			}
			cancel()
		}
		wg.Wait()
		if bad > 0 {
			t.Errorf("%d of %d neighbour reads failed", bad, soak(500))
		}
		if g := r.Link().Generation; g != 1 {
			t.Errorf("generation %d, want 1", g)
		}
	})
}
