package libvirt

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"

	"virdeck/model"
	"virdeck/provider"
	"virdeck/provider/libvirt/simhost"
)

// A daemon that accepts, opens and closes is dialled less and less often; one that
// was up for long is dialled again at once.
func TestLink_flap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials, life atomic.Int64
		life.Store(int64(20 * time.Millisecond))
		l, _ := newLink(t, func(o *LinkOptions) {
			inner := o.Dial
			o.Dial = func(ctx context.Context) (net.Conn, error) {
				dials.Add(1)
				c, err := inner(ctx)
				if err == nil {
					time.AfterFunc(time.Duration(life.Load()), func() { _ = c.Close() })
				}
				return c, err
			}
		})
		time.Sleep(10 * time.Minute)
		if n := dials.Load(); n > 80 {
			t.Errorf("%d dials in ten minutes", n)
		}
		life.Store(int64(time.Hour))
		for l.Status().State != model.LinkUp {
			time.Sleep(time.Second)
		}
		gen := l.Status().Generation
		time.Sleep(59 * time.Minute)
		if g := l.Status().Generation; g != gen {
			t.Fatalf("generation %d, want still %d", g, gen)
		}
		for l.Status().State == model.LinkUp {
			time.Sleep(10 * time.Millisecond)
		}
		if wait := time.Until(l.Status().NextRetry); wait > 150*time.Millisecond {
			t.Errorf("the next dial is %s away after an hour up", wait)
		}
	})
}

// A dialer that obeys nothing keeps neither the link, nor a reconnect, nor Close;
// what it brings too late is closed.
func TestLink_dialerThatObeysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simhost.New(simhost.Options{})
		gate := make(chan struct{})
		var dials atomic.Int64
		l := NewLink(LinkOptions{Host: "h", Dial: func(context.Context) (net.Conn, error) {
			dials.Add(1)
			<-gate
			return sim.Dial(context.Background())
		}})
		time.Sleep(5*time.Second + lastWords)
		synctest.Wait()
		if st := l.Status(); st.State != model.LinkDown || st.LastError != "no connection within 5s" {
			t.Errorf("%v, %q", st.State, st.LastError)
		}
		time.Sleep(time.Second)
		if st := l.Status(); st.Phase != "dial" {
			t.Errorf("phase %q, want the next dial", st.Phase)
		}
		n := dials.Load()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Reconnect(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("reconnect: %v", err)
		}
		if dials.Load() != n+1 {
			t.Errorf("%d dials after a reconnect, want %d", dials.Load(), n+1)
		}
		start := time.Now()
		l.Close()
		if took := time.Since(start); took != 0 {
			t.Errorf("Close took %s", took)
		}
		close(gate)
		synctest.Wait()
		if n := sim.Conns(); n != 0 {
			t.Errorf("%d connections are left open", n)
		}
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A reconnect key that is held down, or pressed by several, lets the dial that it
// has begun come to its end.
func TestLink_heldReconnectKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		l, _ := newLink(t, func(o *LinkOptions) {
			inner := o.Dial
			o.Dial = func(ctx context.Context) (net.Conn, error) {
				dials.Add(1)
				select {
				case <-time.After(2 * time.Second): // ssh, over a slow line
					return inner(ctx)
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		})
		if err := version(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		dials.Store(0)
		var up sync.WaitGroup
		for range 9 {
			up.Go(func() {
				rep, err := l.Reconnect(t.Context())
				if err != nil || rep.From != 1 || rep.To != 2 {
					t.Errorf("%+v, %v; want generation 2 in place of 1", rep, err)
				}
			})
			time.Sleep(200 * time.Millisecond)
		}
		up.Wait()
		if n := dials.Load(); n != 1 {
			t.Errorf("%d dials, want the one that the first press began", n)
		}
	})
}

// Who has given up waiting is joined by nobody: the next press begins the dial
// that hangs anew.
func TestLink_reconnectAfterOneThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		l, sim := newLink(t, func(o *LinkOptions) {
			inner := o.Dial
			o.Dial = func(ctx context.Context) (net.Conn, error) {
				dials.Add(1)
				return inner(ctx)
			}
		})
		if err := version(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		sim.Freeze()
		dials.Store(0)
		for i := range int64(3) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if rep, err := l.Reconnect(ctx); !errors.Is(err, context.DeadlineExceeded) || rep.To != 0 {
				t.Errorf("%+v, %v; want to have given up", rep, err)
			}
			cancel()
			if n := dials.Load(); n != i+1 {
				t.Errorf("%d dials after %d presses, each after the one before gave up", n, i+1)
			}
		}
		sim.Thaw()
	})
}

// A reconnect is told of a dial that began after it, not of one before.
func TestLink_reconnectHearsOfItsOwnDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, sim := newLink(t, nil)
		if err := version(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		w := &waiter{told: make(chan error, 1)}
		l.mu.Lock()
		l.waiters = append(l.waiters, w)
		l.mu.Unlock()
		sim.Kill() // the failure of generation 1 is not the waiter's matter
		synctest.Wait()
		if len(w.told) != 0 {
			t.Errorf("told %v of a dial from before", <-w.told)
		}
		time.Sleep(time.Second)
		if err := <-w.told; err == nil {
			t.Error("told that the link is up")
		}
	})
}

// A reconnect does not wait for a second opinion, which asks a daemon that does
// not answer.
func TestLink_reconnectDuringSecondOpinion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, sim := newLink(t, nil)
		if err := version(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		sim.Freeze()
		for !l.Status().Suspect {
			time.Sleep(10 * time.Millisecond)
		}
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = l.Reconnect(ctx)
		}()
		synctest.Wait()
		if st := l.Status(); st.Suspect || st.State != model.LinkConnecting || st.Phase != "handshake" {
			t.Errorf("%v, phase %q, suspect %v; want a new dial at once", st.State, st.Phase, st.Suspect)
		}
		sim.Thaw()
		synctest.Wait()
		if st := l.Status(); st.State != model.LinkUp {
			t.Errorf("%v after the thaw, %q", st.State, st.LastError)
		}
	})
}

// Whatever the dial does when Close comes, a closed link stays closed.
func TestLink_closedIsNotUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, sim := newLink(t, nil)
		l.Close()
		c, err := sim.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := newSession(c, 4)
		l.install(s) // the dial had come to its end
		if st := l.Status(); st.State != model.LinkDraining || s.ctx.Err() == nil {
			t.Errorf("%v, the session's end %v", st.State, s.ctx.Err())
		}
		l.fail(errors.New("refused"), backoff.NewExponentialBackOff())
		if st := l.Status(); st.State != model.LinkDraining || st.LastError != "" {
			t.Errorf("%v, %q", st.State, st.LastError)
		}
		if err := version(t.Context(), l); !errors.Is(err, provider.ErrLinkDown) {
			t.Errorf("a call: %v", err)
		}
	})
}
