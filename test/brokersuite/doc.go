// Package brokersuite holds what a broker has to answer: scenarios that speak to any RocketMQ by the address of its name
// server, over the wire and through a client of its own, and write down what came back.
//
// What a real RocketMQ 5.3.3 answered lies in testdata/real, one file a scenario. The embedded broker's answers are compared
// with that in this package's test, the real broker's in test/interop; so both are held to the same text in the same run. A
// step in which the embedded broker is meant to differ is an entry of Differences, its answer lies in testdata/embedded,
// and docs/embedded-broker.md tells the reason. A step that differs without an entry fails, and so does an entry
// without a difference.
//
// Answers are made comparable first: addresses, times, log offsets and generated ids become words, and what has no order
// is sorted. Texts of Java exceptions are not compared: a broker in another language has its own.
//
// Goroutines: one reads each connection of a scenario; it ends with the scenario.
package brokersuite
