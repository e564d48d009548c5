package simhost

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestWorkers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorkers(1, 1)
		take := func(ctx context.Context, high bool) func() {
			t.Helper()
			release, err := w.acquire(ctx, high)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		normal := take(t.Context(), true) // a call of high priority takes a normal worker first
		prio := take(t.Context(), true)

		order := make(chan string, 4)
		wait := func(ctx context.Context, name string, high bool) {
			go func() {
				release, err := w.acquire(ctx, high)
				if err != nil {
					order <- name + ": " + err.Error()
					return
				}
				order <- name
				release()
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		wait(ctx, "gives up", false)
		wait(t.Context(), "normal", false)
		wait(t.Context(), "high", true)
		cancel()
		if got := <-order; got != "gives up: "+context.Canceled.Error() {
			t.Errorf("first %q", got)
		}
		prio() // only the one of high priority may have it
		if got := <-order; got != "high" {
			t.Errorf("then %q, want high", got)
		}
		normal()
		if got := <-order; got != "normal" {
			t.Errorf("then %q, want normal", got)
		}
		synctest.Wait()
		if w.normal != 1 || w.prio != 1 || len(w.queue) != 0 {
			t.Errorf("left: %d normal, %d priority, %d waiting", w.normal, w.prio, len(w.queue))
		}
		ended, end := context.WithCancel(t.Context())
		end()
		take(t.Context(), false)
		if _, err := w.acquire(ended, false); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}
