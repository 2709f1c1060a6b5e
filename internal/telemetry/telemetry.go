package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Telemetry is streamd's OpenTelemetry: it observes attempts, serves /metrics and forwards the spans of plugins.
// Its methods are safe for concurrent use.
type Telemetry struct {
	config   Config
	log      *slog.Logger
	registry *prometheus.Registry
	traces   *sdktrace.TracerProvider // nil: no exporter
	tracer   trace.Tracer
	attempts *attempts
	forward  *forwarder // nil: no exporter that takes spans of plugins
	metrics  *metrics
	failures limiter
}

// New sets everything up. It connects to nothing: exporters connect on their own and retry.
func New(ctx context.Context, c Config, log *slog.Logger, console io.Writer) (*Telemetry, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	t := &Telemetry{config: c, log: log, registry: prometheus.NewRegistry(), failures: limiter{perMinute: 10}}
	res, err := resourceOf(ctx, c)
	if err != nil {
		return nil, err
	}
	t.metrics = newMetrics(t.registry, c)
	if t.attempts, err = openAttempts(c.StateDir); err != nil {
		return nil, err
	}
	if c.Disabled || len(c.Exporters) == 0 {
		return t, nil
	}
	return t, t.setUpTraces(ctx, res, console)
}

func resourceOf(ctx context.Context, c Config) (*resource.Resource, error) {
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(), resource.WithProcessExecutableName(),
		resource.WithAttributes(
			semconv.ServiceName(c.ServiceName), semconv.ServiceVersion(c.ServiceVersion), semconv.ServiceInstanceID(c.InstanceID)),
		resource.WithFromEnv()) // last: OTEL_RESOURCE_ATTRIBUTES wins
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describing this process for telemetry: %w", err)
	}
	return res, nil
}

func (t *Telemetry) setUpTraces(ctx context.Context, res *resource.Resource, console io.Writer) error {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(t.exportTrouble))
	options := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(res), sdktrace.WithIDGenerator(idGenerator{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // Attempt decides; what it does not want starts no span
	}
	if slices.Contains(t.config.Exporters, ExporterConsole) {
		e, err := stdouttrace.New(stdouttrace.WithWriter(console))
		if err != nil {
			return fmt.Errorf("setting up traces: %w", err)
		}
		options = append(options, sdktrace.WithBatcher(e))
	}
	if slices.Contains(t.config.Exporters, ExporterOTLP) {
		client := t.client()
		e, err := otlptrace.New(ctx, client)
		if err != nil {
			return fmt.Errorf("setting up traces: %w", err)
		}
		options = append(options, sdktrace.WithBatcher(e, sdktrace.WithBatchTimeout(time.Second), sdktrace.WithMaxQueueSize(8192)))
		t.forward = newForwarder(client, t.log) //nolint:contextcheck // it lives until Shutdown, not for the call
		t.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "streamd_telemetry_dropped_total", Help: "Exports of plugins that did not reach the collector.",
		}, func() float64 { return float64(t.forward.dropped.Load()) }))
	}
	t.traces = sdktrace.NewTracerProvider(options...)
	t.tracer = t.traces.Tracer(Scope, trace.WithInstrumentationVersion(t.config.ServiceVersion))
	return nil
}

func (t *Telemetry) client() otlptrace.Client {
	if t.config.Protocol == "http/protobuf" {
		var o []otlptracehttp.Option
		if t.config.Endpoint != "" {
			o = append(o, otlptracehttp.WithEndpointURL(t.config.Endpoint))
		}
		return otlptracehttp.NewClient(o...)
	}
	var o []otlptracegrpc.Option
	if t.config.Endpoint != "" {
		o = append(o, otlptracegrpc.WithEndpointURL(t.config.Endpoint))
	}
	return otlptracegrpc.NewClient(o...)
}

// exportTrouble hears of every failed export. A collector that is away must not fill the log.
func (t *Telemetry) exportTrouble(err error) {
	t.metrics.errors.Inc()
	if n, ok := t.failures.allow("export", time.Now()); ok {
		t.log.Warn("telemetry was not exported; messages go on", "error", err, "suppressed", n)
	}
}

// Handler serves /metrics in the Prometheus text form.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Sink takes the spans plugins export to the host (pluginhost.TraceSink); nil when there is nowhere to send them.
func (t *Telemetry) Sink() func(context.Context, []*tracepb.ResourceSpans) error {
	if t.forward == nil {
		return nil
	}
	return t.forward.export
}

// Tracer is for spans outside attempts, such as those of `produce`; it records nothing without an exporter.
func (t *Telemetry) Tracer() trace.Tracer {
	if t.tracer == nil {
		return noop.NewTracerProvider().Tracer(Scope)
	}
	return t.tracer
}

// flushLimit bounds Shutdown: a collector that does not answer costs a stop at most this.
const flushLimit = 5 * time.Second

// Shutdown exports what has ended and stops everything, within five seconds. Call it after the last message is settled;
// it does not look at the caller's context, which is usually canceled by then.
func (t *Telemetry) Shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	var errs []error
	if t.forward != nil {
		errs = append(errs, t.forward.close(ctx)) // before the provider stops the shared client
	}
	if t.traces != nil {
		errs = append(errs, t.traces.ForceFlush(ctx), t.traces.Shutdown(ctx))
	}
	errs = append(errs, t.attempts.close())
	return errors.Join(errs...)
}

// commonAttributes are on the spans of all streams.
func commonAttributes(operation, kind string) []attribute.KeyValue {
	return append(system(), semconv.MessagingOperationNameKey.String(operation), semconv.MessagingOperationTypeKey.String(kind))
}

// HostInstance is a name for service.instance.id when none is configured.
func HostInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s@%d", host, os.Getpid())
}
