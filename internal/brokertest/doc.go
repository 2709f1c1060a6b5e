// Package brokertest starts an embedded broker, its clients and members of its groups for tests of what looks at a cluster
// from outside.
//
// Promises: what it starts ends with the test, and a fault of that end is a fault of the test. Everything is given so much
// time that a busy machine makes no broker slow and no member silent.
package brokertest
