// Package broker is streamd's embedded RocketMQ: a name server and a broker behind one listener, which official remoting
// clients and streamd speak to over the real protocol. What must last is in package store, in a data folder or in memory. It
// is also the fake of streamd's tests: its behavior on the wire is that of RocketMQ 5.3.3 with default settings, faults can
// be injected by request code and into the file system (package faultfs), and everything it holds can be looked at.
//
// Promises: what was answered with success is stored until it is expired or deleted: messages, offsets, topics, groups,
// key-value configs, what waits for its time, open transactions. Nothing is read before it is stored. A delivery of what
// waited and the end of its waiting are one change, as are a commit and the end of its transaction: each happens once,
// whatever fails. Stop and Start forget members, locks and held pulls, as a restart does. A disk that is full or fails
// answers 14, never "nothing there", and is over by itself. A hostile client harms its own connection only. Close leaves no
// goroutine behind.
//
// Time comes from package time and waiting is done on channels and timers only, so on a memnet.Network a broker runs in
// the virtual time of testing/synctest.
//
// Where it knowingly differs from 5.3.3 is in docs/embedded-broker.md, section Differences; what it has not, in section
// Knowingly absent. Beyond what a suite can see (design.md 11 and consumer-semantics.md 9.10 say why): held pulls end at
// their exact time instead of at a scan every 5 s; a member that expires is announced to the others; a shortened heartbeat
// from a member that the broker does not know is asked for the full form; a transaction ends once; exceptions have texts
// of our own.
//
// Bounds, so that no client takes what others need: what waits for one client and for all, large frames on their way, held
// pulls of one connection and in all, what members register, locks, topics, groups, parsed filters, counted keys. Each is a
// constant beside what it bounds. A client that does not take what it asked for is no longer read from; one that is sent
// things without asking anew, and takes none of them, is cut.
//
// Goroutines: those of package remote and of package store, and one that delivers what waited. Requests are handled on the
// reading goroutine of their connection, which does not wait for the disk: what a request changes is put in line, and its
// answer is sent when the store says that all until then is stored. Timers do the rest. State is in tables with a mutex
// each, held for moments; under one only the store's is taken.
package broker
