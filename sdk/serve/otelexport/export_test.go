package otelexport

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/streamd/streamd/sdk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is an OTLP receiver on a unix socket, as the host's.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	got chan *collector.ExportTraceServiceRequest
}

func (r *receiver) Export(_ context.Context, in *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.got <- in
	return &collector.ExportTraceServiceResponse{}, nil
}

func TestSpansReachTheHost(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "o")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{got: make(chan *collector.ExportTraceServiceRequest, 10)}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()

	provider, err := newProvider(t.Context(), sdk.Info{Name: "acme", Version: "1"}, socket)
	if err != nil {
		t.Fatal(err)
	}
	attempt := func(flags trace.TraceFlags) context.Context {
		return trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}, TraceFlags: flags, Remote: true,
		}))
	}
	tracer := provider.Tracer("author")
	_, sampled := tracer.Start(attempt(1), "charge")
	sampled.End()
	_, unsampled := tracer.Start(attempt(0), "not sampled")
	unsampled.End()
	_, root := tracer.Start(t.Context(), "belongs to no message")
	root.End()
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	in := <-r.got
	spans := in.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()
	if len(spans) != 1 || spans[0].GetName() != "charge" || spans[0].GetParentSpanId()[0] != 3 || spans[0].GetTraceId()[1] != 2 {
		t.Errorf("exported %v", spans)
	}
	if len(r.got) != 0 {
		t.Error("more was exported")
	}
}

func TestWithoutASocketNothingHappens(t *testing.T) {
	t.Setenv("STREAMD_OTLP_SOCKET", "")
	Start(sdk.Info{Name: "acme"})()
}
