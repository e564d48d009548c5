// Package e2e watches a running virdeck from outside: it samples
// `virdeck status --json` into a timeline and asks the timeline what was true
// between two instants.
//
// The tests beside it (build tag "lab", `make test-lab`) drive the built binary
// against real libvirt daemons with real VMs. They read the documented status
// and the screen, and nothing else of virdeck; of its packages they import model
// for the schema alone.
//
// A Timeline may be written and read by any number of goroutines. The package
// starts none.
package e2e
