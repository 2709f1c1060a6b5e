// Package dispatch gives messages to lanes and fences what comes back.
//
// Core is pure: inputs in, actions out, no goroutine, no clock. Dispatcher is the thin shell around it: one goroutine
// per stream that feeds the core and carries out its actions, none of which blocks. One goroutine per lane opens it,
// forwards its events, and opens it anew when it is lost.
//
// Promises
//
//   - A record is answered once. What comes after its verdict, its deadline or the end of its ownership is counted late
//     and changes nothing.
//   - No more records are out on a lane than it granted credits for.
//   - A lost lane costs no attempt. Its records go out again, first in their queues; the suspects of a crash run alone.
//   - A suspect is rejected (class "crash") only if the same binary and config acked another record between two of its
//     solo crashes. Otherwise the plugin is broken: nothing is dead-lettered and Broken says so (design.md 10).
package dispatch
