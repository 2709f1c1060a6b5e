package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
)

var (
	_ runtime.Observer    = (*Telemetry)(nil)
	_ runtime.AttemptSpan = (*span)(nil)
)

// origin is the context a message came with, or the one its identity gives it.
type origin struct {
	sc   trace.SpanContext
	root bool // no producer's context: attempts are roots of a trace named after the message
}

func (t *Telemetry) originOf(a *runtime.AttemptInfo) origin {
	c, root := t.contextOf(a)
	return origin{root: root, sc: trace.NewSpanContext(c)}
}

// contextOf is originOf without what only a recorded span needs: it runs for every message.
func (t *Telemetry) contextOf(a *runtime.AttemptInfo) (c trace.SpanContextConfig, root bool) {
	c.Remote = true
	if len(a.TraceParent) > 0 {
		var ok bool
		if c.TraceID, c.SpanID, c.TraceFlags, ok = parseTraceparent(a.TraceParent); ok {
			return c, false
		}
		t.metrics.contexts.Inc()
	}
	c.TraceFlags = 0
	c.TraceID, c.SpanID = traceOf(a.Identity)
	if t.tracer != nil && sampled(c.TraceID, t.config.SampleRatio) {
		c.TraceFlags = trace.FlagsSampled
	}
	return c, true
}

// Begun implements runtime.Observer.
func (t *Telemetry) Begun(a *runtime.AttemptInfo, n int) {
	t.metrics.attempt(a.Group, a.Topic).consumed.Add(float64(n))
}

// Acked implements runtime.Observer.
func (t *Telemetry) Acked(a *runtime.AttemptInfo, n int, took time.Duration) {
	acked, seconds := t.metrics.attempt(a.Group, a.Topic).acked, took.Seconds()
	for range n {
		acked.Observe(seconds)
	}
}

// Attempt implements runtime.Observer. What the handler's process gets is the attempt's own span, or for an unsampled
// message the context it came with: unsampled stays unsampled.
func (t *Telemetry) Attempt(a *runtime.AttemptInfo, sc *[frame.TraceSize]byte) runtime.AttemptSpan {
	c, root := t.contextOf(a)
	if t.tracer == nil || !c.TraceFlags.IsSampled() {
		put(sc, c.TraceID, c.SpanID, c.TraceFlags)
		return nil
	}
	s := t.start(a, origin{sc: trace.NewSpanContext(c), root: root})
	own := s.span.SpanContext()
	put(sc, own.TraceID(), own.SpanID(), own.TraceFlags())
	return s
}

func (t *Telemetry) start(a *runtime.AttemptInfo, o origin) *span {
	a.Identity = strings.Clone(a.Identity) // the span outlives the call
	ctx := context.Background()
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attemptAttributes(a)...),
	}
	switch {
	case o.root:
		ctx = wantTrace(ctx, o.sc.TraceID())
	case t.config.NoParent:
		options = append(options, trace.WithLinks(link(o.sc, "creation")))
	default:
		ctx = trace.ContextWithRemoteSpanContext(ctx, withState(o.sc, a.Stored.Message()))
		options = append(options, trace.WithLinks(link(o.sc, "creation")))
	}
	if previous, ok := t.attempts.last(a.Identity); ok && a.Number > 1 {
		options = append(options, trace.WithLinks(link(previous, "previous_attempt")))
	}
	ctx, sp := t.tracer.Start(ctx, operationProcess+" "+a.Topic, options...) //nolint:spancheck // ended by span.End
	//nolint:spancheck // as above
	return &span{t: t, ctx: ctx, span: sp, identity: a.Identity, topic: a.Topic, group: a.Group}
}

func withState(sc trace.SpanContext, m *wire.Message) trace.SpanContext {
	v, ok := m.Property("tracestate")
	if !ok {
		return sc
	}
	state, err := trace.ParseTraceState(string(v))
	if err != nil {
		return sc // the conventions drop a state that cannot be read and keep the parent
	}
	return sc.WithTraceState(state)
}

func link(sc trace.SpanContext, kind string) trace.Link {
	return trace.Link{SpanContext: sc, Attributes: []attribute.KeyValue{keyLinkType.String(kind)}}
}

func attemptAttributes(a *runtime.AttemptInfo) []attribute.KeyValue {
	m := a.Stored.Message()
	attrs := append(commonAttributes(operationProcess, operationProcess),
		semconv.MessagingConsumerGroupNameKey.String(a.Group),
		semconv.MessagingDestinationNameKey.String(a.Topic),
		semconv.MessagingDestinationPartitionIDKey.String(partition(a)),
		semconv.MessagingClientIDKey.String(a.ClientID),
		semconv.MessagingMessageIDKey.String(a.Identity),
		semconv.MessagingRocketMQConsumptionModelClustering,
		semconv.MessagingMessageBodySizeKey.Int(len(m.Body)),
		keyAttempt.Int(a.Number), keyQueueOffset.Int64(m.QueueOffset), keyStream.String(a.Stream), keyHandler.String(a.Handler))
	if a.Queue.Topic != a.Topic {
		attrs = append(attrs, keyPhysicalTopic.String(a.Queue.Topic))
	}
	if v, ok := m.Property(wire.PropUniqueKey); ok {
		attrs = append(attrs, keyUniqueKey.String(string(v)))
	}
	if v, ok := m.Property(wire.PropTags); ok {
		attrs = append(attrs, semconv.MessagingRocketMQMessageTagKey.String(string(v)))
	}
	if v, ok := m.Property(wire.PropKeys); ok {
		attrs = append(attrs, semconv.MessagingRocketMQMessageKeysKey.StringSlice(strings.Fields(string(v))))
	}
	return attrs
}

// Answered implements runtime.Observer.
func (t *Telemetry) Answered(a *runtime.AttemptInfo, v frame.Verdict, took time.Duration) {
	if !failed(v) {
		t.Acked(a, 1, took)
		return
	}
	t.metrics.process.WithLabelValues(operationProcess, a.Group, a.Topic, class(v)).Observe(took.Seconds())
	t.logFailure(a, v, took)
}

// logFailure keeps a failed attempt as a log record with its trace id, sampled or not. Never the body.
func (t *Telemetry) logFailure(a *runtime.AttemptInfo, v frame.Verdict, took time.Duration) {
	held, ok := t.failures.allow(a.Stream+"\x00"+class(v), time.Now())
	if !ok {
		return
	}
	sc := t.originOf(a).sc
	if s, ok := a.Span.(*span); ok && s != nil {
		sc = s.span.SpanContext()
	}
	level := slog.LevelWarn
	if v.Kind == frame.VerdictReject {
		level = slog.LevelError
	}
	t.log.LogAttrs(trace.ContextWithSpanContext(context.Background(), sc), level, "delivery failed",
		slog.String("stream", a.Stream), slog.String("group", a.Group), slog.String("topic", a.Topic),
		slog.String("queue", a.Queue.String()), slog.Int64("offset", a.Stored.Message().QueueOffset), slog.String("msg_id", a.Identity),
		slog.Int("attempt", a.Number), slog.String("handler", a.Handler), slog.String("verdict", outcome(v)),
		slog.String("error_type", class(v)), slog.String("error", v.Text), slog.Duration("took", took), slog.Int("suppressed", held))
}

func partition(a *runtime.AttemptInfo) string {
	q := a.Queue
	q.Topic = ""
	return q.String()[1:] // broker/id: ids repeat on every broker
}

func failed(v frame.Verdict) bool {
	return v.Kind == frame.VerdictRetry || v.Kind == frame.VerdictReject
}

func class(v frame.Verdict) string {
	if v.Class == "" {
		return "_OTHER"
	}
	return v.Class
}

func outcome(v frame.Verdict) string {
	switch v.Kind {
	case frame.VerdictAck:
		return outcomeSuccess
	case frame.VerdictRetry:
		return outcomeRetry
	case frame.VerdictReject:
		return outcomeDeadLetter
	case frame.VerdictUntouched:
		return outcomeUntouched
	}
	return outcomeLost
}

// span records one sampled attempt. Its methods are called by one goroutine at a time.
type span struct {
	t                      *Telemetry
	ctx                    context.Context //nolint:containedctx // the attempt's place in the trace, not a lifetime
	span                   trace.Span
	identity, topic, group string
	deadLettered           bool
}

// TraceID is what failure records name the attempt's trace by.
func (s *span) TraceID() [16]byte { return s.span.SpanContext().TraceID() }

// Settle implements runtime.AttemptSpan.
func (s *span) Settle(operation, destination string) func(error) {
	kind := "settle"
	if operation == operationSend {
		kind = operationSend
	}
	attrs := append(commonAttributes(operation, kind), semconv.MessagingDestinationNameKey.String(destination),
		semconv.MessagingConsumerGroupNameKey.String(s.group), semconv.MessagingMessageIDKey.String(s.identity))
	_, child := s.t.tracer.Start(s.ctx, operation+" "+destination, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...)) //nolint:spancheck // ended by what is returned
	//nolint:spancheck // as above
	return func(err error) {
		if err != nil {
			child.SetStatus(codes.Error, err.Error())
			child.SetAttributes(semconv.ErrorTypeKey.String(errorType(err)))
		} else if operation == operationDeadLetter {
			s.deadLettered = true
		}
		child.End()
	}
}

// End implements runtime.AttemptSpan.
func (s *span) End(v frame.Verdict, err error) {
	out := outcome(v)
	if s.deadLettered {
		out = outcomeDeadLetter
	}
	final := out == outcomeSuccess || out == outcomeDeadLetter
	s.span.SetAttributes(keyOutcome.String(out), keyFinal.Bool(final))
	switch {
	case err != nil:
		s.span.SetStatus(codes.Error, err.Error())
		s.span.SetAttributes(semconv.ErrorTypeKey.String(errorType(err)))
	case failed(v):
		s.span.SetStatus(codes.Error, v.Text)
		s.span.SetAttributes(semconv.ErrorTypeKey.String(class(v)))
	}
	s.span.End()
	if final {
		s.t.attempts.forget(s.identity)
		return
	}
	if err := s.t.attempts.put(s.identity, s.span.SpanContext()); err != nil {
		if n, ok := s.t.failures.allow("attempts", time.Now()); ok {
			s.t.log.Warn("the next attempt will not be linked to this one", "error", err, "suppressed", n)
		}
	}
}
