package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// tracing sets up the author's own tracing over the socket that the host offers, sampled as the host's span of the attempt is.
func tracing(ctx context.Context, on bool) (trace.Tracer, func(context.Context) error, error) {
	if !on {
		return noop.NewTracerProvider().Tracer("ledger"), func(context.Context) error { return nil }, nil
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint("unix://"+os.Getenv("STREAMD_OTLP_SOCKET")), otlptracegrpc.WithInsecure())
	if err != nil {
		return nil, nil, fmt.Errorf("making an exporter: %w", err)
	}
	r, err := resource.New(ctx, resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("describing the process: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(r),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	return p.Tracer("ledger"), p.Shutdown, nil
}
