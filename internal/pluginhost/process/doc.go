// Package process starts and ends the operating system's side of a plugin: finding and checking the executable, the
// environment it sees, its pipes, its process group, its exit.
//
// Promises:
//   - What runs is what was hashed: an executable is opened once, hashed, and executed through that descriptor.
//   - A child dies with the host: every fork happens on one OS thread that lives as long as its Spawner, because the
//     kernel ties the parent-death signal to the thread that forked (golang issue 27505).
//   - An exit is noticed by the process itself (a pidfd), never by its pipes: a grandchild that holds them open delays
//     nothing. What is left of the process group is killed at that moment, before the pid can be used again.
//   - A signal is never sent to a pid that may belong to somebody else.
//
// Goroutines: one per Spawner (the locked thread), one per Process (waits for the exit). Linux only.
package process
