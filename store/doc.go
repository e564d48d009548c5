// Package store keeps what must survive a restart: who a proxy is, where it was
// last seen, what an operator wished for it, and what has been counted against
// a replacement budget. Beside it stands the audit log.
//
// # Promises
//
// A write that was acknowledged is on the disk: Apply, Heartbeat and
// Audit.Append return after fsync, and cost what that costs (some ms). One
// Apply is one transaction: all of its changes or none. Applies that meet share
// one transaction, so that many goroutines do not wait for as many fsyncs. All
// types with methods that do I/O are safe for concurrent use. The package
// starts no goroutine and logs nothing; it blocks for the disk alone, and in
// Open at most Options.Timeout for another process to let go. A context is
// looked at before a write begins; a write that has begun is not given up.
//
// An Apply that returns an error has not happened, unless the error says that
// the disk failed: then nobody knows before the next Open, and this File
// refuses everything but Close.
//
// # One owner
//
// A File holds a lock on PATH.lock, which names its process and the socket of
// its dashboard, until it is closed or its process ends. Another Open returns
// ErrHeld. What stands in a lock file that nobody holds does not matter.
//
// # The file
//
// It is a bbolt file of mode 0600 with JSON values, made beside its place and
// renamed into it, so that it is never there half made: an empty file is not a
// fresh store but a lost one, and is refused. Schema 2 has the port of a proxy and
// the wish "stopping", schema 3 the wishes "starting" and "restarting"; they are
// else as schema 1:
//
//	bucket   key          value
//	meta     format       "virdeck store"
//	meta     schema       3
//	meta     fleet        the name of the fleet
//	meta     controller   random UUID, made with the file
//	meta     saved_at     time of the last heartbeat; not there before the first
//	meta     sum          {"records": n, "sum": "hex"}
//	hosts    host name    the libvirt UUID that is pinned for it
//	proxies  proxy name   wireProxy
//	adopted  proxy name   wireAdopted
//	budget   host/NAME    [times of counted actions]
//	budget   pool/NAME    the same
//
// Times are RFC 3339 in UTC. The values have passwords in them: nothing prints
// one. A field that is added, renamed or given another meaning makes a new
// schema, since readers are strict: one that passed over what it does not know
// would lose it with its next write. meta/format, meta/schema and the way in
// which sum is made are the same in every schema.
//
// The sum is there because bbolt has checksums on its two meta pages alone: a
// flipped bit in a password, or in the number of a page's records, is a good
// file to bbolt. It is the sum modulo 2^64 of a hash of each record but itself,
// which one write can keep up to date without reading the others.
//
// # What Open refuses
//
// A file is read before bbolt may see it: bbolt trusts its pages, and damage
// makes it panic, read past its mapping (a fault that ends the process in
// bbolt's own Check, which runs on another goroutine), or recurse until the
// stack is full. What inspect accepts is whole by more than Tx.Check asks: each
// page is in use once or free, keys are in order, the sum is right, and each
// record can be read. Anything else is ErrRefused, which names the way out, and
// the file is left as it is, byte for byte.
//
// Both meta pages have to be good. bbolt would go back one write if the newer
// one is not, and say nothing. A crash cannot tear a meta page, which is within
// one sector; damage can, and then the last write may be what was lost.
//
// A file that others may read is made 0600, and a directory in which others may
// write loses that; File.Notices says so. That others may look into a directory
// is left as it is: it may be /var/lib.
//
// # The audit log
//
// One JSON object a line, appended and synced one by one. It is never rotated
// by virdeck. It may be renamed or truncated at any time: the next line goes
// into what then has its name. A line that a crash cut short is closed by the
// next one and read back as PhaseUnreadable.
package store
