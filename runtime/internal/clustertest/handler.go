package clustertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk"
)

// Record is one record as a fake handler sees it.
type Record struct {
	ID, Topic, Keys, Tag string
	Body                 string
	QueueID              uint32
	Offset               uint64
	Attempt              uint32
	Solo                 bool
	Generation           uint64
	Strand               uint32
	Batch                uint64          // the number of the batch that it came in, among those of its lane
	Ended                <-chan struct{} // closed when the process that has the record ends
}

// Answer is a fake handler's verdict; the zero Answer is an ack.
type Answer struct {
	Verdict frame.Verdict
	Outputs []frame.Record
	// Sharding holds the outputs' sharding keys; shorter than Outputs = none for the rest.
	Sharding []string
	Crash    bool // the process dies with this record running
	Never    bool // no answer; the record stays running
}

// Handler opens lanes to an in-process function, with credits and generations as a plugin host has them.
type Handler struct {
	// Do handles one record; it may block until ctx ends.
	Do func(ctx context.Context, r Record) Answer
	// Told hears of each answer that reaches the engine, those of records that were not touched included; may be nil. It must
	// not call the handler.
	Told func(r Record, a Answer)
	// Down makes Open fail.
	Down func() error
	// Pages tells whether a crash names its suspects; default true.
	NoPages bool
	Info    frame.LaneInfo

	mu         sync.Mutex
	generation uint64
	lanes      map[*Lane]bool
	opened     int
	handled    []Record
	most       int
	out        int
}

// Opened is the number of lanes opened so far.
func (h *Handler) Opened() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opened
}

// Handled lists the deliveries so far.
func (h *Handler) Handled() []Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Record(nil), h.handled...)
}

// MostOut is the greatest number of records that were out at one time.
func (h *Handler) MostOut() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.most
}

// Lose ends every open lane.
func (h *Handler) Lose(cause frame.Cause, text string) {
	h.mu.Lock()
	all := make([]*Lane, 0, len(h.lanes))
	for l := range h.lanes {
		all = append(all, l)
	}
	h.mu.Unlock()
	for _, l := range all {
		l.lose(cause, text, nil)
	}
}

// Open opens a lane.
func (h *Handler) Open(ctx context.Context, spec frame.LaneSpec) (*Lane, error) {
	if h.Down != nil {
		if err := h.Down(); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.generation++
	h.opened++
	info := h.Info
	info.Generation = h.generation
	if info.Checksum == "" {
		info.Checksum, info.ConfigHash, info.Plugin = "sum", "conf", "fake"
	}
	l := &Lane{
		h: h, spec: spec, info: info, events: make(chan frame.Event, 4*spec.Credits+64), running: map[frame.Ref]context.CancelFunc{},
		slots: make(chan struct{}, max(1, spec.Concurrency)),
	}
	l.life, l.end = context.WithCancel(context.Background())
	if h.lanes == nil {
		h.lanes = map[*Lane]bool{}
	}
	h.lanes[l] = true
	l.events <- frame.Event{Kind: frame.EventCredit, Credits: spec.Credits}
	return l, nil
}

// Lane is a lane to a Handler.
type Lane struct {
	h      *Handler
	spec   frame.LaneSpec
	info   frame.LaneInfo
	events chan frame.Event
	slots  chan struct{}
	life   context.Context //nolint:containedctx // the process that the lane stands for
	end    context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	draining bool
	revoked  []uint32 // queues; what comes of them later is new
	out      int
	running  map[frame.Ref]context.CancelFunc
}

// Info implements runtime.Lane.
func (l *Lane) Info() frame.LaneInfo { return l.info }

// Events implements runtime.Lane.
func (l *Lane) Events() <-chan frame.Event { return l.events }

var errCredit = errors.New("more records than credits")

// Send implements runtime.Lane.
func (l *Lane) Send(b *frame.Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.draining {
		return frame.ErrLaneDone
	}
	n := b.Records.Len()
	if l.out+n > l.spec.Credits {
		return errors.Join(frame.ErrNoCredit, errCredit)
	}
	l.out += n
	l.revoked = nil
	l.h.count(n)
	strands := map[uint32][]task{}
	for i := range n {
		r := b.Records.Record(i)
		rec := Record{
			ID: r.ID, Topic: r.Topic, Keys: r.Keys, Tag: r.Tag, Body: string(r.Body), QueueID: r.QueueID, Offset: r.Offset,
			Attempt: r.Attempt, Solo: l.spec.Solo, Generation: l.info.Generation, Strand: r.Strand,
			Batch: b.Seq, Ended: l.life.Done(),
		}
		t := task{ref: frame.Ref{Seq: b.Seq, Index: uint32(i)}, rec: rec}
		var cancel context.CancelFunc
		t.ctx, cancel = context.WithCancel(l.life)
		l.running[t.ref] = cancel
		if rec.Strand == 0 {
			l.work.Go(func() { l.run(t) })
			continue
		}
		strands[rec.Strand] = append(strands[rec.Strand], t)
	}
	for _, tasks := range strands {
		l.work.Go(func() { l.runStrand(tasks) })
	}
	return nil
}

// task is one record in a handler's hands.
type task struct {
	ctx context.Context //nolint:containedctx // as in the SDK
	ref frame.Ref
	rec Record
}

// runStrand runs records one after another; what follows one that fails, or is canceled before its turn, is given back.
func (l *Lane) runStrand(tasks []task) {
	failed := false
	for _, t := range tasks {
		if failed || t.ctx.Err() != nil || l.isRevoked(t.rec.QueueID) {
			l.answer(t, Answer{Verdict: frame.Verdict{Kind: frame.VerdictUntouched}})
			continue
		}
		failed = !l.run(t)
	}
}

func (h *Handler) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.out += n
	h.most = max(h.most, h.out)
}

// run handles one record and tells whether it was acked.
func (l *Lane) run(t task) bool {
	ctx, ref, rec := t.ctx, t.ref, t.rec
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		l.answer(t, Answer{Verdict: frame.Verdict{Kind: frame.VerdictUntouched}})
		return false
	}
	defer func() { <-l.slots }()
	l.h.mu.Lock()
	l.h.handled = append(l.h.handled, rec)
	l.h.mu.Unlock()
	slow := time.AfterFunc(time.Second, func() { l.emit(frame.Event{Kind: frame.EventStarted, Ref: ref}) })
	defer slow.Stop()
	a := l.h.Do(ctx, rec)
	switch {
	case a.Crash:
		var suspects []frame.Ref
		if !l.h.NoPages {
			suspects = []frame.Ref{ref}
		}
		l.lose(frame.CauseCrash, "exit status 2: "+rec.Body, suspects)
	case a.Never:
		<-l.life.Done()
	default:
		l.answer(t, a)
	}
	return a.Verdict.Kind == 0 || a.Verdict.Kind == frame.VerdictAck
}

func (l *Lane) answer(t task, a Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.h.Told != nil {
		l.h.Told(t.rec, a)
	}
	ref := t.ref
	l.running[ref]()
	delete(l.running, ref)
	l.out--
	l.h.count(-1)
	res := &frame.Results{Seq: ref.Seq}
	if a.Verdict.Kind == 0 || a.Verdict.Kind == frame.VerdictAck {
		res.AckRuns = []uint32{ref.Index, 1}
	} else {
		a.Verdict.Index = ref.Index
		res.Verdicts = []frame.Verdict{a.Verdict}
	}
	var b frame.Builder
	for i := range a.Outputs {
		b.Append(&a.Outputs[i])
		res.Cause = append(res.Cause, ref.Index)
	}
	for i := range min(len(a.Sharding), len(a.Outputs)) {
		res.OutputShardingKey = append(res.OutputShardingKey, a.Sharding[i])
	}
	res.Outputs = *b.Records()
	l.events <- frame.Event{Kind: frame.EventResults, Results: res}
	if l.draining && l.out == 0 {
		l.close(frame.Event{Kind: frame.EventDrained})
		return
	}
	l.events <- frame.Event{Kind: frame.EventCredit, Credits: 1}
}

func (l *Lane) emit(e frame.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.events <- e
	}
}

func (l *Lane) lose(cause frame.Cause, text string, suspects []frame.Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.close(frame.Event{Kind: frame.EventLost, Lost: &frame.Lost{Cause: cause, Text: text, Suspects: suspects}})
	}
}

// close ends the lane with its last event; the caller holds mu.
func (l *Lane) close(last frame.Event) {
	l.closed = true
	l.h.count(-l.out)
	l.h.mu.Lock()
	delete(l.h.lanes, l)
	l.h.mu.Unlock()
	l.end()
	l.events <- last
	close(l.events)
}

// Cancel implements runtime.Lane.
func (l *Lane) Cancel(seq uint64, index []uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range index {
		if cancel := l.running[frame.Ref{Seq: seq, Index: i}]; cancel != nil {
			cancel()
		}
	}
}

// Revoke implements runtime.Lane: what waits in a strand is not started any more.
func (l *Lane) Revoke(queues []sdk.Queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range queues {
		l.revoked = append(l.revoked, uint32(q.ID))
	}
}

func (l *Lane) isRevoked(queueID uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.revoked, queueID)
}

// Drain implements runtime.Lane.
func (l *Lane) Drain(ctx context.Context) error {
	l.mu.Lock()
	l.draining = true
	if !l.closed && l.out == 0 {
		l.close(frame.Event{Kind: frame.EventDrained})
	}
	l.mu.Unlock()
	select {
	case <-l.life.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Abort implements runtime.Lane.
func (l *Lane) Abort(cause error) { l.lose(frame.CauseStopped, cause.Error(), nil) }
