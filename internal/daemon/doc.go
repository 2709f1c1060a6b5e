// Package daemon puts the parts together: config → clients, plugin host, engine, telemetry, listeners; and holds them to
// one life: start, reload, drain.
//
// Promises:
//   - A start that fails releases everything it took. A state folder is used by one process at a time.
//   - A reload validates everything first, runs the new before it drains the old, and leaves the running config in force,
//     as it was, when anything is wrong. What cannot change in a running process is named, and then nothing is applied.
//   - The first SIGTERM or SIGINT drains within shutdown_timeout and tells the progress: pulling ends, handlers finish,
//     offsets are confirmed, groups are left, plugins stop, traces are flushed, in this order. A second one ends at once
//     (plugins die with this process) with 128 and the signal's number.
//   - A stop that leaves something unfinished says what, and is no clean exit. What is unfinished is delivered again; it
//     is never counted as failed.
//   - Secrets of the config reach no log line.
//
// Goroutines: Run's own loop; one for the start, one for reloads, one for the stop, each waited for by Run unless a second
// signal ends the process; one per listener. All others belong to the parts.
package daemon
