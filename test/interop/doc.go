// Package interop proves on the wire, against real RocketMQ brokers and beside the official Java and Go clients, what the
// other tests of streamd prove against fakes. It has no code of its own; its tests run by "make interop".
package interop
