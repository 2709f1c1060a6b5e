// Package lifecycle holds the rules of stopping that every command that runs on shares. It starts no goroutine.
//
// Promises: the first SIGTERM or SIGINT begins a drain, a second one ends at once; an echo of the first is no second one.
package lifecycle
