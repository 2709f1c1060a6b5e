// Package memnet is a network inside one process: listeners and buffered connections with addresses, deadlines and half
// close, made of nothing but mutexes held for moments and channels. Its goroutines-in-waiting are durably blocked in the
// sense of testing/synctest, so virtual time runs over it, which it cannot over sockets.
//
// It starts no goroutines. A Network and its connections are safe for concurrent use.
package memnet
