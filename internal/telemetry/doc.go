// Package telemetry sets up OpenTelemetry and gives every span, attribute, metric and log key its one home.
//
// Promises (design.md 1.7 and 12):
//
//   - Every attempt of a message is in one trace: the producer's when the message carries a traceparent, else a trace
//     whose id is a hash of the message's identity, so that attempts on different members meet.
//   - The context on a message is never overwritten.
//   - An unsampled message starts no span object; its failures are kept as log records with the trace id.
//   - A collector that is slow or gone never slows the handling of messages: queues are bounded and drops are counted.
//   - Spans that have ended are exported before Shutdown returns, or the flush limit is over.
//
// Goroutines: the batch processor's (one), the forwarder of plugins' spans (one). Both end in Shutdown.
package telemetry
