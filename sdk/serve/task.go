package serve

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk"
)

// batch is one batch from the host with the state of its records.
type batch struct {
	frame.Batch
	messages []sdk.Message
	tasks    []task
	next     atomic.Int32    // first record that nobody has taken; only for batches without strands
	acked    []atomic.Uint64 // one bit a record: answered by a plain ack
	reported []uint64        // the bits that are with the host already; under lane.sendMu
	open     int             // records not reported yet; under lane.sendMu
}

// task is one record in the author's hands. It is its context too: that costs no allocation a record, and the parts that
// few authors use (the channel, the span) are made when asked for.
type task struct {
	lane  *lane
	batch *batch
	index int32
	// withdrawn says that the host wants the record back: if it has not started, it never will.
	withdrawn atomic.Bool
	begun     atomic.Int64 // nanoseconds on the lane's clock, plus 1; 0 = not running
	announced bool         // Started was sent; only the monitor touches it
	slot      int          // in the shared page; async only

	mu     sync.Mutex
	done   chan struct{}
	cause  error
	values context.Context //nolint:containedctx // this is a context: the span of the attempt lives in here
}

// noRecord is the index of the context of a whole batch.
const noRecord = -1

// Deadline is when the host gives the record up.
func (t *task) Deadline() (time.Time, bool) {
	if t.batch.Budget <= 0 {
		return time.Time{}, false
	}
	return t.lane.epoch.Add(time.Duration(t.begun.Load()) + t.batch.Budget), true
}

// Done is closed at the deadline, when the record is withdrawn, when the lane ends, and after the record is answered.
func (t *task) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		t.done = make(chan struct{})
		if t.cause != nil {
			close(t.done)
		}
	}
	return t.done
}

// Err says why Done is closed.
func (t *task) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause
}

// Value gives the span of this attempt to the OpenTelemetry API.
func (t *task) Value(key any) any {
	t.mu.Lock()
	if t.values == nil {
		t.values = t.lane.ctx
		if t.index != noRecord {
			if sc, ok := spanContext(t.batch.Records.TraceOf(int(t.index))); ok {
				t.values = trace.ContextWithRemoteSpanContext(t.lane.ctx, sc)
			}
		}
	}
	values := t.values
	t.mu.Unlock()
	return values.Value(key)
}

// end closes the context; the first cause stays.
func (t *task) end(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return
	}
	t.cause = cause
	if t.done != nil {
		close(t.done)
	}
}

// spanContext reads one entry of the trace column.
func spanContext(raw []byte) (trace.SpanContext, bool) {
	if len(raw) != frame.TraceSize {
		return trace.SpanContext{}, false
	}
	sc := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(raw[:16]), SpanID: trace.SpanID(raw[16:24]), TraceFlags: trace.TraceFlags(raw[24]), Remote: true,
	})
	return sc, sc.IsValid()
}

func newBatch(l *lane, b frame.Batch) *batch {
	n := b.Records.Len()
	words := (n + 63) / 64
	out := &batch{Batch: b, tasks: make([]task, n), acked: make([]atomic.Uint64, words), reported: make([]uint64, words), open: n}
	out.messages = sdk.NewMessages(&out.Records, n)
	for i := range out.tasks {
		t := &out.tasks[i]
		t.lane, t.batch, t.index = l, out, int32(i)
	}
	return out
}

func (b *batch) ack(i int32) { b.acked[i>>6].Or(1 << (i & 63)) }

// takeRest takes all records that nobody has started.
func (b *batch) takeRest() []task {
	n := int32(len(b.tasks))
	return b.tasks[min(b.next.Swap(n), n):]
}

// strand is that of a record; 0 = bound to none.
func (b *batch) strand(i int32) uint32 { return frame.At(b.Records.Strand, int(i)) }

// ordered tells whether strands bind records of the batch.
func (b *batch) ordered() bool { return len(b.Records.Strand) > 0 }
