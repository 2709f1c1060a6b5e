// Package produce sends lines, JSON lines or generated messages to RocketMQ: what "streamd produce" does.
//
// Promises: every message read is reported exactly once, as stored (with its ids) or as failed; a message is never
// reported as stored before the broker said so; messages are sent in the order read unless more than one may be in flight.
//
// Goroutines: Run starts Options.InFlight senders and waits for them before it returns.
package produce
