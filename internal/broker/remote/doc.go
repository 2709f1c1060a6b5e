// Package remote is the server's half of RocketMQ's remoting protocol, below any meaning of the codes: it accepts
// connections, cuts streams into frames, hands requests to one handler, sends answers in the order in which they are
// given, and carries the server's own requests to clients with their answers.
//
// Promises: a frame's length is checked before anything is allocated, and a frame never takes more memory than twice what
// has arrived of it; a broken frame closes its own connection and no other. A peer that does not read its answers is not
// read from either, so what waits for it is bounded. After Close returns no goroutine of the server runs.
//
// Goroutines: one accepts; each connection has one that reads and runs the handler, and from its first answer on one that
// writes. The handler must not block: an answer may be given later, from any goroutine. Calls and idle times are timers,
// not goroutines. Everything waits on channels, so a server on an in-memory network runs in virtual time.
package remote
