// Package firstparty serves streamd's own strategies, and computes them in process when their process fails.
//
// Promises:
//
//   - Specs is all that `streamd serve-plugin allocate` serves: the strategies of allocate through the same door as any
//     author's plugin.
//   - Strategies opens a built-in strategy as a process of the streamd binary. While that process is absent, dead or slow,
//     the same code answers in process, with the same identity: a member never stands still for want of its own binary.
//     A strategy of a plugin is passed through untouched.
//
// No goroutines of its own; safe for concurrent use.
package firstparty
