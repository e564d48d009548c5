// Command mutate holds the tests to account: it breaks the code in known ways
// and demands that a named test goes red for each.
//
//	go run ./internal/mutate [-run REGEXP] [-tree DIR] [-patches DIR]
//
// A way to break the code is a patch in testdata/mutations, with a header:
//
//	# mutation: the explicit class is no longer wrapped around the causes
//	# red: ./provider/libvirt TestGet_everyAddressSourceFailingIsTransient
//	--- a/provider/libvirt/address.go
//	+++ b/provider/libvirt/address.go
//	...
//
// Each "red" line names a package and a test in it; several lines mean that each
// of the tests must fail. The tests must pass on the tree as it is; a patch that
// does not apply, or leaves the code unable to build, is a failure too, since it
// proves nothing.
//
// The work is done in a temporary copy; the tree itself is only read. Needs go
// and git on PATH. Exit code 0: all red; 1: not; 2: bad usage.
package main
