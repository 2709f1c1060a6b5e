package sdktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/streamd/streamd/internal/border"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/sdk"
	"github.com/streamd/streamd/sdk/pluginv1"
)

// Message is a message to deliver. Zero fields are filled with something sensible: topic "Test", attempt 1.
type Message struct {
	ID, Topic, Broker, Tag string
	Keys                   []string
	Properties             map[string]string
	Body                   []byte
	QueueID                int32
	Offset                 int64
	Attempt                int
	Strand                 uint32 // equal numbers are handled in order; 0 = bound to none
	Trace                  []byte // trace id (16), span id (8), flags (1), or empty
}

// Kind tells how a message ended.
type Kind string

// The kinds of results.
const (
	Acked     Kind = "ack"
	Retried   Kind = "retry"
	Rejected  Kind = "reject"
	Untouched Kind = "untouched" // given back without the author having seen it
)

// Result is the verdict on one message.
type Result struct {
	Kind        Kind
	Delay       time.Duration
	Class, Text string
	Outputs     []sdk.Output
}

// Options of a lane. The zero value is usable.
type Options struct {
	Concurrency int           // 0 = 20
	Credits     int           // 0 = 1024
	Deadline    time.Duration // 0 = 60 s
	OutputBytes int           // credit for outputs; 0 = 8 MiB, negative = none
	Generation  uint64
	Lane        uint32
}

// Handler is a configured component.
type Handler struct {
	t        testing.TB
	plugin   *Plugin
	instance string
}

// Deliver opens a lane, delivers messages in one batch, drains, and returns the results in order.
func (h *Handler) Deliver(messages ...Message) []Result {
	h.t.Helper()
	lane := h.Open(Options{})
	seq := lane.Send(messages...)
	results := lane.Wait(seq, len(messages))
	lane.Drain()
	return results
}

// Lane is the host's end of a lane.
type Lane struct {
	t       testing.TB
	stream  grpc.ClientStream
	cancel  context.CancelFunc
	options Options
	seq     uint64
	frames  chan any // *frame.Results, frame.Ref, Credit, Drained, error; closed at the end
	state   lanes
}

// Credit is records granted by the plugin.
type Credit int

// Drained says that the plugin has answered everything.
type Drained struct{}

type lanes struct {
	results map[frame.Ref]Result
	credits int
	started []frame.Ref
	drained bool
	ended   bool
}

// Open opens a lane.
func (h *Handler) Open(o Options) *Lane {
	h.t.Helper()
	if o.Concurrency == 0 {
		o.Concurrency = 20
	}
	if o.Credits == 0 {
		o.Credits = 1024
	}
	if o.Deadline == 0 {
		o.Deadline = time.Minute
	}
	if o.OutputBytes == 0 {
		o.OutputBytes = 8 << 20
	}
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := h.plugin.client.Lane(ctx)
	if err != nil {
		cancel()
		h.t.Fatalf("opening a lane: %v", err)
	}
	l := &Lane{t: h.t, stream: stream, cancel: cancel, options: o, frames: make(chan any, 1), state: lanes{results: map[frame.Ref]Result{}}}
	l.send(&pluginv1.HostFrame{F: &pluginv1.HostFrame_Open{Open: &pluginv1.Open{
		Instance: h.instance, Stream: "sdktest", Concurrency: uint32(o.Concurrency), Credits: uint32(o.Credits),
		Generation: o.Generation, Lane: o.Lane,
	}}})
	if o.OutputBytes > 0 {
		l.Grant(o.OutputBytes)
	}
	go l.read()
	h.t.Cleanup(func() {
		cancel()
		for range l.frames {
		}
	})
	l.until("Opened", func() bool { return l.state.credits > 0 })
	return l
}

func (l *Lane) send(message any) {
	l.t.Helper()
	if err := l.stream.SendMsg(message); err != nil && !errors.Is(err, io.EOF) {
		l.t.Fatalf("sending a frame: %v", err)
	}
}

// Grant gives credit for outputs.
func (l *Lane) Grant(bytes int) { l.send(border.Raw(frame.AppendHostCredit(nil, uint64(bytes)))) }

// Send delivers messages in one batch and returns its number. It does not look at credits.
func (l *Lane) Send(messages ...Message) uint64 {
	l.t.Helper()
	var b frame.Builder
	for i := range messages {
		b.Append(messages[i].record(i))
	}
	l.seq++
	batch := frame.Batch{Seq: l.seq, Budget: l.options.Deadline, Records: *b.Records()}
	e := frame.EncodeBatch(&batch)
	l.send(&e)
	return l.seq
}

func (m *Message) record(i int) *frame.Record {
	var text strings.Builder
	for name, value := range m.Properties {
		text.WriteString(name + "\x01" + value + "\x02")
	}
	r := &frame.Record{
		Topic: m.Topic, Broker: m.Broker, Tag: m.Tag, QueueID: uint32(m.QueueID), Offset: uint64(m.Offset),
		BornMillis: 1_700_000_000_000, StoreMillis: 1_700_000_000_001, Attempt: uint32(max(1, m.Attempt)), Strand: m.Strand,
		Trace: m.Trace, ID: m.ID, Keys: strings.Join(m.Keys, " "), Properties: []byte(text.String()), Body: m.Body,
	}
	if r.Topic == "" {
		r.Topic = "Test"
	}
	if r.ID == "" {
		r.ID = fmt.Sprintf("sdktest-%d", i)
	}
	return r
}

// SendRaw sends bytes as they are: what a broken host would send.
func (l *Lane) SendRaw(data []byte) { l.send(border.Raw(data)) }

// Cancel withdraws messages of a batch; no index means all.
func (l *Lane) Cancel(seq uint64, index ...uint32) {
	l.send(border.Raw(frame.AppendCancel(nil, seq, index)))
}

// Revoke tells the plugin that queues go.
func (l *Lane) Revoke(queues ...sdk.Queue) {
	r := &pluginv1.Revoke{}
	for _, q := range queues {
		r.Queues = append(r.Queues, &pluginv1.Queue{Topic: q.Topic, Broker: q.Broker, Id: q.ID})
	}
	l.send(&pluginv1.HostFrame{F: &pluginv1.HostFrame_Revoke{Revoke: r}})
}

// Flush asks an AsyncHandler to answer what it has buffered.
func (l *Lane) Flush() {
	l.send(&pluginv1.HostFrame{F: &pluginv1.HostFrame_Flush{Flush: &pluginv1.Flush{}}})
}

// StartDrain asks for a drain without waiting for its end.
func (l *Lane) StartDrain() {
	l.send(&pluginv1.HostFrame{F: &pluginv1.HostFrame_Drain{Drain: &pluginv1.Drain{GraceMs: 5000}}})
}

// Drain drains the lane and waits for its end.
func (l *Lane) Drain() {
	l.t.Helper()
	l.StartDrain()
	l.until("Drained", func() bool { return l.state.drained && l.state.ended })
}

// Close ends the lane from the host's side, as a host that dies does.
func (l *Lane) Close() { l.cancel() }

// Wait returns the results of the first n messages of a batch, once all are there.
func (l *Lane) Wait(seq uint64, n int) []Result {
	l.t.Helper()
	l.until(fmt.Sprintf("%d verdicts of batch %d", n, seq), func() bool {
		for i := range n {
			if _, ok := l.state.results[frame.Ref{Seq: seq, Index: uint32(i)}]; !ok {
				return false
			}
		}
		return true
	})
	out := make([]Result, n)
	for i := range out {
		out[i] = l.state.results[frame.Ref{Seq: seq, Index: uint32(i)}]
	}
	return out
}

// WaitFor returns the result of one message.
func (l *Lane) WaitFor(seq uint64, index uint32) Result {
	l.t.Helper()
	ref := frame.Ref{Seq: seq, Index: index}
	l.until(fmt.Sprintf("the verdict of message %d of batch %d", index, seq), func() bool { _, ok := l.state.results[ref]; return ok })
	return l.state.results[ref]
}

// Answered returns how many messages have a verdict that has been read; it waits for nothing.
func (l *Lane) Answered() int { return len(l.state.results) }

// Credits waits until the plugin has granted n records in all, the first grant included.
func (l *Lane) Credits(n int) {
	l.t.Helper()
	l.until(fmt.Sprintf("%d credits", n), func() bool { return l.state.credits >= n })
}

// Started waits until the plugin says that a message runs long.
func (l *Lane) Started(seq uint64, index uint32) {
	l.t.Helper()
	l.until("Started", func() bool { return slices.Contains(l.state.started, frame.Ref{Seq: seq, Index: index}) })
}

// until reads frames until a condition holds.
func (l *Lane) until(what string, done func() bool) {
	l.t.Helper()
	timeout := time.NewTimer(callTimeout)
	defer timeout.Stop()
	for !done() {
		select {
		case f, ok := <-l.frames:
			if !ok {
				l.state.ended = true
				if !done() {
					l.t.Fatalf("the lane ended before %s came", what)
				}
				return
			}
			l.apply(f)
		case <-timeout.C:
			l.t.Fatalf("%s did not come within %s", what, callTimeout)
		}
	}
}

func (l *Lane) apply(f any) {
	l.t.Helper()
	switch f := f.(type) {
	case error:
		l.t.Logf("the lane ended: %v", f)
	case Credit:
		l.state.credits += int(f)
	case frame.Ref:
		l.state.started = append(l.state.started, f)
	case Drained:
		l.state.drained = true
	case *frame.Results:
		l.applyResults(f)
	}
}

func (l *Lane) applyResults(r *frame.Results) {
	l.t.Helper()
	outputs := map[uint32][]sdk.Output{}
	for i := range r.Outputs.Len() {
		rec := r.Outputs.Record(i)
		o := sdk.Output{Topic: rec.Topic, Tag: rec.Tag, Keys: strings.Fields(rec.Keys), Body: rec.Body}
		for pair := range strings.SplitSeq(strings.TrimSuffix(string(rec.Properties), "\x02"), "\x02") {
			if name, value, ok := strings.Cut(pair, "\x01"); ok {
				if o.Properties == nil {
					o.Properties = map[string]string{}
				}
				o.Properties[name] = value
			}
		}
		if len(r.OutputDelay) > 0 {
			o.Delay = r.OutputDelay[i]
		}
		if len(r.OutputShardingKey) > 0 {
			o.ShardingKey = r.OutputShardingKey[i]
		}
		outputs[r.Cause[i]] = append(outputs[r.Cause[i]], o)
	}
	put := func(index uint32, result Result) {
		ref := frame.Ref{Seq: r.Seq, Index: index}
		if old, twice := l.state.results[ref]; twice {
			l.t.Errorf("message %d of batch %d was answered twice: %v, then %v", index, r.Seq, old, result)
		}
		l.state.results[ref] = result
	}
	for i := 0; i+1 < len(r.AckRuns); i += 2 {
		for k := range r.AckRuns[i+1] {
			put(r.AckRuns[i]+k, Result{Kind: Acked, Outputs: outputs[r.AckRuns[i]+k]})
		}
	}
	kinds := map[frame.VerdictKind]Kind{frame.VerdictRetry: Retried, frame.VerdictReject: Rejected, frame.VerdictUntouched: Untouched}
	for _, v := range r.Verdicts {
		put(v.Index, Result{Kind: kinds[v.Kind], Delay: v.Delay, Class: v.Class, Text: v.Text})
	}
}

// read turns frames into Go values until the stream ends.
func (l *Lane) read() {
	defer close(l.frames)
	in := border.PluginFrames()
	for {
		if err := l.stream.RecvMsg(in); err != nil {
			if !errors.Is(err, io.EOF) {
				l.frames <- err
			}
			return
		}
		f, err := decode(in)
		if err != nil {
			l.frames <- fmt.Errorf("the plugin broke the protocol: %w", err)
			return
		}
		l.frames <- f
	}
}

func decode(in *border.In) (any, error) {
	switch in.Number {
	case frame.PluginCredit:
		n, err := frame.DecodeNumber(in.Message)
		return Credit(n), err
	case frame.PluginStarted:
		return frame.DecodeStarted(in.Message)
	case frame.PluginResults:
		r := new(frame.Results)
		return r, frame.DecodeResults(in.Message, r, frame.MaxBatchRecords)
	}
	switch f := in.Cold.(type) {
	case *pluginv1.Opened:
		return Credit(f.GetCredits()), nil
	case *pluginv1.Drained:
		return Drained{}, nil
	default:
		return nil, fmt.Errorf("frame %d (%T) is not expected here", in.Number, in.Cold)
	}
}

// Ended waits until the lane has ended, for whatever reason.
func (l *Lane) Ended() {
	l.t.Helper()
	l.until("the end of the lane", func() bool { return l.state.ended })
}
