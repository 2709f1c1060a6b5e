// Package demo shows streamd at work, to people who have never seen it: `make run`. It starts configs/quickstart.yaml as two
// members of one group, the first of which holds the embedded broker, sends orders of which some fail once and some always,
// and shows what happens.
//
// Promises: it starts everything itself in a folder of its own and leaves nothing behind, neither process nor file, unless
// something went wrong: then the folder with the members' logs stays, and its name is the last thing said. What it sums up
// is counted, not believed: orders whose sending the broker confirmed, what the handlers themselves wrote of each attempt, by
// order, and what lies in the dead-letter topic. A loss makes it fail.
//
// An order is lost when the broker confirmed it and nobody can do anything about it any more: while the demo runs, when for
// 10 s longer than the oldest message of any queue nobody has touched it; at the end, when it is neither handled nor
// dead-lettered nor, by the broker's word, still to be consumed.
//
// With a name server given, the same runs on that RocketMQ instead of the embedded broker.
//
// Goroutines: one per child reads its lines; one sends the orders; one runs the show, reads and decides; Run waits for
// signals. Each is waited for before Run returns. A child is a process group of its own that dies with the demo.
package demo
