// Package settle makes verdicts durable: outputs are stored, failed messages are sent back or dead-lettered, and only
// then is the message settled in its window.
//
// Promises
//
//   - Durable first, settled after. A refusal or an unknown outcome is tried again with backoff while the window holds
//     the offset; it may store twice, it never loses.
//   - A message whose outputs were stored in part is not settled; the rest is tried again.
//   - Trouble with failure records never blocks settling: they are dropped and counted.
//   - Calls in flight are bounded, those to each broker (MaxCalls) and all together (MaxAll), however many messages fail: a broker
//     that is silent holds back what is for it alone.
//   - Outputs of a strand are stored in the order of its messages, also when one of them can be stored by nobody: then its message has
//     failed, and those after it are given back.
//
// Plan is pure: one transition table from verdict and outcome to the next step. Settler is the shell: one goroutine
// per stream, and one per call in flight. Recorder has one goroutine for failure records.
package settle
