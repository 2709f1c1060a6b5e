// Package deadletters reads the dead letters of a group and sends chosen ones back: what "streamd dlq" does.
//
// Promises: reading joins no group and stores no offset. Redrive sends each chosen dead letter once: a journal on this
// machine says before each send which one it is, so that after a crash in the midst of one that one is named and waits for
// a decision; all others go on where they ended. A redriven message keeps its properties, its trace context and
// its identity (ORIGIN_MESSAGE_ID), has all its retries again, and says in a property which dead letter it was. The dead letter
// itself stays where it is: RocketMQ keeps it until it expires. By default it goes to the group's own retry topic, so that no
// other group sees it again (docs/decisions/0016-redrive.md).
//
// Goroutines: none.
package deadletters
