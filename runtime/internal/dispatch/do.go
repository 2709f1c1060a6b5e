package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"
	"unsafe"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
	"github.com/streamd/streamd/sdk"
)

// do carries out one action. None of it blocks.
func (d *Dispatcher) do(now time.Time, a *Action) {
	switch a.Kind {
	case ActSend:
		d.send(a)
	case ActAck:
		d.acked(now, a)
	case ActVerdict:
		d.verdict(now, a)
	case ActDrop:
		for _, m := range a.Items {
			endSpan(m, errors.New("given up: the queue was taken back"))
		}
		a.Own.Drop(a.Items, a.Out)
	case ActReturn:
		a.Own.Returned(len(a.Items))
		for _, m := range a.Items {
			endSpan(m, errors.New("the lane was lost; the message goes out again"))
		}
	case ActMove:
		for _, m := range slices.Backward(a.Items) {
			d.cfg.Move(m)
		}
	case ActTake:
		a.Own.Sent(len(a.Items))
	case ActCancel:
		if l := d.lanes[a.Lane]; l != nil {
			l.Cancel(a.Seq, a.Index)
		}
	case ActRevoke:
		for _, l := range d.lanes {
			l.Revoke([]sdk.Queue{a.Own.Queue})
		}
	case ActOpenSolo:
		d.solo()
	case ActClose:
		if l := d.lanes[a.Lane]; l != nil {
			d.drain(l)
		}
	case ActSettle:
		d.cfg.Settle(a.Job)
	case ActFailure:
		if d.cfg.Hooks != nil {
			d.cfg.Hooks.Failed(a.D, a.Verdict, a.Info, now)
		}
	}
}

// alike counts the first messages that are of one queue and topic.
func alike(ds []*queue.Delivery) int {
	n := 1
	for n < len(ds) && ds[n].Own == ds[0].Own && ds[n].Topic == ds[0].Topic {
		n++
	}
	return n
}

// send puts a batch into columns and on its lane, which makes the one copy of the payload.
func (d *Dispatcher) send(a *Action) {
	l := d.lanes[a.Lane]
	for run := a.Items; len(run) > 0; {
		n := alike(run)
		run[0].Own.Sent(n)
		if l != nil && d.cfg.Hooks != nil {
			d.cfg.Hooks.Begun(run[0], n)
		}
		run = run[n:]
	}
	if l == nil {
		return // lost meanwhile; its EventLost takes the records back
	}
	d.builder.Reset()
	for _, m := range a.Items {
		d.append(m, len(a.Items))
	}
	d.batch.Seq, d.batch.Budget, d.batch.Records = a.Seq, d.core.settings.Deadline, *d.builder.Records()
	if err := l.Send(&d.batch); err != nil && !errors.Is(err, frame.ErrLaneDone) {
		l.Abort(err) // no credit in spite of the count, or a frame that cannot be written: the lane cannot be trusted
	}
	d.builder.Reset()
}

func (d *Dispatcher) append(m *queue.Delivery, batch int) {
	d.idText = m.AppendIdentity(d.idText[:0])
	var trace []byte
	if d.cfg.Hooks != nil {
		clear(d.trace[:])
		d.cfg.Hooks.Attempt(m, d.idText, batch, &d.trace)
		if d.trace != ([frame.TraceSize]byte{}) {
			trace = d.trace[:]
		}
	}
	q := &m.Own.Queue
	d.builder.Borrow(&frame.Record{
		Topic: m.Topic, Broker: q.Broker, Tag: d.tag(m.Props.Tags()),
		QueueID: uint32(q.ID), Offset: uint64(m.Offset), //nolint:gosec // both are never negative
		BornMillis: uint64(m.BornMillis), StoreMillis: uint64(m.StoreMillis), //nolint:gosec // times since 1970
		Attempt: uint32(m.Attempt), //nolint:gosec // bounded by the retries
		Strand:  m.Strand,
		Trace:   trace, ID: borrow(d.idText), Keys: borrow(m.Props.Keys()), Properties: m.Props.Text, Body: m.Body,
	})
}

// borrow is a string for the length of a batch's sending, while nobody settles its messages.
func borrow(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// knownTags bounds the table of tags: a topic has few, and one that has many costs an allocation a message.
const knownTags = 1024

func (d *Dispatcher) tag(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if t, ok := d.tags[string(b)]; ok {
		return t
	}
	if len(d.tags) >= knownTags {
		clear(d.tags)
	}
	t := string(b)
	d.tags[t] = t
	return t
}

func (d *Dispatcher) acked(now time.Time, a *Action) {
	for run := a.Items; d.cfg.Hooks != nil && len(run) > 0; {
		n := alike(run)
		d.cfg.Hooks.Acked(run[0], n, now.Sub(run[0].SentAt)) // of one batch: all were sent in one moment
		for _, m := range run[:n] {
			if m.Span != nil {
				m.Span.End(frame.Verdict{Kind: frame.VerdictAck}, nil)
				m.Span = nil
			}
		}
		run = run[n:]
	}
	a.Own.Settle(a.Items)
}

func (d *Dispatcher) verdict(now time.Time, a *Action) {
	m := a.D
	if m.Direct != nil {
		if len(a.Outputs) > 0 { // its verdict counts once they are stored
			d.cfg.Settle(&settle.Job{Items: []settle.Item{{D: m, Outputs: a.Outputs}}, Verdict: a.Verdict, Info: *a.Info, Results: a.Results})
			return
		}
		m.Direct(a.Verdict)
		a.Own = m.Own
		m.Own.Settle([]*queue.Delivery{m})
		return
	}
	if d.cfg.Hooks != nil {
		d.cfg.Hooks.Answered(m, a.Verdict, now.Sub(m.SentAt))
		if a.Verdict.Kind != frame.VerdictAck {
			d.cfg.Hooks.Failed(m, a.Verdict, a.Info, now)
		}
	}
	item := settle.Item{D: m, Outputs: a.Outputs}
	if a.Results == nil {
		d.cfg.Settle(&settle.Job{Items: []settle.Item{item}, Verdict: a.Verdict, Info: *a.Info})
		return
	}
	j := d.jobs[a.Results] // acks of one answer share a job, so that their outputs share batches
	if j == nil {
		j = &settle.Job{Verdict: a.Verdict, Info: *a.Info, Results: a.Results}
		d.jobs[a.Results] = j
	}
	j.Items = append(j.Items, item)
}

func endSpan(m *queue.Delivery, err error) {
	if m.Span != nil {
		m.Span.End(frame.Verdict{}, err)
		m.Span = nil
	}
}

// closeTimeout bounds the draining of a lane that has nothing out.
const closeTimeout = 5 * time.Second

func closeLane(ctx context.Context, l Lane) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if err := l.Drain(ctx); err != nil {
		l.Abort(err)
	}
}
