// Package runtime is the engine: it joins groups, divides queues, pulls, hands messages to handlers and settles them.
//
// New checks a Config without any I/O; Start joins; Apply changes what runs; Stop drains; Status tells what is held and why.
// The seams in seams.go are what it needs of the world: a broker, handlers, strategies, a clock. It knows none of them by name.
//
// # Promises
//
//   - No message is lost: the committed offset of a queue never passes a message that is not settled, and a message is
//     settled only after its verdict is durable: outputs stored, send-back or dead letter confirmed (internal/queue,
//     internal/settle).
//   - An attempt is counted only for a verdict retry or a deadline. A lost process, a drain, a swap costs none
//     (internal/dispatch).
//   - One owner: a queue is released only after its last commit was confirmed or given up, and taken only when no streamd
//     member lists it (internal/group), not even one that a broker has stopped listing a moment ago. What comes after the end of an
//     epoch changes nothing.
//   - "Don't know" is never "empty": without a member list, the own id in it, a route or a strategy's answer, the
//     last verified share stays, Status says why, and it is asked again. A broker that has only just come back may not list
//     everybody: who was listed before is waited for (returning.go).
//   - A stream that is not touched by Apply does not notice it. A changed handler starts before the old one drains.
//
// # Goroutines
//
// Per stream: the member (stream.go, member.go), the dispatcher, one per lane (internal/dispatch), the settler and its calls
// (bounded), the failure recorder (internal/settle), and at most one round and one poll of the other members. Per owned
// queue: its worker and at most one pull and one commit in flight (internal/queue). Nothing outlives Stop.
//
// Mutexes guard memory only; none is held over a call. Everything else is channels, timers and contexts, so that the
// whole engine runs in a testing/synctest bubble.
package runtime
