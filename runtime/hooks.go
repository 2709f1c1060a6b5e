package runtime

import (
	"encoding/hex"
	"time"
	"unsafe"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/dispatch"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
)

// hooks turns what the dispatcher tells into calls of the observer and failure records. It belongs to the dispatcher's
// goroutine, so one AttemptInfo serves all calls.
type hooks struct {
	s    *stream
	info AttemptInfo
	text []byte // the identity of info
}

func newHooks(s *stream) dispatch.Hooks {
	c := s.config()
	return &hooks{s: s, info: AttemptInfo{Stream: s.name, Broker: c.Broker, Group: c.Group, Handler: c.Handler, ClientID: s.broker.ClientID()}}
}

// shared describes what messages of one queue and topic have in common.
func (h *hooks) shared(d *queue.Delivery) *AttemptInfo {
	h.info.Queue, h.info.Topic = d.Own.Queue, d.Topic
	h.info.Number, h.info.Stored, h.info.Identity, h.info.TraceParent, h.info.Span = 0, nil, "", nil, nil
	return &h.info
}

// fill describes d. The identity is lent by the caller: a string of its own for each message would be the only allocation
// of an attempt.
func (h *hooks) fill(d *queue.Delivery, identity []byte) *AttemptInfo {
	h.info.Queue, h.info.Topic, h.info.Number, h.info.Stored, h.info.TraceParent = d.Own.Queue, d.Topic, d.Attempt, d, d.Props.TraceParent()
	h.info.Identity = unsafe.String(unsafe.SliceData(identity), len(identity))
	h.info.Span = nil
	if d.Span != nil {
		h.info.Span = d.Span
	}
	return &h.info
}

// Begun implements dispatch.Hooks.
func (h *hooks) Begun(d *queue.Delivery, n int) {
	if h.s.rt.Observer != nil {
		h.s.rt.Observer.Begun(h.shared(d), n)
	}
}

// Attempt implements dispatch.Hooks.
func (h *hooks) Attempt(d *queue.Delivery, identity []byte, batch int, trace *[frame.TraceSize]byte) {
	if h.s.rt.Observer == nil {
		return
	}
	h.info.BatchSize = batch
	if span := h.s.rt.Observer.Attempt(h.fill(d, identity), trace); span != nil {
		d.Span = span
	}
}

// Acked implements dispatch.Hooks.
func (h *hooks) Acked(d *queue.Delivery, n int, took time.Duration) {
	h.rate(d, n, true, took)
	if h.s.rt.Observer != nil {
		h.s.rt.Observer.Acked(h.shared(d), n, took)
	}
}

// Answered implements dispatch.Hooks.
func (h *hooks) Answered(d *queue.Delivery, v frame.Verdict, took time.Duration) {
	h.rate(d, 1, v.Kind == frame.VerdictAck, took)
	if h.s.rt.Observer == nil {
		return
	}
	h.text = h.text[:0]
	if v.Kind != frame.VerdictAck {
		h.text = d.AppendIdentity(h.text)
	}
	h.s.rt.Observer.Answered(h.fill(d, h.text), v, took)
}

// rate counts attempts for the tools, by the topic that was pulled. Messages that an operator hands over are not counted.
func (h *hooks) rate(d *queue.Delivery, n int, acked bool, took time.Duration) {
	switch {
	case d.Direct != nil:
	case acked:
		h.s.rates.Consumed(d.Own.Queue.Topic, n, took)
	default:
		h.s.rates.Failed(d.Own.Queue.Topic, took)
	}
}

// Failed implements dispatch.Hooks.
func (h *hooks) Failed(d *queue.Delivery, v frame.Verdict, by *frame.LaneInfo, now time.Time) {
	h.s.failed(d, v, by, now)
}

// failed makes the record of a failed attempt.
func (s *stream) failed(d *queue.Delivery, v frame.Verdict, by *frame.LaneInfo, now time.Time) {
	c := s.config()
	f := settle.Failure{
		Identity: d.Identity(), UniqueKey: string(d.Props.UniqKey()), Group: c.Group, Stream: s.name, Topic: d.Topic,
		Queue: d.Queue().String(), Offset: d.Offset, Attempt: d.Attempt, Verdict: verdictName(v.Kind), Class: v.Class, Text: v.Text,
		Handler: c.Handler, Member: s.broker.ClientID(), Started: d.SentAt.UTC(), Failed: now.UTC(),
	}
	if by != nil {
		f.Plugin, f.PluginVersion, f.Checksum = by.Plugin, by.Version, by.Checksum
	}
	if t, ok := d.Span.(interface{ TraceID() [16]byte }); ok {
		id := t.TraceID()
		f.TraceID = hex.EncodeToString(id[:])
	}
	s.recorder.Record(f)
}

func verdictName(k frame.VerdictKind) string {
	switch k {
	case frame.VerdictRetry:
		return "retry"
	case frame.VerdictReject:
		return "reject"
	default:
		return "crash"
	}
}
