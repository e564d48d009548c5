package logbuf

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
)

func seqs(rs []Record) []uint64 {
	out := []uint64{}
	for _, r := range rs {
		out = append(out, r.Seq)
	}
	return out
}

func fill(size, n int) *Ring {
	r := NewRing(size)
	for i := range n {
		r.Append(Record{Message: fmt.Sprint("m", i+1)})
	}
	return r
}

func TestRingReads(t *testing.T) {
	tests := []struct {
		name          string
		size, n       int
		after, before uint64
		limit         int
		wantAfter     []uint64
		wantBefore    []uint64
		stats         Stats
	}{
		{"empty", 4, 0, 0, 9, 9, []uint64{}, []uint64{}, Stats{Cap: 4}},
		{"part", 4, 3, 1, 3, 9, []uint64{2, 3}, []uint64{1, 2}, Stats{1, 3, 3, 4, 0}},
		{"full", 4, 4, 0, 99, 9, []uint64{1, 2, 3, 4}, []uint64{1, 2, 3, 4}, Stats{1, 4, 4, 4, 0}},
		{"wrapped", 4, 10, 2, 99, 9, []uint64{7, 8, 9, 10}, []uint64{7, 8, 9, 10}, Stats{7, 10, 4, 4, 6}},
		{"wrapped, limit", 4, 10, 0, 10, 2, []uint64{7, 8}, []uint64{8, 9}, Stats{7, 10, 4, 4, 6}},
		{"at the ends", 4, 10, 10, 7, 9, []uint64{}, []uint64{}, Stats{7, 10, 4, 4, 6}},
		{"no limit given", 4, 4, 0, 99, 0, []uint64{}, []uint64{}, Stats{1, 4, 4, 4, 0}},
		{"size below one", 0, 2, 0, 99, 9, []uint64{2}, []uint64{2}, Stats{2, 2, 1, 1, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := fill(tt.size, tt.n)
			if got := seqs(r.After(tt.after, tt.limit)); !reflect.DeepEqual(got, tt.wantAfter) {
				t.Errorf("After(%d, %d) = %v, want %v", tt.after, tt.limit, got, tt.wantAfter)
			}
			if got := seqs(r.Before(tt.before, tt.limit)); !reflect.DeepEqual(got, tt.wantBefore) {
				t.Errorf("Before(%d, %d) = %v, want %v", tt.before, tt.limit, got, tt.wantBefore)
			}
			if got := r.Stats(); got != tt.stats {
				t.Errorf("Stats() = %+v, want %+v", got, tt.stats)
			}
		})
	}
}

func TestRingGet(t *testing.T) {
	r := fill(4, 10)
	for seq := range uint64(12) {
		rec, ok := r.Get(seq)
		if want := seq >= 7 && seq <= 10; ok != want {
			t.Errorf("Get(%d) kept = %v, want %v", seq, ok, want)
		}
		if ok && rec.Message != fmt.Sprint("m", seq) {
			t.Errorf("Get(%d) = %q", seq, rec.Message)
		}
	}
}

// Readers and writers at once: every read is contiguous and in order.
func TestRingConcurrent(t *testing.T) {
	r := NewRing(64)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 2000 {
				r.Append(Record{Message: fmt.Sprint(i)})
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			last := uint64(0)
			for range 500 {
				for _, rec := range r.After(last, 16) {
					if rec.Seq <= last {
						t.Errorf("record %d after %d", rec.Seq, last)
						return
					}
					last = rec.Seq
				}
			}
		})
	}
	wg.Wait()
	if got := r.Stats(); got.Newest != 8000 || got.Dropped != 8000-64 {
		t.Fatalf("Stats() = %+v", got)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{100, 100_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := NewRing(size)
			b.ReportAllocs()
			for b.Loop() {
				r.Append(Record{Message: "m"})
			}
		})
	}
}
