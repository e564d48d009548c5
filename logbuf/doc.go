// Package logbuf keeps the newest log records in memory, so that a screen can
// show them: a bounded ring, a slog.Handler that fills it, and a handler that
// feeds the ring and a file or stderr alike.
//
// Ring and its handlers may be used from any number of goroutines. Appending is
// O(1), allocates little, does no I/O and waits for nobody but the short copy of
// a reader. Nothing is queued: what does not fit any more is overwritten, and
// counted. The package starts no goroutine.
//
// Records hold what hosts and guests said, byte for byte up to a bound. Whoever
// draws one on a terminal strips control characters first.
package logbuf
