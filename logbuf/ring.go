package logbuf

import (
	"log/slog"
	"sync"
	"time"
)

// Attr is one key and its value as text. Keys of groups are joined with dots.
type Attr struct{ Key, Value string }

// Record is one log record.
type Record struct {
	Seq     uint64 // set by Append, from 1, without gaps
	At      time.Time
	Level   slog.Level
	Message string
	Host    string // value of the top-level attribute "host", if there was one
	Proxy   string // value of the top-level attribute "proxy"
	Attrs   []Attr // the others, in the order in which they were given
}

// Stats describes a Ring at one instant.
type Stats struct {
	Oldest  uint64 // sequence number of the oldest record kept; 0 when empty
	Newest  uint64 // of the newest record; 0 when empty
	Len     int    // records kept
	Cap     int    // records that fit
	Dropped uint64 // records overwritten since the start
}

// Ring keeps the newest records. The zero value is unusable; see NewRing.
type Ring struct {
	mu  sync.Mutex
	buf []Record
	n   uint64 // records ever appended; record n stands at (n-1) mod len(buf)
}

// NewRing returns a ring for size records, at least one.
func NewRing(size int) *Ring { return &Ring{buf: make([]Record, max(size, 1))} }

// Append stores r, overwriting the oldest record when the ring is full, and
// returns the sequence number given to it. The caller must not change r.Attrs
// afterwards.
func (r *Ring) Append(rec Record) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	rec.Seq = r.n
	r.buf[(r.n-1)%uint64(len(r.buf))] = rec
	return r.n
}

// Stats returns the counters.
func (r *Ring) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{Newest: r.n, Cap: len(r.buf), Len: r.kept(), Oldest: r.oldest()}
	s.Dropped = r.n - uint64(s.Len)
	return s
}

// After returns at most limit records that follow seq, oldest first. It starts
// at the oldest record kept when those right after seq are gone already; a
// caller sees that by the gap in Seq. The records are copies; their Attrs are
// shared and must not be changed.
func (r *Ring) After(seq uint64, limit int) []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == 0 || seq >= r.n || limit <= 0 {
		return nil
	}
	from := max(seq+1, r.oldest())
	return r.copyRange(from, min(r.n-from+1, uint64(limit)))
}

// Before returns at most limit records that precede seq, oldest first. A seq
// past the newest record asks for the newest ones.
func (r *Ring) Before(seq uint64, limit int) []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	oldest := r.oldest()
	if r.n == 0 || seq <= oldest || limit <= 0 {
		return nil
	}
	end := min(seq-1, r.n)
	count := min(end-oldest+1, uint64(limit))
	return r.copyRange(end-count+1, count)
}

// Get returns the record with a sequence number, and whether it is still kept.
func (r *Ring) Get(seq uint64) (Record, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seq == 0 || seq > r.n || seq < r.oldest() {
		return Record{}, false
	}
	return r.buf[(seq-1)%uint64(len(r.buf))], true
}

func (r *Ring) kept() int { return int(min(r.n, uint64(len(r.buf)))) }

func (r *Ring) oldest() uint64 {
	if r.n == 0 {
		return 0
	}
	return r.n - uint64(r.kept()) + 1
}

func (r *Ring) copyRange(from, count uint64) []Record {
	out := make([]Record, 0, count)
	for seq := from; seq < from+count; seq++ {
		out = append(out, r.buf[(seq-1)%uint64(len(r.buf))])
	}
	return out
}
