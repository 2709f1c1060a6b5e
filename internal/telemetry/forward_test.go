package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/streamd/streamd/internal/bubbletest"
)

// stuckClient is a collector that accepts and never answers.
type stuckClient struct{ got int }

func (c *stuckClient) Start(context.Context) error { return nil }
func (c *stuckClient) Stop(context.Context) error  { return nil }
func (c *stuckClient) UploadTraces(ctx context.Context, _ []*tracepb.ResourceSpans) error {
	c.got++
	<-ctx.Done()
	return ctx.Err()
}

// TestForwarder_neverWaitsForACollector: TR-P04 for spans of plugins.
func TestForwarder_neverWaitsForACollector(t *testing.T) {
	t.Parallel()
	bubbletest.Run(t, func(t *testing.T) {
		c := &stuckClient{}
		f := newForwarder(c, slog.New(slog.DiscardHandler))
		start := time.Now()
		full := 0
		for range 10 * forwardQueue {
			if err := f.export(t.Context(), nil); errors.Is(err, errForwardFull) {
				full++
			}
		}
		if time.Since(start) != 0 {
			t.Errorf("giving spans took %s", time.Since(start))
		}
		if full < 8*forwardQueue || f.dropped.Load() != int64(full) {
			t.Errorf("%d refused, %d counted", full, f.dropped.Load())
		}
		ctx, cancel := context.WithTimeout(t.Context(), flushLimit)
		defer cancel()
		if err := f.close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != flushLimit {
			t.Errorf("close: %v after %s", err, time.Since(start))
		}
	})
}
