// Package truth holds the provider to the truth: its tests (build tag "lab",
// `make test-truth`) run the real provider, in process, against real libvirt
// daemons with real VMs, on which daemons are killed and frozen, links cut,
// agents stopped and whole VMs halted.
//
// What they measure they log as tables; what they demand are the promises of
// package provider, with ceilings that a busy machine with two cores keeps.
// TestContract also records what the daemon's address sources said, which is
// what the simulated host is compared with:
//
//	go test -tags lab ./lab/truth/ -run TestContract -update
//
// The package has no code of its own. Its tests may import provider,
// provider/libvirt, provider/providertest and model. With LAB_KEEP=1 they use
// the lab that is up, and leave it so.
package truth
