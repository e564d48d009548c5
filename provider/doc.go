// Package provider is the contract between the controller and whatever runs
// VMs, and the classes into which every error of it falls.
//
// A provider is stateless about proxies: what was true before is the
// controller's to know. It is idempotent in every write. Its reads never yield
// ErrPermanent for a proxy: a host that refuses reads is a misconfigured host,
// not a broken proxy. All its methods are safe for concurrent use, obey their
// context, and return within it even when the host does not answer; no caller's
// cancellation touches another caller.
//
// The package holds no I/O and starts no goroutine. It may import model alone.
package provider
