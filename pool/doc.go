// Package pool holds the pure decisions about pools of managed proxies: which
// members are to be made, drained, taken back or removed ([Plan]), and how many
// replacements are allowed in a time ([Ledger]).
//
// Nothing here does I/O, reads a clock, starts a goroutine or remembers
// anything between two calls, but for the Ledger, which is the data that its
// caller keeps. Functions do not change what they are given. A Ledger is for one
// goroutine at a time.
//
// # Identity
//
// A member is called POOL-ORDINAL, and keeps that name for as long as the pool
// declares it. Replacing it means another VM, with another uid, under the same
// name: the old one has to be gone first. So that nothing is missed meanwhile,
// another member with an ordinal beyond count stands in: an extra. Nobody is
// ever renamed, and two VMs never have one name. Extras are made in two cases:
//
//   - surge: while members that serve are to be replaced, up to surge of them;
//   - failover, where it is asked for: one for each member that is out of the
//     rotation on a host that has not answered for long. The lost member is not
//     touched; when it is back, its stand-in goes.
//
// What becomes of a pool of 3 with surge = 1 when its template changes:
//
//	web-1 web-2 web-3                   all of the old template
//	web-1 web-2 web-3 web-4             web-4 is made of the new one; nothing
//	                                    old goes before it is in the rotation
//	      web-2 web-3 web-4             web-1 drains, is deleted, and is made again
//	web-1 web-2 web-3 web-4             web-1 is in the rotation: next is web-2
//	...
//	web-1 web-2 web-3 web-4             all of the new one: web-4 drains
//	web-1 web-2 web-3
//
// A template that makes no working proxy stops at web-4: everything old serves
// on, and the plan says that it waits for web-4. With surge = 0 the members are
// replaced in place, one at a time, and it stops at the first.
//
// # Rules
//
//   - Nothing that Plan proposes brings the number in rotation below
//     MinAvailable. Where a fault brings it there, members that drain and still
//     pass are taken back.
//   - Surplus members go by the highest ordinal first. A surplus member that
//     serves stays, up to surge of them, while one with a lower ordinal does not.
//   - Whatever serves, or did, is drained before it is removed: for DrainTime,
//     or until it is known to have no open tunnels. Only a member that failed for
//     good, which means that no VM of it serves, is removed without.
//   - At most max(1, surge) members are being replaced at once: from draining to
//     the successor's first time in the rotation. Those out of the rotation are
//     replaced first, without an extra: nobody misses them.
//   - Members never move. A new ordinal goes to the host with the fewest members,
//     among those that answer. A host that does not answer causes nothing
//     elsewhere, but for failover; what has to be done on it waits.
//   - A member that an operator drained, stopped or deleted is not replaced, and
//     holds up no other; scaling down takes it.
//   - There are never more than count + surge members, not counting what failover
//     has written off, and surplus that cannot leave yet: because its host does not
//     answer, or because it is what keeps MinAvailable.
//
// A settled pool gives an empty Decision, and so does a pool that waits for
// something that is not in the planner's power.
package pool
