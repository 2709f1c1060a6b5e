// Package grouprelease gives queues that a running member holds for want of a position one that the operator chose: what
// "streamd group release" does. A member holds a queue so when its stored offset is gone (offsets_lost) or lies above the
// queue's end with no time to go by (offset_out_of_range), and then asks its broker every few seconds whether somebody has
// stored another one. That is all there is to a release: the chosen offset is stored as a member's commit would be, for the
// held queues alone.
//
// Promises: only queues whose owner says, at that moment, that it holds them for want of a position are touched. Nothing is
// guessed: a queue that is named and not held so is an error that says what it is. An offset that the queue does not have is
// refused, and a time's is moved into the queue. All of it is known before the first offset is stored. A release is told as
// taken only when the owner no longer tells the hold; an offset that its owner has not taken stays stored.
//
// Goroutines: none.
package grouprelease
