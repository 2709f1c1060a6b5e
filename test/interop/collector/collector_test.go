package collector

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/trace"
)

func TestCollector_keepsWhatTheSDKExports(t *testing.T) {
	c := New(t)
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpointURL(c.Endpoint))
	if err != nil {
		t.Fatal(err)
	}
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	_, span := provider.Tracer("test").Start(t.Context(), "hello")
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !c.Wait(ctx, func(s []Span) bool { return len(s) == 1 && s[0].Name() == "hello" }) {
		t.Errorf("received %d spans", len(c.Spans()))
	}
	if err := provider.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
