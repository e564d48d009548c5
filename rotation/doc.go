// Package rotation is what leaves the process for other programs: today the
// local API on a unix socket, beside the store.
//
// Serve runs one goroutine for each connection and reads snapshots only; it
// never waits for the engine. It imports model.
package rotation
