// Package lifecycle holds the rules of stopping that every command that runs on shares. Only Run starts a
// goroutine: the work that it is given.
//
// Promises: the first SIGTERM or SIGINT begins a drain, a second one ends at once; an echo of the first is no second one.
package lifecycle
