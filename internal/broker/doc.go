// Package broker is streamd's embedded RocketMQ: a name server and a broker behind one listener, which official remoting
// clients and streamd speak to over the real protocol. Its messages live in memory. It is also the fake of streamd's
// tests: its behavior on the wire is that of RocketMQ 5.3.3 with default settings, faults can be injected by request
// code, and everything it holds can be looked at.
//
// Promises: what was answered with success is stored until it is expired or deleted by a test; Stop and Start keep
// messages, offsets, topics and groups, and forget members, locks and held pulls, as a restart does. A hostile client
// harms its own connection only. Close leaves no goroutine behind.
//
// Time comes from package time and waiting is done on channels and timers only, so on a memnet.Network a broker runs in
// the virtual time of testing/synctest.
//
// Where it knowingly differs from 5.3.3 (design.md 11 and consumer-semantics.md 9.10 say why): held pulls end at their
// exact time instead of at a scan every 5 s; delayed and timer messages are delivered at their exact time instead of by a
// poll; a member that expires is announced to the others; a shortened heartbeat from a member that the broker does not
// know is asked for the full form; a half message is not stored again before each check, and a transaction ends once;
// exceptions have texts of our own; a wrong SQL92 expression of a
// pull is refused instead of ignored; POP, static topics and replicas are not there and their codes answer 3.
//
// Goroutines: those of package remote. Requests are handled on the reading goroutine of their connection; timers do the
// rest. State is in tables with a mutex each, held for moments; under one no other is taken, but for the delay schedule,
// which looks into the store while it holds its own.
package broker
