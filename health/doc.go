// Package health sends real requests through every proxy and decides which of
// them are in rotation.
//
// # Rules
//
// A probe ends in a pass or in a failure with a culprit (model.Culprit). Only
// failures by the proxy's own fault, or the hop's to it, count against a proxy;
// rise passes in a row bring it in, fall failures in a row make its demotion
// due, and a witness must have spoken for the target and for us before a due
// demotion is committed. The rules are pure functions (next, decide); the Engine
// feeds them.
//
// # Goroutines and blocking
//
// Engine runs one goroutine for each tracked address and one for the control
// probes. All methods are safe for concurrent use and never wait for a probe.
// The dirty callback is called without any lock held, from the Engine's
// goroutines, and must not block.
//
// The package knows nothing of libvirt or of the controller; it imports model.
package health
