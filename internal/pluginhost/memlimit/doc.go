// Package memlimit keeps a plugin's memory within its limit: by a cgroup of its own where the host's cgroup was
// delegated, else by watching what the process and its children hold.
//
// Promises:
//   - Which of the two is active can be told (Mechanism); neither is ever claimed without being in force.
//   - A process over its limit is ended with everything it started, and the end is known to be its memory's doing.
package memlimit
