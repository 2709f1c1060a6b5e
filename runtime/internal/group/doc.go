// Package group decides when a member rebalances and which queues it takes and gives up. It is pure: Core.Step(now,
// input) returns actions; the engine's member goroutine carries them out and feeds back what came of them.
//
// Promises
//
//   - "Don't know" is never "empty": a topic whose round brought nothing keeps the queues it has (design.md 1.4).
//   - A queue is taken only when its last ownership here has been released, and no streamd member lists it as owned or
//     draining, or HandOverLimit has passed; then the overlap is counted and named.
//   - A first notify rebalances at once, repeats coalesce over 100 to 500 ms, so that a storm of them costs two rounds a second.
package group
