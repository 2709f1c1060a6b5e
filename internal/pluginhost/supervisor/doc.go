// Package supervisor decides when a plugin process is started, served, replaced and given time. It is a pure core:
// Step(now, event) returns what to do, and goroutines elsewhere do it.
//
// Promises:
//   - A process that is wanted is tried for ever: after each end or failure there is a next try, never more than
//     MaxPause away. Nobody has to resume anything.
//   - Restarts back off (100 ms doubling to 30 s, with jitter) and the pause starts over after a minute in health.
//   - The breaker opens at 5 exits in 2 minutes. Open, it lets one try through at most every 60 s; a try that stays
//     healthy for a minute closes it. Ends that are not the process's fault, ends of a solo process (where suspects of a
//     crash are tried), and failures to start at all do not count; failures to start only back off.
//   - Events of an earlier generation change nothing.
package supervisor
