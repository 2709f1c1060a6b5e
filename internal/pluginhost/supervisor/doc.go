// Package supervisor decides when a plugin process is started, served, replaced and given time. It is a pure core:
// Step(now, event) returns what to do, and goroutines elsewhere do it.
//
// Promises:
//   - A process that is wanted is tried for ever: after each end or failure there is a next try, never more than
//     MaxPause away, or HalfOpen while the breaker is open. Nobody has to resume anything.
//   - Restarts back off (100 ms doubling to 30 s, with jitter) and the pause starts over after a minute in health.
//   - The breaker opens at 5 crashes in 2 minutes. A process that was executed and ends before its handshake, or never
//     comes to it, counts as one. Open, it lets one try through every 48 to 60 s, whatever the last one failed of; a try
//     that stays healthy for a minute closes it, and so does a Renew; nothing else does. Ends that are not the process's
//     fault, ends of a solo process (where suspects of a crash are tried), and tries that execute nothing (missing file,
//     wrong checksum, no memory to fork) do not count; they only back off.
//   - A wait ends early when there is a reason. Renew (another binary, a reload) tries at once and forgets what failed
//     before. Works (another process of the plugin became ready) tries at once what ended before it was ready, and forgets
//     nothing; after a crash in service it does nothing, or a plugin that crashes on messages would get around its breaker.
//   - Events of an earlier generation change nothing.
package supervisor
