// Package e2e tests streamd as its users have it: the built binary with plugin processes, before the in-memory broker on
// a loopback port. Its tests are the faults of brokers, plugins and strategies; in each nothing is lost, other streams go
// on, and a message says what happened, where, and what to do. They need no JVM; test/interop has the real broker.
package e2e
