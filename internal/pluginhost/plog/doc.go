// Package plog reads what plugin processes write to their standard error (and, after the handshake, to their standard
// output) and turns it into log records of the host.
//
// Promises:
//   - Reading never stops while the process lives, whatever it writes: a plugin never blocks on a full pipe.
//   - Nothing a plugin writes can harm the host: every field is untrusted, of any type and length. A line is kept up to
//     64 KiB and marked when it was cut; a flood is sampled, and what was dropped is counted and said.
//   - The last 64 KiB are kept as written: a crash is reported with its last words, whatever the log level or limit.
package plog
