package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// forwarder sends the spans of plugins on to the collector. Its queue is bounded: what does not fit is dropped and
// counted, never waited for.
type forwarder struct {
	client  otlptrace.Client
	log     *slog.Logger
	queue   chan []*tracepb.ResourceSpans
	stop    context.CancelFunc
	done    chan struct{}
	closing sync.Once
	dropped atomic.Int64
}

const (
	forwardQueue   = 256 // requests of plugins
	forwardTimeout = 10 * time.Second
)

func newForwarder(client otlptrace.Client, log *slog.Logger) *forwarder {
	ctx, stop := context.WithCancel(context.Background())
	f := &forwarder{client: client, log: log, queue: make(chan []*tracepb.ResourceSpans, forwardQueue), stop: stop, done: make(chan struct{})}
	go f.run(ctx)
	return f
}

// errForwardFull tells a plugin's exporter that its spans were dropped.
var errForwardFull = errors.New("the queue of spans to the collector is full")

// export takes spans of a plugin. It never blocks.
func (f *forwarder) export(_ context.Context, spans []*tracepb.ResourceSpans) error {
	select {
	case f.queue <- spans:
		return nil
	default:
		f.dropped.Add(1)
		return errForwardFull
	}
}

func (f *forwarder) run(ctx context.Context) {
	defer close(f.done)
	for {
		select {
		case spans, more := <-f.queue:
			if !more {
				return
			}
			f.upload(ctx, spans)
		case <-ctx.Done():
			return
		}
	}
}

func (f *forwarder) upload(ctx context.Context, spans []*tracepb.ResourceSpans) {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	if err := f.client.UploadTraces(ctx, spans); err != nil {
		f.dropped.Add(1)
		f.log.Debug("spans of a plugin were not exported", "error", err)
	}
}

// close sends what is queued and ends, or gives up with ctx. export must not be called any more.
func (f *forwarder) close(ctx context.Context) error {
	f.closing.Do(func() { close(f.queue) })
	select {
	case <-f.done:
		f.stop()
		return nil
	case <-ctx.Done():
		f.stop()
		<-f.done
		return ctx.Err()
	}
}
