package msgtrace

import (
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
)

// Observe returns an observer that writes each attempt to the tracer of its cluster and passes everything on to next.
// tracer gives the one of a broker of the config, nil for a cluster without a trace; it is asked for each attempt.
func Observe(next runtime.Observer, tracer func(broker string) *Tracer) runtime.Observer {
	return &observer{Observer: next, tracer: tracer}
}

type observer struct {
	runtime.Observer
	tracer func(broker string) *Tracer
}

// Attempt implements runtime.Observer.
func (o *observer) Attempt(a *runtime.AttemptInfo, sc *[frame.TraceSize]byte) runtime.AttemptSpan {
	inner := o.Observer.Attempt(a, sc)
	t := o.tracer(a.Broker)
	if t == nil || !t.traces(a.Topic) {
		return inner
	}
	m := a.Stored.Message()
	if on, ok := m.Property(wire.PropTraceOn); ok && string(on) == "false" {
		return inner
	}
	s := &span{tracer: t, inner: inner, attempt: attemptOf(t, a, m)}
	t.put(s.attempt.before())
	if known, ok := inner.(identified); ok {
		return &identifiedSpan{s, known}
	}
	return s
}

func attemptOf(t *Tracer, a *runtime.AttemptInfo, m *wire.Message) Attempt {
	region, _ := m.Property(wire.PropRegion)
	keys, _ := m.Property(wire.PropKeys)
	now := t.cfg.Now()
	return Attempt{
		Region: orDefault(string(region)), Group: a.Group, Topic: a.Topic, RequestID: t.ids.Next(now), MessageID: m.ID(), Keys: string(keys),
		Retries: max(0, a.Number-1), Began: now,
	}
}

// Answered implements runtime.Observer. next gets the span that it made itself.
func (o *observer) Answered(a *runtime.AttemptInfo, v frame.Verdict, took time.Duration) {
	own, ok := a.Span.(interface{ native() *span })
	if !ok {
		o.Observer.Answered(a, v, took)
		return
	}
	s := own.native()
	s.ended(codeOf(v))
	a.Span = s.inner
	o.Observer.Answered(a, v, took)
}

// codeOf is Java's word for a verdict.
func codeOf(v frame.Verdict) Code {
	switch {
	case v.Kind == frame.VerdictAck:
		return CodeSuccess
	case v.Class == "deadline":
		return CodeTimeout
	case v.Class == "panic", v.Class == "crash":
		return CodeException
	default:
		return CodeFailed
	}
}

// identified is what the engine's failure records look for in a span.
type identified interface{ TraceID() [16]byte }

// span is one attempt, with the span of the observer behind this one, which may be nil. The engine calls its methods from
// one goroutine at a time.
type span struct {
	tracer  *Tracer
	inner   runtime.AttemptSpan
	attempt Attempt
	over    bool
}

type identifiedSpan struct {
	*span
	identified
}

func (s *span) native() *span { return s }

func (s *span) ended(code Code) {
	if !s.over {
		s.over = true
		s.tracer.put(s.attempt.after(Ended{At: s.tracer.cfg.Now(), Code: code}))
	}
}

// Settle implements runtime.AttemptSpan.
func (s *span) Settle(operation, destination string) func(error) {
	if s.inner == nil {
		return func(error) {}
	}
	return s.inner.Settle(operation, destination)
}

// End implements runtime.AttemptSpan.
func (s *span) End(v frame.Verdict, err error) {
	if err != nil {
		s.ended(CodeException)
	} else {
		s.ended(codeOf(v))
	}
	if s.inner != nil {
		s.inner.End(v, err)
	}
}
