// Package queue owns single queues: it pulls, keeps the window of unsettled messages and commits.
//
// Promises
//
//   - The safe offset never passes a message that is not settled: Window.Safe is the offset of the lowest unsettled
//     message, or the next offset to pull when there is none (design.md 1.1, consumer-semantics.md 4.2).
//   - An ownership has an epoch. What is settled after its end (a hand-over, a reset) changes nothing: it is counted late.
//   - Nothing is skipped because a broker sent garbage: a message that does not decode is fetched again, and after
//     GarbageTries the queue holds at it and says so.
//   - A start position is committed and confirmed before the first pull.
//
// # Goroutines
//
// One goroutine per owned queue (Worker.run) decides everything. At most two more exist per queue, each for the length
// of one call and never two of a kind: the pull in flight and the commit in flight. Both end with the worker's context.
// The dispatcher settles into an Ownership under its lock, once per batch; the lock is never held over a call.
package queue
