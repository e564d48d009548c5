// Package model is virdeck's vocabulary: the words of the fleet as plain types,
// and the decisions that need nothing but those types.
//
// It does no I/O, starts no goroutine, blocks nowhere and holds no package-level
// state. Everything in it is a value: once a *Snapshot, *HostView or *ProxyView
// has been published nobody changes it, so that any number of readers may hold
// it without a lock. It imports the standard library alone.
package model
