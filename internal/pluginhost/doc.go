// Package pluginhost is the host's side of the process border: it finds, checks, starts, supervises, swaps and stops
// plugin processes, gives handlers their configs, and carries batches to them and verdicts back.
//
// Promises:
//   - A bad plugin hurts only itself. Whatever it prints, answers, holds or refuses, however it dies or freezes: the host
//     lives, other plugins go on, and the error says what happened, where, and what to do.
//   - What runs is what was hashed, at every start. It sees a short list of the host's environment and what its config
//     gives; its socket is in a directory of mode 0700, and behind mutual TLS unless that is off. A lane's own socket has no name.
//   - No process and no socket is left: children die with the host (parent-death signal), a stop is a ladder with bounded
//     rungs (drain, Shutdown, SIGTERM, SIGKILL of the group), and what a killed host left is swept by the next.
//   - A process that is wanted is tried for ever (see supervisor); nobody has to resume it. One that waits for its next try
//     is tried within seconds when its file has become another one, and at once by Retry. A frozen one is noticed within
//     seconds and replaced.
//   - On a lane never more is in flight than the plugin granted, every record is answered at most once, and answers of an
//     ended lane reach nobody. A lost lane tells its cause, the last words of the process, and for a crash or a hang the
//     suspects: records that ran when it died.
//   - A config is in force before the first record of its handler is sent, in each generation anew.
//   - A new version of a plugin is ready before the old one drains; one that does not come up, refuses a config that the
//     old one takes, or trips its breaker on probation is taken back.
//
// How it hangs together: Host → plugin (a name) → fleet (one version of its spec) → slot (one process that is kept
// running; supervisor.Core decides) → generation (one start) → Lane (one stream).
//
// Goroutines: the spawner's thread; one per slot, and one that looks at its file while it waits for its next try; per
// generation its exit watch, health, memory, retry of refused configs and three readers of its pipes; per lane a reader and
// a writer; go-plugin's own. Host.Close ends them all.
//
// Locks are leaves, taken in the order Host, fleet, slot, generation, Lane; none is held while a process is waited for.
//
// The package is for Linux.
package pluginhost
