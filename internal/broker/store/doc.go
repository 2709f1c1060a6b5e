// Package store keeps what a broker must not lose: messages with their indexes and their schedule, open transactions, and tables
// of small values (topics, groups, offsets, key-value configs). Messages are in segments, which are files of messages behind each
// other; everything else is in Pebble, and so are messages that wait for their time or are small and synchronized one by one.
//
// Promises:
//
//   - A Change is stored whole or not at all: a message's queue entry, its indexes, its schedule entry and what the change ends (a
//     schedule entry, a transaction) are one batch, and a batch counts only when the messages are there that it points to. They
//     are written first, and are on the disk first; what a power loss leaves of the log without them is cut off.
//   - Changes become durable in the order in which they were submitted; after a crash a prefix of them is there.
//   - With FlushSync, what was reported as done survives kill -9 and power loss, and nobody reads a message before that.
//     With FlushAsync it survives kill -9, because the operating system has it; a power loss may take what was reported in
//     the last Options.FlushInterval.
//   - Offsets of a queue are dense, but for messages that waited for their time: the change that ends their waiting removes
//     them. Log offsets grow and are never reused by another message, with holes. Store times never decrease, whatever the
//     clock does.
//   - Slices handed out are the caller's, or in the memory that the caller lent (Limits.Buffer). What is handed in is the
//     caller's again once it was submitted.
//   - Nobody is told that something is stored when the store failed since it was asked for; Settled looks back to a Mark.
//   - A full disk refuses changes with ErrFull, is noticed before Pebble notices it, and is over by itself when there is
//     space. A disk that fails otherwise refuses everything with ErrFailed while the store opens itself again, and until its
//     user has read its tables again. Reads do not hang meanwhile. When the power goes too before that, it is as if it had gone
//     before the disk failed.
//   - What expires gives its disk space back: a segment goes when no message in it is left and none will be written to it, once the
//     disk has it that none is.
//   - A folder that another process has, that has something else in it, that was written by a newer version, that is damaged
//     or cannot be written is not opened; the error says which and where.
//   - A file that is found damaged later, when something in it is read, is an error for that reader (ErrDamaged), and one line in
//     the log; so is one that is not there any more. What is elsewhere is read and stored on.
//
// Layout: see keys.go for what is in Pebble, segment.go for the files of messages, mend.go for what a crash may leave. Opening reads
// the queues' bounds and the log's end, and of the messages those that a crash under FlushAsync may have taken.
//
// Goroutines: one commits groups of changes, one tells submitters that they are done (so that a submitter's callback does
// not hold up the next group), one synchronizes segments and log under FlushAsync, one expires messages and removes segments,
// one opens the store again after a failure; and Pebble's own. Close ends them all.
package store
