package sdk

import (
	"context"
	"iter"
)

// Handler handles one message at a time; calls for different strands run concurrently. nil acknowledges the message, any
// error has it delivered again (see RetryAfter and Reject).
type Handler interface {
	Handle(ctx context.Context, m *Message) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, m *Message) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, m *Message) error { return f(ctx, m) }

// BatchHandler handles several messages in one call, such as one statement to a database. The result is the verdict of
// every message that Batch.Fail did not mark. Messages of one strand are in order within the batch.
type BatchHandler interface {
	HandleBatch(ctx context.Context, b *Batch) error
}

// BatchHandlerFunc is a function as a BatchHandler.
type BatchHandlerFunc func(ctx context.Context, b *Batch) error

// HandleBatch calls f.
func (f BatchHandlerFunc) HandleBatch(ctx context.Context, b *Batch) error { return f(ctx, b) }

// AsyncHandler takes messages and answers them later: done must be called exactly once, from any goroutine. HandleAsync
// itself should return soon. The deadline runs from the call, buffering included; the message's context ends with it.
// HandleAsync is called from one goroutine per stream, in order, one message of a strand at a time.
type AsyncHandler interface {
	HandleAsync(ctx context.Context, m *Message, done func(error))
	// Flush has everything that was taken answered. It is called before a drain or a revocation, and when the host
	// wants to move on.
	Flush(ctx context.Context) error
}

// Revoker is an optional interface of a handler: it hears that queues go to another member. Messages of these queues that
// are being handled go on; their context ends only when the hand-over can wait no longer. An error is logged.
type Revoker interface {
	Revoked(ctx context.Context, queues []Queue) error
}

// Closer is an optional interface of a handler: it is called once, after the last message, before the process ends.
type Closer interface {
	Close() error
}

// Batch is several messages of one stream.
type Batch struct {
	messages []*Message
	failed   []error
	marked   []bool
}

// NewBatch makes a batch. It is for serve and sdktest.
func NewBatch(messages []*Message) *Batch { return &Batch{messages: messages} }

// Len returns the number of messages.
func (b *Batch) Len() int { return len(b.messages) }

// At returns message i.
func (b *Batch) At(i int) *Message { return b.messages[i] }

// All ranges over the messages.
func (b *Batch) All() iter.Seq2[int, *Message] {
	return func(yield func(int, *Message) bool) {
		for i, m := range b.messages {
			if !yield(i, m) {
				return
			}
		}
	}
}

// Fail gives message i a verdict of its own; a nil error acknowledges it whatever HandleBatch returns. It must not be
// called concurrently.
func (b *Batch) Fail(i int, err error) {
	if b.marked == nil {
		b.failed, b.marked = make([]error, len(b.messages)), make([]bool, len(b.messages))
	}
	b.failed[i], b.marked[i] = err, true
}

// Result returns the verdict of message i when HandleBatch returned err.
func (b *Batch) Result(i int, err error) error {
	if b.marked != nil && b.marked[i] {
		return b.failed[i]
	}
	return err
}
