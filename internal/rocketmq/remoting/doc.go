// Package remoting is one connection to a name server or broker: frames in both directions, the table of outstanding
// requests, deadlines, and the answers to requests that the peer sends.
//
// Promises:
//
//   - Every Call ends: with the answer, with its context, or with the connection's end, whose named cause it returns.
//     Its entry in the table is gone then; an answer that comes later is dropped and counted.
//   - Every Hold ends too, in the same ways, by its done being called once.
//   - A CallError says whether the request can have reached the peer (Sent), so a caller can tell "did not happen" from
//     "unknown outcome".
//   - A length on the wire allocates nothing beyond twice the bytes that have arrived on the connection, plus 64 KiB.
//   - Outstanding requests are bounded (Config.MaxOutstanding) and so are the bytes waiting to be written; a caller beyond
//     the bounds waits under its context. Held requests (long polls) are not counted: their callers are one a queue.
//   - A peer that takes requests and says nothing is found out: silence while requests are out is probed, and a probe
//     without any byte in return closes the connection with ErrSilent. A peer that does not read is closed by the write
//     deadline.
//
// Goroutines of a Conn: read (frames in; never blocks on a handler), write (what a caller could not write at once), watch (silence,
// idling, draining), and at most Config.MaxHandlers that run Config.Handle. The first three end before Close returns;
// handlers get a context that ends with the connection.
//
// Time comes from package time, so that testing/synctest can drive it.
package remoting
