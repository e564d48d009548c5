// Package simhost is a libvirt daemon on the wire, inside the process, with
// the virtual machines behind it. It speaks the real remote protocol to the
// real client library, so that the code under test, the demo and a fleet of
// thousands use the same provider code as against a real host.
//
// What it holds: a [Host] is one daemon with its [Domain]s and networks; each
// domain has a guest that boots in stages, an agent, leases, an ARP entry and a
// little forward proxy; an [Origin] is the web server that the proxies reach.
// Nothing leaves the process. What the daemon answers, and when, follows what
// real daemons (libvirt 9.0.0) were measured to do; where a rule is simplified,
// its comment says so.
//
// Connections exist in two forms: in memory ([Host.Dial], [Host.DialProxy],
// [Origin.Dial]), made of channels and condition variables only, so that a
// whole fleet runs in a testing/synctest bubble in virtual time; and on real
// sockets ([Host.ListenUnix], [Host.ListenProxies]) for other programs. A Host
// that is used in a bubble must be made in it.
//
// Promises. All methods are safe for concurrent use. Methods that change the
// simulation return at once and never wait for a client; the Dial functions
// honour their context. Every goroutine belongs to a Host or an Origin and has
// ended when its Close returns. Whatever a client sends, the package does not
// panic and allocates no more than a few times what was sent.
//
// The package may import the standard library and go-libvirt (constants and
// argument structs), and nothing of the product: a simulation that shares code
// with what it tests would share its mistakes.
package simhost
