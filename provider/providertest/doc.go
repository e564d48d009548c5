// Package providertest is the contract of package provider as a test suite.
// Every implementation passes it, on a simulated host in virtual time and on a
// real daemon with real guests alike: what it demands is what the controller
// relies on, and no more.
//
// A [Rig] is a host with guests of a few kinds on which faults can be
// commanded. [Run] takes a new one for each case. Each answer of the provider,
// in whatever case, is also held to rules that know nothing of the case: that a
// read never condemns, that an address is never named without a source, that
// nothing is concluded from a source that was not asked.
//
// What the address sources said is collected in a [Record], by situation. The
// record of a real daemon, written to a file, is what a simulation is compared
// with ([Compare]), so that the simulation cannot drift from the truth.
//
// The suite waits by polling, never longer than the rig's [Patience] says; it
// runs in virtual time when [In] is given synctest.Test. It starts goroutines
// only inside a case and waits for them. It may import provider and model.
package providertest
