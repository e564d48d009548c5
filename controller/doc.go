// Package controller reconciles the declared proxies with what their hosts say,
// and publishes what it knows as immutable snapshots.
//
// It is level-based: it looks at what is, not at what happened. Events of a host
// only make it look sooner, and losing one costs at most one poll.
//
// # Goroutines and blocking
//
// Each host has a loop of its own (polls, schedule), a bounded number of workers
// (address reads), and a queue of its own, so that a host that does not answer
// starves no other. A proxy is read by one worker at a time. All state of a host
// is behind that host's mutex, which is never held over a call to a host; the
// order of locks is host, then health. Snapshot is lock-free. Submit does not
// wait for any host.
//
// # What it may not do
//
// It concludes nothing from a read that failed: see status.apply, which is pure
// and is the whole of that judgement. It imports health, provider and model; it
// knows neither the console nor libvirt.
package controller
