package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Server is the plugin's side of the contract: Main serves one over go-plugin, sdktest one in process.
type Server struct {
	pluginv1.UnimplementedPluginServer
	info   sdk.Info
	specs  []sdk.Spec
	logger *slog.Logger
	page   *frame.Page // may be nil
	taken  *sockets    // that the host passes; may be nil
	link   *border.Link
	ready  func() // called before each call into the author's code; may be nil

	mu        sync.Mutex
	instances map[string]*instance
	lanes     map[*lane]struct{}
	closed    bool
	running   sync.WaitGroup // lanes, and the closing of replaced instances
}

// instance is one configured use of a component.
type instance struct {
	spec         *sdk.Spec
	solver       Solver
	handler      sdk.Handler
	batchHandler sdk.BatchHandler
	asyncHandler sdk.AsyncHandler
	revoker      sdk.Revoker
	closer       sdk.Closer
	lanes        int            // open; under Server.mu
	replaced     bool           // closed after its last lane; under Server.mu
	work         sync.WaitGroup // goroutines that call the author
}

// NewServer checks the components. page may be nil; ready, when not nil, is called at the start of every call.
func NewServer(info sdk.Info, specs []sdk.Spec, logger *slog.Logger, page *frame.Page, ready func()) (*Server, error) {
	if len(specs) == 0 {
		return nil, errors.New("the plugin offers no component: pass sdk.Component(...) to serve.Main")
	}
	seen := make(map[string]bool)
	for i := range specs {
		switch {
		case specs[i].Name == "":
			return nil, fmt.Errorf("component %d has no name", i)
		case seen[specs[i].Name]:
			return nil, fmt.Errorf("component %q is there twice: names are unique within a plugin", specs[i].Name)
		case specs[i].New == nil:
			return nil, fmt.Errorf("component %q cannot be built: make it with sdk.Component", specs[i].Name)
		}
		seen[specs[i].Name] = true
	}
	return &Server{
		info: info, specs: specs, logger: logger, page: page, ready: ready,
		instances: make(map[string]*instance), lanes: make(map[*lane]struct{}),
	}, nil
}

// takeSockets has lanes go over sockets when the host passes them.
func (s *Server) takeSockets(link *border.Link) (err error) {
	s.link = link
	s.taken, err = openSockets(s.logger)
	return err
}

// Register adds the service to a gRPC server that was made with border options.
func (s *Server) Register(g *grpc.Server) { pluginv1.RegisterPluginServer(g, s) }

func (s *Server) enter() {
	if s.ready != nil {
		s.ready()
	}
}

// Describe lists the components.
func (s *Server) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	s.enter()
	features := []string{border.FeatureLanes, border.FeatureOutputs, border.FeatureSolve}
	if s.page != nil {
		features = append(features, border.FeaturePage)
	}
	if s.taken != nil {
		features = append(features, border.FeatureSockets)
	}
	out := &pluginv1.DescribeResponse{Name: s.info.Name, Version: s.info.Version, Features: features, MaxMessageBytes: border.MaxMessage}
	for i := range s.specs {
		spec := &s.specs[i]
		c := &pluginv1.Component{Name: spec.Name, Summary: spec.Summary, ConfigSchema: string(spec.Schema)}
		if spec.Kind == sdk.KindStrategy {
			c.Kind = pluginv1.Component_KIND_STRATEGY
			c.Needs = &pluginv1.Needs{
				Partial: spec.Needs.Partial, Attributes: spec.Needs.Attributes, Previous: spec.Needs.Previous,
				PerMember: spec.Needs.PerMember,
			}
		} else {
			c.Kind, c.Modes, c.Unordered = pluginv1.Component_KIND_HANDLER, []string{string(spec.Mode)}, spec.Unordered
		}
		out.Components = append(out.Components, c)
	}
	return out, nil
}

// Configure builds an instance. Configuring one again replaces it for lanes that are opened from then on; the old one goes
// on with its lanes and is closed after the last of them. A dry run builds one too, since only the author's code can judge a
// config, and closes it at once.
func (s *Server) Configure(ctx context.Context, r *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	s.enter()
	spec := s.spec(r.GetComponent())
	if spec == nil {
		return refusal("", fmt.Sprintf("plugin %q has no component %q", s.info.Name, r.GetComponent()), "one of "+s.names()), nil
	}
	// What the author starts while building must outlive the call.
	env := sdk.Env{Instance: r.GetInstance(), Logger: s.logger.With("instance", r.GetInstance())}
	built, found := spec.New(context.WithoutCancel(ctx), r.GetConfigJson(), env)
	out := &pluginv1.ConfigureResponse{}
	failed := false
	for _, d := range found {
		severity := pluginv1.Diagnostic_SEVERITY_WARNING
		if d.Severity != sdk.SeverityWarning {
			severity, failed = pluginv1.Diagnostic_SEVERITY_ERROR, true
		}
		out.Diagnostics = append(out.Diagnostics, &pluginv1.Diagnostic{Severity: severity, Pointer: d.Pointer, Text: utf8Text(d.Text), Hint: utf8Text(d.Hint)})
	}
	if failed {
		return out, nil
	}
	in, err := newInstance(spec, built)
	if err != nil {
		return refusal("", err.Error(), ""), nil
	}
	out.Needs = needsOf(in.solver)
	if r.GetDryRun() {
		in.close(s.logger)
		return out, nil
	}
	s.mu.Lock()
	old := s.instances[r.GetInstance()]
	s.instances[r.GetInstance()] = in
	idle := old != nil && old.lanes == 0
	if old != nil {
		old.replaced = true
	}
	s.mu.Unlock()
	if idle {
		old.close(s.logger)
	}
	return out, nil
}

func refusal(pointer, text, hint string) *pluginv1.ConfigureResponse {
	return &pluginv1.ConfigureResponse{Diagnostics: []*pluginv1.Diagnostic{
		{Severity: pluginv1.Diagnostic_SEVERITY_ERROR, Pointer: pointer, Text: utf8Text(text), Hint: hint},
	}}
}

func newInstance(spec *sdk.Spec, built any) (*instance, error) {
	in := &instance{spec: spec}
	in.revoker, _ = built.(sdk.Revoker)
	in.closer, _ = built.(sdk.Closer)
	var ok bool
	switch {
	case spec.Kind == sdk.KindStrategy:
		in.solver, ok = built.(Solver)
	case spec.Mode == sdk.ModeBatch:
		in.batchHandler, ok = built.(sdk.BatchHandler)
	case spec.Mode == sdk.ModeAsync:
		in.asyncHandler, ok = built.(sdk.AsyncHandler)
	default:
		in.handler, ok = built.(sdk.Handler)
	}
	if !ok {
		return nil, fmt.Errorf("component %q was built as %T, which does not fit its kind", spec.Name, built)
	}
	return in, nil
}

func (s *Server) spec(name string) *sdk.Spec {
	for i := range s.specs {
		if s.specs[i].Name == name {
			return &s.specs[i]
		}
	}
	return nil
}

func (s *Server) names() string {
	names := make([]string, len(s.specs))
	for i := range s.specs {
		names[i] = s.specs[i].Name
	}
	return strings.Join(names, ", ")
}

// Health counts records in hand; that it answers at all is the sign of life.
func (s *Server) Health(context.Context, *pluginv1.HealthRequest) (*pluginv1.HealthResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &pluginv1.HealthResponse{}
	for l := range s.lanes {
		running := l.inHand()
		out.Running += uint64(running)
		out.Buffered += uint64(max(0, l.outstanding.Load()-int64(running)))
	}
	return out, nil
}

// Lane serves one lane.
func (s *Server) Lane(stream grpc.BidiStreamingServer[pluginv1.HostFrame, pluginv1.PluginFrame]) error {
	s.enter()
	first := border.HostFrames()
	if err := stream.RecvMsg(first); err != nil {
		return err
	}
	open, ok := first.Cold.(*pluginv1.Open)
	if !ok {
		return status.Error(codes.InvalidArgument, "the first frame of a lane must be Open")
	}
	frames, err := s.framesOf(stream, open)
	if err != nil {
		return err
	}
	l, err := s.open(stream, frames, open)
	if err != nil {
		return err
	}
	defer s.laneEnded(l)
	return l.run()
}

// framesOf is what a lane's frames go over from Opened on. A socket is closed when the call ends.
func (s *Server) framesOf(stream grpc.ServerStream, open *pluginv1.Open) (border.Frames, error) {
	if !open.GetSocket() {
		return stream, nil
	}
	conn, err := s.taken.take(stream.Context(), open.GetGeneration())
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	context.AfterFunc(stream.Context(), func() { _ = conn.Close() }) // nobody uses it any more
	return s.link.Pipe(conn), nil
}

func (s *Server) open(stream grpc.ServerStream, frames border.Frames, open *pluginv1.Open) (*lane, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, status.Error(codes.Unavailable, "the plugin ends")
	}
	in := s.instances[open.GetInstance()]
	if in == nil || in.solver != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "instance %q is not a configured handler", open.GetInstance())
	}
	l := newLane(stream, frames, open, in, s.page, s.logger)
	in.lanes++
	s.lanes[l] = struct{}{}
	s.running.Add(1)
	return l, nil
}

func (s *Server) laneEnded(l *lane) {
	defer s.running.Done()
	in := l.instance
	s.mu.Lock()
	in.lanes--
	delete(s.lanes, l)
	last := in.replaced && in.lanes == 0
	s.mu.Unlock()
	if last { // on its own: the lane's reader ends only after the call that this is part of
		s.running.Go(func() { in.close(s.logger) })
	}
}

// Solve asks a strategy.
func (s *Server) Solve(ctx context.Context, r *pluginv1.SolveRequest) (response *pluginv1.SolveResponse, err error) {
	s.enter()
	s.mu.Lock()
	in := s.instances[r.GetInstance()]
	s.mu.Unlock()
	if in == nil || in.solver == nil {
		return nil, status.Errorf(codes.FailedPrecondition, "instance %q is not a configured strategy", r.GetInstance())
	}
	defer func() {
		if p := recover(); p != nil {
			s.logger.ErrorContext(ctx, "the strategy panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			response, err = &pluginv1.SolveResponse{Error: utf8Text(fmt.Sprintf("panic: %v", p))}, nil
		}
	}()
	response, err = in.solver.Solve(ctx, r)
	if err != nil {
		return &pluginv1.SolveResponse{Error: utf8Text(err.Error())}, nil
	}
	return response, nil
}

// Close closes all instances. The gRPC server has stopped: the contexts of all lanes have ended, and they are waited for.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	instances := s.instances
	s.instances = make(map[string]*instance)
	s.mu.Unlock()
	s.running.Wait()
	for _, in := range instances {
		in.close(s.logger)
	}
}

func (in *instance) close(logger *slog.Logger) {
	in.work.Wait()
	if in.closer == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			logger.Error("closing a component panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if err := in.closer.Close(); err != nil {
		logger.Error("closing a component", "component", in.spec.Name, "error", err)
	}
}
