// Package memstore keeps a broker's messages in memory: one log of encoded stored messages, and per queue an index into
// it, with the rules by which RocketMQ's store answers a read (consumer-semantics.md 3.7).
//
// Promises: an appended message never changes, so slices that Read and Lookup hand out stay valid and need no copy, even
// after the message expired or its topic was deleted. Offsets of a queue are dense. Log offsets grow and are never reused,
// but have holes where a message did not fit into the rest of a chunk, as RocketMQ's log has at the end of a file.
//
// A Store is safe for concurrent use, starts no goroutines and never blocks but for its own mutex.
package memstore
