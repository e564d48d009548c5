package libvirt

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	golibvirt "github.com/digitalocean/go-libvirt"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// A connection that is clogged answers: a host that takes no second one, for
// whatever reason, does not cost its neighbours the first. It is asked again, less
// and less often, and the connection replaced when one is taken.
func TestLink_cloggedAndRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refuse atomic.Bool
		var dials atomic.Int64
		l, sim := newLink(t, func(o *LinkOptions) {
			inner := o.Dial
			o.Dial = func(ctx context.Context) (net.Conn, error) {
				dials.Add(1)
				if refuse.Load() {
					return nil, errors.New("too many active clients")
				}
				return inner(ctx)
			}
		})
		if err := version(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		refuse.Store(true)
		hang(t, l, sim, ClassAgent, 2)
		for range 3000 { // five minutes
			if err := version(t.Context(), l); err != nil {
				t.Fatalf("a neighbour: %v", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		st := l.Status()
		if st.State != model.LinkUp || st.Generation != 1 || !strings.HasSuffix(st.LastError, "and a new connection failed: too many active clients") {
			t.Errorf("%v, generation %d, %q", st.State, st.Generation, st.LastError)
		}
		if n := dials.Load(); n < 5 || n > 12 {
			t.Errorf("%d dials in five minutes", n)
		}
		refuse.Store(false)
		time.Sleep(cloggedPauseMax + 2*l.opts.Ping)
		if g := l.Status().Generation; g != 2 {
			t.Errorf("generation %d, want 2", g)
		}
	})
}

// A new connection may take its time where dialling does, ssh over a slow line
// say; only a frozen daemon is found out as fast as ever.
func TestLink_slowSecondOpinion(t *testing.T) {
	for name, silence := range map[string]bool{"clogged": false, "silent": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, sim := newLink(t, func(o *LinkOptions) {
					inner := o.Dial
					o.Dial = func(ctx context.Context) (net.Conn, error) {
						select {
						case <-time.After(2500 * time.Millisecond):
							return inner(ctx)
						case <-ctx.Done():
							return nil, ctx.Err()
						}
					}
				})
				if err := version(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				if silence {
					sim.Freeze()
					time.AfterFunc(5*time.Second, sim.Thaw)
				} else {
					hang(t, l, sim, ClassAgent, 2)
				}
				time.Sleep(20 * time.Second)
				if st := l.Status(); st.State != model.LinkUp || st.LastError != "" {
					t.Errorf("%v, %q; want up, and no failure ever", st.State, st.LastError)
				}
			})
		})
	}
}

// A daemon that was silent and has come back while the second opinion failed is
// not called down for it.
func TestLink_silenceThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l *Link
		var sim *simhost.Host
		var asked atomic.Bool
		l, sim = newLink(t, func(o *LinkOptions) {
			inner := o.Dial
			o.Dial = func(ctx context.Context) (net.Conn, error) {
				if asked.Swap(true) { // the second opinion
					time.Sleep(time.Second)
					return nil, errors.New("refused")
				}
				return inner(ctx)
			}
		})
		if err := version(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1900 * time.Millisecond)
		sim.Freeze()
		time.AfterFunc(2*time.Second, sim.Thaw) // a ping at 2 s, the second opinion at 3.5 s, this at 3.9 s
		time.Sleep(10 * time.Second)
		st := l.Status()
		if st.Generation != 1 || st.State != model.LinkUp || !asked.Load() || st.LastError == "" {
			t.Errorf("generation %d, %v, %q", st.Generation, st.State, st.LastError)
		}
	})
}

// The clock of a clogged connection runs from when its slots are all held until
// they no longer are, whatever else is abandoned or returns; each class counts
// that has slots of its own.
func TestLink_cloggedClock(t *testing.T) {
	// late makes a read that its caller leaves and that returns soon after.
	late := func(t *testing.T, l *Link, sim *simhost.Host) {
		t.Helper()
		sim.Inject(simhost.Fault{Proc: simhost.ProcConnectGetLibVersion, Kind: simhost.FaultDelay, Delay: 300 * time.Millisecond, Times: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := version(ctx, l); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
	}
	for name, tt := range map[string]struct {
		class Class
		n     int
		while func(*testing.T, *Link, *simhost.Host)
	}{
		"agents":                     {ClassAgent, 2, nil},
		"writes":                     {ClassWrite, 3, nil},
		"agents, and a read returns": {ClassAgent, 2, late},
		"writes, and a read returns": {ClassWrite, 3, late},
		"agents, and reads are abandoned on ": {ClassAgent, 2, func(t *testing.T, l *Link, sim *simhost.Host) {
			late(t, l, sim)
			time.Sleep(2 * time.Second)
			late(t, l, sim)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, sim := newLink(t, nil)
				hang(t, l, sim, tt.class, tt.n)
				start := time.Now()
				if tt.while != nil {
					time.Sleep(time.Second)
					tt.while(t, l, sim)
				}
				for l.Status().Generation == 1 {
					if time.Since(start) > 8*time.Second {
						t.Fatalf("not replaced after %s", time.Since(start))
					}
					time.Sleep(100 * time.Millisecond)
				}
				_, _, err := do(t.Context(), l, call{Class: tt.class, What: "x", Domain: "other"},
					func(v *golibvirt.Libvirt) (uint64, error) { return v.ConnectGetLibVersion() })
				if err != nil {
					t.Errorf("the next of its class: %v", err)
				}
			})
		})
	}
}

// A read that hangs is not asked for again by the next caller, who would lose a
// neighbour's slot to the same trouble; once it has returned it is.
func TestDo_abandonedTwin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, sim := newLink(t, nil)
		remove := sim.Inject(simhost.Fault{Proc: simhost.ProcConnectGetHostname, Kind: simhost.FaultHang})
		read := func(domain string, limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, _, err := do(ctx, l, call{Class: ClassRead, What: "read xml", Domain: domain},
				func(v *golibvirt.Libvirt) (string, error) { return v.ConnectGetHostname() })
			return err
		}
		if err := read("a", time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		start := time.Now()
		for range 20 {
			err := read("a", 5*time.Second)
			const want = "not asked: the same call, read xml of a, is under way for a caller who has left"
			if !errors.Is(err, provider.ErrNotAsked) || err.Error() != want {
				t.Fatalf("%v, want %s", err, want)
			}
			if err := version(t.Context(), l); err != nil {
				t.Fatalf("a neighbour: %v", err)
			}
		}
		if took := time.Since(start); took != 20*l.opts.SlotWait {
			t.Errorf("refused after %s, want after the slot wait", took/20)
		}
		if err := read("b", time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another domain: %v, want it asked", err)
		}
		if st := l.Status(); st.Abandoned != 2 || st.Generation != 1 {
			t.Errorf("%d abandoned, generation %d; want 2, 1", st.Abandoned, st.Generation)
		}
		time.AfterFunc(500*time.Millisecond, remove)
		if err := read("a", 5*time.Second); err != nil {
			t.Errorf("when it returns within the slot wait: %v", err)
		}
	})
}

// A read of the host itself is tried once more after a while: one that was lost
// does not make the host unreadable.
func TestDo_abandonedTwinOfTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, sim := newLink(t, nil)
		read := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			return hostname(ctx, l)
		}
		once := sim.Inject(simhost.Fault{Proc: simhost.ProcConnectGetHostname, Kind: simhost.FaultHang, Times: 2})
		defer once()
		for i, want := range []error{context.DeadlineExceeded, provider.ErrNotAsked} {
			if err := read(); !errors.Is(err, want) {
				t.Fatalf("call %d: %v, want %v", i, err, want)
			}
		}
		time.Sleep(twinAgain)
		for i, want := range []error{context.DeadlineExceeded, provider.ErrNotAsked} {
			if err := read(); !errors.Is(err, want) {
				t.Fatalf("call %d half a minute later: %v, want %v", i, err, want)
			}
		}
		time.Sleep(10 * twinAgain)
		if err := read(); !errors.Is(err, provider.ErrNotAsked) {
			t.Errorf("with two under way: %v, want ErrNotAsked", err)
		}
		if st := l.Status(); st.Abandoned != 2 {
			t.Errorf("%d abandoned, want 2", st.Abandoned)
		}
		once() // and frees those that hang
		synctest.Wait()
		if err := read(); err != nil {
			t.Errorf("after their return: %v", err)
		}
	})
}

// One guest whose reads hang, and who is asked all the time, costs its neighbours
// nothing.
func TestHost_neighboursOfAHangingGuest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, simhost.Options{}, nil)
		r.nat("good")
		r.nat("bad")
		for _, d := range []string{"good", "bad"} {
			if _, err := r.get(t, d); err != nil {
				t.Fatal(err)
			}
		}
		r.sim.Inject(simhost.Fault{Proc: simhost.ProcDomainInterfaceAddresses, Domain: "bad", Kind: simhost.FaultHang})
		get := func(domain string) error {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := r.Get(ctx, provider.GetRequest{Domain: domain, Sources: model.Sources(), Fresh: true})
			return err
		}
		stop := time.Now().Add(5 * time.Minute)
		go func() {
			for time.Now().Before(stop) {
				_ = get("bad") // its own trouble
				time.Sleep(2 * time.Second)
			}
		}()
		for time.Now().Before(stop) {
			if err := get("good"); err != nil {
				t.Fatalf("%s before the end: %v", time.Until(stop), err)
			}
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		if g := r.Link().Generation; g != 1 {
			t.Errorf("generation %d, want 1", g)
		}
	})
}

// Every call is counted, by what became of it.
func TestLink_counts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, sim := newLink(t, nil)
		within := func(d time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			return version(ctx, l)
		}
		want := func(what string, c model.CallCount) {
			t.Helper()
			if got := l.Status().Calls[ClassRead]; got != c {
				t.Errorf("%s: %+v, want %+v", what, got, c)
			}
		}
		_ = within(time.Second)
		want("answered", model.CallCount{Done: 1})
		sim.Inject(simhost.Fault{Proc: simhost.ProcConnectGetLibVersion, Kind: simhost.FaultError, Error: simhost.Error{Code: 38, Message: "x"}, Times: 1})
		_ = within(time.Second)
		want("an error", model.CallCount{Done: 2, Failed: 1})
		hang(t, l, sim, ClassRead, 4)
		want("four left", model.CallCount{Done: 2, Failed: 1, Left: 4})
		_ = within(10 * time.Millisecond)
		want("its time over before a slot came", model.CallCount{Done: 2, Failed: 1, Left: 4, NotAsked: 1})
		_ = within(-1)
		want("its time over before", model.CallCount{Done: 2, Failed: 1, Left: 4, NotAsked: 2})
		_ = within(2 * time.Second)
		want("no slot", model.CallCount{Done: 2, Failed: 1, Left: 4, NotAsked: 3})
		sim.Kill()
		synctest.Wait()
		for range 50 {
			_ = within(time.Second)
		}
		want("no link", model.CallCount{Done: 2, Failed: 1, Left: 4, NotAsked: 3, Down: 50})
	})
}
