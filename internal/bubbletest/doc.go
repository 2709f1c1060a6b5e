// Package bubbletest runs a test in virtual time: testing/synctest, kept from a fault of the race detector.
//
// With the detector, all timers of a bubble share one context of it, and two processors that let timers of one bubble fire
// in the same instant (one goroutine looks at a channel whose time has come while the bubble's clock moves on) write to that
// context without a lock: the process dies with a segmentation violation or a failed check of ThreadSanitizer, now and then,
// in whatever test is at work (golang/go#78156; Go 1.26.8 has it). On one processor at a time it cannot happen, and the
// detector, which orders by what happened before what, still sees every race of what ran.
//
// Promises: without the detector nothing is changed, so interleavings of several processors are met there.
package bubbletest
