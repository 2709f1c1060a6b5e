// Package allocate divides the queues of a topic among the members of a group. Pure functions only: no I/O, no clock,
// no randomness, no goroutines, no package-level state.
//
// It has three parts.
//
// Strategies: Java's six with Java's exact results (consumer-semantics.md 2.9 and 2.10) and sticky. New makes one by
// its config name. PerMember turns the smallest contract (one member's share at a time) into a Strategy.
//
// The check: Check judges a whole map, CheckShares the shares of single members. What is wrong is an *InvalidError that
// names queue, members, rule and the way out.
//
// The Guard: it stands between the engine and a strategy in another process, and promises that
//
//   - an answer is applied only after the check, and after the strategy repeated it on the same input with another input
//     in between; an input seen before must be answered as before (determinism);
//   - without a usable member list (no list, own id missing or doubled) or queue list nothing is asked;
//   - whatever goes wrong, the last verified share stays, less the queues that are known to have vanished: never
//     "nothing", and never a queue that was not verified;
//   - each Decision names its reason and carries a command that reproduces the question.
//
// Digests make strategies comparable over members: they travel in the properties of a member's running info (code 307).
// AgreeInvalid is the only way to the fallback, CheckPeers keeps a group with Java or Go members to what those compute.
//
// Everything here is safe for concurrent use except a Guard, which belongs to one goroutine.
package allocate
