// Package otelexport sends the author's spans to the host. A plugin that makes no spans does not import it and stays a few
// megabytes smaller; the trace context of each message is in its handler's context either way.
//
//	func main() {
//		info := sdk.Info{Name: "acme", Version: "1.0.0"}
//		stop := otelexport.Start(info)
//		defer stop()
//		serve.Main(info, sdk.Component("invoice", newInvoice))
//	}
package otelexport

import (
	"context"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/sdk"
)

const (
	// batchDelay is how long a finished span waits for others.
	batchDelay = time.Second
	// stopTimeout fits into the two seconds that a host gives a plugin for its end.
	stopTimeout = time.Second
)

// Start makes the global OpenTelemetry tracer provider export over the socket that the host offers. Spans follow the
// sampling of the attempt they belong to. Without a socket it does nothing: run by hand, under test, or with tracing off.
// stop sends what is left; call it when serve.Main has returned. A host that cannot be reached costs spans, never messages.
func Start(info sdk.Info) (stop func()) {
	socket := os.Getenv(border.EnvOTLPSocket)
	if socket == "" {
		return func() {}
	}
	provider, err := newProvider(context.Background(), info, socket)
	if err != nil {
		slog.Default().Error("exporting spans", "socket", socket, "error", err)
		return func() {}
	}
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			slog.Default().Warn("sending the last spans", "error", err)
		}
	}
}

func newProvider(ctx context.Context, info sdk.Info, socket string) (*trace.TracerProvider, error) {
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint("unix:"+socket), otlptracegrpc.WithInsecure())
	if err != nil {
		return nil, err
	}
	return trace.NewTracerProvider(
		trace.WithBatcher(exporter, trace.WithBatchTimeout(batchDelay)),
		trace.WithSampler(trace.ParentBased(trace.NeverSample())), // the host decides, attempt by attempt
		trace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", info.Name), attribute.String("service.version", info.Version))),
	), nil
}
