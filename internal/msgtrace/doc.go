// Package msgtrace writes RocketMQ's own message trace, which mqadmin queryMsgTraceById and the dashboard read: what was
// sent and every attempt to consume it, as Java's trace hooks write it (consumer-semantics.md 10).
//
// Promises:
//   - Records have the fields, their order and the separators of Java's TraceDataEncoder.
//   - Nothing waits for the trace: records go into a bounded queue; what it cannot take, and what no broker stores, is
//     counted (Counts) and logged at most once a minute. Handling, settling and sending never fail because of it.
//   - Records travel as Java batches them: up to 10 of one topic in a message, 5 s at most after the first, 128,000 bytes.
//   - The trace topic itself is not traced, nor is a message whose TRACE_ON is false.
//
// What differs from Java: each message of a batch has a request id of its own, since streamd's handlers answer message by
// message; its cost is its own, too. An attempt that ends without an answer (the plugin's process died, the queue was taken
// back) has a SubAfter with the code of an exception. A message without MSG_REGION, as 4.9 stores them, is traced under
// DefaultRegion, where Java writes nothing.
//
// Goroutines of a Tracer: one that gathers (Run), and up to four that send; Close waits for them.
package msgtrace
