// Package storetest is the contract of a store as a test suite. Every kind of
// store passes it: the controller knows no more of a store than stands here.
package storetest
