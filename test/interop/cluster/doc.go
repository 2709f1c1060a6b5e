// Package cluster starts a real Apache RocketMQ for tests: name server and brokers as JVM processes on loopback, the
// official Java tools and small Java peers beside them.
//
// Everything it starts ends with the test: processes are killed in t.Cleanup, and each JVM is told to die with its parent.
package cluster
