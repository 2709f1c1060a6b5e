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
	return &hooks{s: s, info: AttemptInfo{Stream: s.name, Group: c.Group, Handler: c.Handler, ClientID: s.broker.ClientID()}}
}

// fill describes d. The identity is borrowed from a buffer that the next call overwrites: a string of its own for each
// message would be the only allocation of an attempt.
func (h *hooks) fill(d *queue.Delivery, identity bool) *AttemptInfo {
	h.info.Queue, h.info.Topic, h.info.Number, h.info.Message = d.Queue, d.Topic, d.Attempt, &d.Msg
	h.text = h.text[:0]
	if identity {
		h.text = d.AppendIdentity(h.text)
	}
	h.info.Identity = unsafe.String(unsafe.SliceData(h.text), len(h.text))
	h.info.Span = nil
	if d.Span != nil {
		h.info.Span = d.Span
	}
	return &h.info
}

// Attempt implements dispatch.Hooks.
func (h *hooks) Attempt(d *queue.Delivery, batch int, trace *[frame.TraceSize]byte) {
	if h.s.rt.Observer == nil {
		return
	}
	h.info.BatchSize = batch
	if span := h.s.rt.Observer.Attempt(h.fill(d, true), trace); span != nil {
		d.Span = span
	}
}

// Answered implements dispatch.Hooks.
func (h *hooks) Answered(d *queue.Delivery, v frame.Verdict, took time.Duration) {
	if h.s.rt.Observer != nil {
		h.s.rt.Observer.Answered(h.fill(d, v.Kind != frame.VerdictAck), v, took)
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
		Identity: d.Identity(), UniqueKey: string(d.Props.UniqKey), Group: c.Group, Stream: s.name, Topic: d.Topic,
		Queue: d.Queue.String(), Offset: d.Offset, Attempt: d.Attempt, Verdict: verdictName(v.Kind), Class: v.Class, Text: v.Text,
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
