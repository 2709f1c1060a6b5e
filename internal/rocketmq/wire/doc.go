// Package wire turns RocketMQ's remoting protocol into Go values and back: frames, both header encodings, stored
// messages, and the typed requests and responses streamd sends or answers. It does no I/O, knows no clock and starts no
// goroutine; every decoder is safe on hostile input.
package wire
