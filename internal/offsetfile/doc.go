// Package offsetfile keeps the offsets of one broadcasting member of one group: no broker does that.
//
// Promises:
//   - What Commit said is stored survives the end of the process and of the machine: a new file is written and synced, takes
//     the old one's name, and the folder is synced. After a crash at any step the old state is there or the new one, never
//     neither and never a mix.
//   - The state before the last one is kept as a backup. When the file is damaged or gone, the backup is used: it is older, so
//     messages come again and none is passed over. The damaged file is kept aside and told of.
//   - A file and a backup that are both damaged are an error that says what to do. No position is ever guessed.
//   - A file is found by the configured names of the member, the broker and the group: not by an address, a process id or a
//     time (scenario BC-P02). One of another member, or of a newer streamd, is refused.
//
// Goroutines: one while commits wait for their file to be written; it serves all that came meanwhile with one write, and
// pauses between two. Close waits for it.
package offsetfile
