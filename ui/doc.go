// Package ui is the operator's console: Bubble Tea models that show a fleet and
// send an operator's commands.
//
// It sees the fleet through the Engine interface alone and imports model and
// logbuf, never what stands behind them. It pulls: one tick, four times a
// second, compares the pointer of the snapshot with the one it shows. Nothing in
// Update or View does I/O or waits, so the console starts, moves and answers
// with every host down, and a stalled terminal holds up nobody but itself.
//
// A Model belongs to one session. The package has no mutable package state, so
// that any number of sessions may run in one process, and starts no goroutine
// but Run's.
//
// What an operator points at is remembered by name, never by row number. What
// came from a host, a guest or a client goes through clean before it is drawn.
package ui
