package libvirt

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What was fetched before it became void is kept for nobody, and who asks after
// that waits for a fetch of its own.
func TestShared_invalidateDuringAFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shared[string]
		var mu sync.Mutex
		state, fetches := "running", 0
		fetch := func() (string, error) {
			mu.Lock()
			fetches++
			v := state
			mu.Unlock()
			time.Sleep(300 * time.Millisecond)
			return v, t.Context().Err()
		}
		var wg sync.WaitGroup
		ask := func(want string) {
			t.Helper()
			if v, err := s.get(t.Context(), time.Now().Add(-listingAge), fetch); v != want || err != nil {
				t.Errorf("%q, %v; want %q", v, err, want)
			}
		}
		wg.Go(func() { ask("running") }) // it asked before anything changed
		time.Sleep(100 * time.Millisecond)
		mu.Lock()
		state = "stopped"
		mu.Unlock()
		s.invalidate()
		wg.Go(func() { ask("stopped") }) // while the old fetch is under way
		time.Sleep(250 * time.Millisecond)
		ask("stopped") // after it
		wg.Wait()
		ask("stopped")
		if fetches != 2 {
			t.Errorf("fetched %d times, want 2: one void, one shared by the rest", fetches)
		}
	})
}

// Where errors are kept, they are as good as values: who asks within their age
// is told, and the host is not asked again.
func TestShared_keepsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, keep := range []bool{true, false} {
			s := shared[string]{errs: keep}
			fetches := 0
			trouble := errors.New("trouble")
			for range 3 {
				_, err := s.get(t.Context(), time.Now().Add(-time.Second), func() (string, error) { fetches++; return "", trouble })
				if !errors.Is(err, trouble) {
					t.Errorf("%v, want trouble", err)
				}
			}
			want := 3
			if keep {
				want = 1
			}
			if fetches != want {
				t.Errorf("errors kept: %v: fetched %d times, want %d", keep, fetches, want)
			}
			time.Sleep(time.Second + 1)
			if _, err := s.get(t.Context(), time.Now().Add(-time.Second), func() (string, error) { return "well", nil }); err != nil {
				t.Errorf("errors kept: %v: %v after their age", keep, err)
			}
		}
	})
}
