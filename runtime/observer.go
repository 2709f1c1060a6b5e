package runtime

import (
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Observer hears what happens to messages; internal/telemetry fills it. Calls come from the hot path on many goroutines:
// they must not block, and must cost next to nothing for a message that is not sampled. What can be read off Status
// (lag, windows, counters) is not repeated here.
type Observer interface {
	// Begun counts n attempts of one topic that begin together.
	Begun(a *AttemptInfo, n int)
	// Attempt opens an attempt. It writes the span context for the handler's process to sc (left zero: none) and
	// returns nil when no span is recorded.
	Attempt(a *AttemptInfo, sc *[frame.TraceSize]byte) AttemptSpan
	// Acked counts n attempts of one topic that began together and were acked together, without outputs.
	Acked(a *AttemptInfo, n int, took time.Duration)
	// Answered is called once for each other verdict, sampled or not.
	Answered(a *AttemptInfo, v frame.Verdict, took time.Duration)
}

// AttemptInfo describes one delivery of a message to a handler. It is valid only during the call, and so is its Identity:
// clone what is kept. Begun and Acked tell only what the messages share: stream, group, handler, client, queue and topic.
type AttemptInfo struct {
	Stream, Group, Handler string
	Broker                 string // the cluster, as the config calls it
	ClientID               string
	Queue                  sdk.Queue // where it was pulled: a retry topic for attempts after the first
	Topic                  string    // the original topic
	Identity               string    // design.md 7: ORIGIN_MESSAGE_ID, else the own offset message id; empty when Answered tells of an ack
	TraceParent            []byte    // the message's property of that name; empty: it has none
	Number                 int       // the first attempt is 1
	BatchSize              int
	Stored                 Stored
	// Span is what Attempt returned; set for Answered, so that a failure's log record carries the trace. May be nil.
	Span AttemptSpan
}

// Stored decodes the message as its broker stores it. An attempt that is not sampled does not need it.
type Stored interface{ Message() *wire.Message }

// AttemptSpan is the recording of one sampled attempt.
type AttemptSpan interface {
	// Settle opens the span of what makes a verdict durable: "send_back", "dead_letter" or "send" (an output).
	Settle(operation, destination string) (done func(error))
	// End closes the attempt. v tells how the handler answered; err how the attempt failed otherwise (deadline, crash).
	End(v frame.Verdict, err error)
}
