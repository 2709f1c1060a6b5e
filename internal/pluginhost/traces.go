package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TraceSink takes spans that plugins export. It must not block for long, and owns what it is given. Its error is the
// plugin's exporter's to see. It is not called any more when the host has closed.
type TraceSink func(ctx context.Context, spans []*trace.ResourceSpans) error

const (
	maxExport      = 4 << 20 // bytes of one export
	exportRate     = 5000    // spans a second of one plugin
	exportBurst    = 20000   // spans
	pluginResource = "streamd.plugin"
)

// traceServers offers each plugin a unix socket of its own that speaks OTLP's trace service, so that the host knows whose
// spans they are.
type traceServers struct {
	host *Host
	sink TraceSink

	mu      sync.Mutex
	servers map[string]*traceServer
	next    int
	closed  bool // a process that comes up now is stopped at once
}

func newTraceServers(h *Host, sink TraceSink) *traceServers {
	return &traceServers{host: h, sink: sink, servers: map[string]*traceServer{}}
}

// traceSocket returns the path of a plugin's socket, "" when traces are not taken.
func (h *Host) traceSocket(plugin string) string {
	if h.traces.sink == nil {
		return ""
	}
	path, err := h.traces.serve(plugin)
	if err != nil {
		h.logger.Error("plugins of this name cannot export traces", "plugin", plugin, "error", err)
	}
	return path
}

func (t *traceServers) serve(plugin string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.servers[plugin]; s != nil {
		return s.path, nil
	}
	if t.closed {
		return "", nil
	}
	t.next++
	path := filepath.Join(t.host.run.Path, fmt.Sprintf("otlp-%d.sock", t.next))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return "", fmt.Errorf("offering an OTLP socket: %w", err)
	}
	s := &traceServer{plugin: plugin, path: path, sink: t.sink, now: t.host.now, clean: t.host.redact, tokens: exportBurst}
	// The sink is gone soon after the host has closed, so Stop waits for those who are in it.
	s.server = grpc.NewServer(grpc.MaxRecvMsgSize(maxExport), grpc.MaxConcurrentStreams(8), grpc.WaitForHandlers(true))
	tracecollector.RegisterTraceServiceServer(s.server, s)
	t.servers[plugin] = s
	t.host.work.Go(func() {
		if err := s.server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.host.logger.Error("the OTLP socket of a plugin ended", "plugin", plugin, "error", err)
		}
	})
	return path, nil
}

func (t *traceServers) stop(plugin string) {
	t.mu.Lock()
	s := t.servers[plugin]
	delete(t.servers, plugin)
	t.mu.Unlock()
	if s != nil {
		s.server.Stop()
		_ = os.Remove(s.path) // the listener has removed it already, as a rule
	}
}

func (t *traceServers) close() {
	t.mu.Lock()
	t.closed = true
	names := make([]string, 0, len(t.servers))
	for name := range t.servers {
		names = append(names, name)
	}
	t.mu.Unlock()
	for _, name := range names {
		t.stop(name)
	}
}

// traceServer is OTLP's trace service for one plugin.
type traceServer struct {
	tracecollector.UnimplementedTraceServiceServer
	plugin, path string
	sink         TraceSink
	now          func() time.Time
	clean        func(string) string
	server       *grpc.Server
	refused      atomic.Uint64 // spans over the rate

	mu     sync.Mutex
	tokens float64
	last   time.Time
}

// Export takes spans, up to the rate; what is over it is refused as a whole, with a hint to sample.
func (s *traceServer) Export(ctx context.Context, request *tracecollector.ExportTraceServiceRequest) (*tracecollector.ExportTraceServiceResponse, error) {
	n := 0
	for _, r := range request.GetResourceSpans() {
		for _, scope := range r.GetScopeSpans() {
			n += len(scope.GetSpans())
			s.redact(scope.GetSpans())
		}
		s.mark(r)
	}
	if !s.allow(n) {
		s.refused.Add(uint64(n))
		return &tracecollector.ExportTraceServiceResponse{PartialSuccess: &tracecollector.ExportTracePartialSuccess{
			RejectedSpans: int64(n), ErrorMessage: fmt.Sprintf("plugin %s exports more than %d spans a second; sample them", s.plugin, exportRate),
		}}, nil
	}
	if err := s.sink(ctx, request.GetResourceSpans()); err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &tracecollector.ExportTraceServiceResponse{}, nil
}

// mark says whose spans they are; a plugin cannot claim another name.
func (s *traceServer) mark(r *trace.ResourceSpans) {
	if r.Resource == nil {
		r.Resource = &resource.Resource{}
	}
	own := &common.KeyValue{Key: pluginResource, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s.plugin}}}
	kept := []*common.KeyValue{own}
	for _, kv := range r.Resource.Attributes {
		if kv.GetKey() != pluginResource {
			kept = append(kept, kv)
		}
	}
	r.Resource.Attributes = kept
}

func (s *traceServer) allow(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.last.IsZero() {
		s.tokens = min(exportBurst, s.tokens+now.Sub(s.last).Seconds()*exportRate)
	}
	s.last = now
	if float64(n) > s.tokens {
		return false
	}
	s.tokens -= float64(n)
	return true
}
