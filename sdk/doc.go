// Package sdk is what the author of a streamd plugin imports. It uses the standard library only.
//
// A plugin offers components. A handler is a type with one method; a constructor takes its config:
//
//	type Config struct {
//		Currency string `json:"currency" doc:"ISO 4217 code" required:"true"`
//	}
//
//	func newInvoice(ctx context.Context, c Config, env sdk.Env) (sdk.Handler, error) {
//		return sdk.HandlerFunc(func(ctx context.Context, m *sdk.Message) error {
//			return bill(ctx, m.Body(), c.Currency) // nil = ack, error = retry
//		}), nil
//	}
//
//	func main() {
//		serve.Main(sdk.Info{Name: "acme", Version: "1.0.0"}, sdk.Component("invoice", newInvoice))
//	}
//
// # Promises to the author
//
//   - Each message gets a verdict: nil acknowledges it, an error has it delivered again later, Reject dead-letters it now,
//     RetryAfter asks for a delay. A panic is a retry of class "panic".
//   - Messages are handled concurrently, up to the stream's concurrency, unless they are in the same strand: those come one
//     after the other, in order, and when one fails the rest of its strand is given back untouched.
//   - The context ends at the deadline, which runs from the record's start, and when its queue is taken away. It carries the
//     trace of this attempt.
//   - What a message returns (body, properties) stays valid and never changes after the handler has returned.
//   - Outputs count only when the message is acknowledged; they are stored before the message is settled.
//   - Delivery is at least once: Message.ID is the same over all attempts of a message.
//
// Config and its tags are described at Component.
package sdk
