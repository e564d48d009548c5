// Package libvirt is the provider for libvirt hosts: one pooled link a host,
// the rule by which a guest's address is found, and the writes.
//
// # The link
//
// A Link owns one connection to one host, and redials it for as long as it
// lives. A connection that came up is a generation; a generation is never
// reconnected, it is replaced, since go-libvirt's object does not survive a
// second Connect. Calls are abandoned at their caller's deadline, never
// cancelled: the call keeps its slot until the daemon answers, and nobody's
// cancellation closes the connection. Only three things end a generation: the
// connection fails, a second opinion on a fresh connection finds the daemon
// silent (or this one connection clogged), or an operator asks for it.
//
// # Managed VMs
//
// Create works "anchor first": base image, then the definition with its mark
// (phase new), then disk and seed, then phase ready, start, autostart. Delete
// works "anchor last": phase deleting, autostart off, switched off, volumes, and
// the definition at the end. So whatever a crash leaves hangs on a domain that the
// next look finds, and nothing needs to be remembered: each call reads where it
// stands from the host. A late call, one that its caller gave up and that the
// daemon carries out after others, can turn a mark back to an earlier phase or
// bring a definition back; the next Create or Delete puts it right.
//
// Everything about a VM follows from its owner: UUID and MAC from fleet and uid,
// the name from these and the proxy's, the volumes' names from the domain's. An
// uploaded base volume is named after its content and counts only with a second,
// tiny volume beside it, the proof that all of it was read back.
//
// # Goroutines and blocking
//
// A Link runs one goroutine that dials and watches, a Provider one that reads
// events; each call runs in one of its own that ends when the daemon answers or
// the generation dies. Every method that takes a context returns within it.
// Callbacks are called from the package's goroutines and must not block.
//
// The package knows nothing of the controller, of health or of what was true
// before. It imports provider and model.
package libvirt
