// Package lease keeps the brokers' locks of ordered queues (41, 42; consumer-semantics.md 6.1): one keeper for a stream.
//
// # Promises
//
//   - A queue's lock is asked for before anything of it is pulled, renewed every 20 s while the queue is owned or drained,
//     and given back after its last commit, also when it counts as lost because nobody renewed it. The queues of a broker share a call, and each broker has one call at a time, so
//     that no late answer undoes a later one.
//   - Whoever owns a queue hears of the lock's loss at most 27 s after the call that last got it was sent, by the clock
//     of this process that has gone on further: brokers keep it 60 s, so that only their clock's rate matters, and a handler has
//     half a minute to end.
//   - An answer that comes when its lease would be over is worth nothing: a process that stood still asks anew.
//   - A lock that is somebody else's is asked for again every 500 ms, and the status says whose it is when a member tells.
//
// Core is pure: inputs in, actions out, no goroutine, no clock. Keeper is the thin shell: one goroutine for a stream, and one
// per call under way.
package lease
