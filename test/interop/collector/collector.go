// Package collector runs the OpenTelemetry collector's own OTLP receiver in a test and keeps what arrives.
package collector

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/streamd/streamd/test/interop/cluster"
)

// Collector is a running receiver.
type Collector struct {
	Endpoint string // for OTEL_EXPORTER_OTLP_ENDPOINT, gRPC
	sink     *consumertest.TracesSink
}

// Span is one received span with the resource it came from.
type Span struct {
	ptrace.Span
	Resource pcommon.Resource
}

// New starts a receiver on a loopback port; it ends with the test.
func New(tb testing.TB) *Collector {
	tb.Helper()
	port, err := cluster.FreePort(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	settings := map[string]any{"protocols": map[string]any{"grpc": map[string]any{"endpoint": addr}}}
	if err := confmap.NewFromStringMap(settings).Unmarshal(config); err != nil {
		tb.Fatal(err)
	}
	c := &Collector{Endpoint: "http://" + addr, sink: new(consumertest.TracesSink)}
	r, err := factory.CreateTraces(tb.Context(), receivertest.NewNopSettings(factory.Type()), config, c.sink)
	if err != nil {
		tb.Fatal(err)
	}
	if err := r.Start(tb.Context(), componenttest.NewNopHost()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Shutdown(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Spans returns all spans received so far.
func (c *Collector) Spans() []Span {
	var spans []Span
	for _, td := range c.sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					spans = append(spans, Span{s, rs.Resource()})
				}
			}
		}
	}
	return spans
}

// Wait polls until ok accepts what was received.
func (c *Collector) Wait(ctx context.Context, ok func([]Span) bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok(c.Spans()) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
