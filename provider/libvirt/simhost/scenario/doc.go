// Package scenario plays files in which faults of simulated hosts are written
// down: at what time, what, to whom. A file is TOML and may also declare the
// hosts and guests to which it all happens, and pools, whose VMs are to be made
// there by whoever looks at it:
//
//	title = "A daemon freezes while an agent hangs"
//
//	[[host]]
//	name = "kvm2"
//
//	[[guest]]
//	host = "kvm2"
//	name = "p-07"
//
//	[[step]]
//	at = "12s"
//	what = "agent-hang"
//	whom = "kvm2/p-07"
//	for = "30s"
//
//	[[step]]
//	at = "20s"
//	what = "freeze"
//	whom = "kvm2"
//	for = "10s"
//
// [Parse] reads one strictly: unknown keys, words and names, values out of
// range and parameters that a step does not take are [Problems], one line each
// with file and line. [Scenario.Build] makes the hosts, [Stage.Play] plays the
// steps on them. What can happen, and which parameters it takes, is the table of
// actions in this package; examples/all-faults.toml has each once.
//
// A [Stage] starts no goroutine of its own; Play blocks until the end. All
// methods of a Stage are safe for concurrent use. The package may import
// simhost, go-libvirt's constants, the TOML library and the standard library.
package scenario
