// Package serve runs a plugin: what a plugin's main calls.
//
//	func main() {
//		serve.Main(sdk.Info{Name: "acme", Version: "1.0.0"}, sdk.Component("invoice", newInvoice))
//	}
//
// # Promises
//
//   - File descriptor 1 goes to the host's log from the moment this package is initialized: a print cannot break the
//     handshake, which is written to a descriptor of its own.
//   - The process ends when the host does: within a second when its parent dies, within some when its connection closes.
//   - SIGINT is ignored: on a terminal it is for the host, which drains first.
//   - A verdict is sent as soon as a worker is idle, and at most 200 µs after it is known when none is; a slow record never
//     holds back another's verdict, nor does a message whose outputs wait for the host's credit.
//   - A record answered untouched was never given to the author's code. The records of one strand that wait when one of
//     them fails are given back so; the host therefore has records of one strand in one unanswered batch only.
//   - A message whose outputs are larger than the output credit left is sent when any credit is left: the credit may be
//     overdrawn by the outputs of one message.
//   - No shared lock and no allocation for each record that is acknowledged without outputs; memory is taken per batch.
//
// # Goroutines of a lane
//
// The reader takes frames from the host. The workers, as many as the stream's concurrency, call the author and report when
// they find nothing more to do. The reporter reports what has waited for the linger time. The monitor ends contexts at
// their deadline and sends Started. Flush and Revoked of the author run on goroutines of their own, so that they may block.
package serve
