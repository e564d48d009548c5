// Package demo is the fleet that the demo shows: three simulated hosts with
// fourteen VMs, a pool of two that are made, a VM that nobody has declared, and a
// story that makes something visible happen every ten to twenty seconds and begins
// anew after three minutes. All of it is written in
// story.toml, a scenario like any other; another one can be played in its place.
//
// A [Fleet] opens no socket: everything is reached through its Dial functions,
// which honour their context. Its story runs on one goroutine; Close ends it and
// all hosts. All methods are safe for concurrent use. The package may import
// simhost, its scenarios and the standard library.
package demo
