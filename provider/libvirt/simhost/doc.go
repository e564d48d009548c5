// Package simhost is a libvirt daemon on the wire, inside the process, with
// the virtual machines behind it. It speaks the real remote protocol to the
// real client library, so that the code under test, the demo and a fleet of
// thousands use the same provider code as against a real host.
//
// What it holds: a [Host] is one daemon with its [Domain]s and networks; each
// domain has a guest that boots in stages, an agent, leases, an ARP entry and a
// little forward proxy; an [Origin] is the web server that the proxies reach.
// Nothing leaves the process.
//
// What the daemon answers, and when, follows what a real one (libvirt 9.0.0 with
// QEMU) was measured to do. A test replays a recording of its frames byte for
// byte, errors and events included; testdata/record-setup.sh says how to make it
// anew. Simplified are: descriptions have the devices that matter and no more;
// statistics have the state group alone; lists come in the order of AddDomain; a
// call is of normal or of high priority as in the protocol's definition, and
// nothing else is scheduled; a stream's packets take no place among a
// connection's calls; there are no snapshots. Messages of storage, of definitions
// and of downloads follow libvirt's source and were not recorded.
//
// Clients may define domains and create, fill, read and delete volumes in storage
// pools ([PoolSpec], [Host.Volume]); what a defined guest does that no XML says is
// filled in by [Options].OnDefine. A defined guest that finds a NoCloud seed on one
// of its disks takes the port and the credentials of its proxy from /etc/proxy.env
// of its user-data, as the lab's does. What a client does to the volumes of a
// running guest, which no daemon refuses, is recorded ([Host.Violations]).
//
// Faults are commanded at run time: of the daemon ([Host.Kill], [Host.Freeze],
// [Host.Refuse]), of calls ([Host.Inject]), of guests and their agents (the
// methods of [Domain]), of proxies ([Domain.SetProxy]) and of the origin
// ([Origin.SetMode]). Package scenario does it from a file.
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
