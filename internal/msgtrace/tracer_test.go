package msgtrace

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/logtest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
)

// brokerOf stores what it is sent.
type brokerOf struct {
	mu    sync.Mutex
	sent  []*rocketmq.OutgoingMessage
	err   error
	block chan struct{} // nil = at once
}

func (b *brokerOf) Send(ctx context.Context, m *rocketmq.OutgoingMessage) (rocketmq.SendResult, error) {
	if b.block != nil {
		select {
		case <-b.block:
		case <-ctx.Done():
			return rocketmq.SendResult{}, ctx.Err()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return rocketmq.SendResult{}, b.err
	}
	b.sent = append(b.sent, m)
	return rocketmq.SendResult{Status: rocketmq.SendOK}, nil
}

func (b *brokerOf) messages() []*rocketmq.OutgoingMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.sent)
}

func (b *brokerOf) texts() (all []string) {
	for _, m := range b.messages() {
		all = append(all, strings.Split(strings.TrimSuffix(string(m.Body), "\x02"), "\x02")...)
	}
	return all
}

func newTracer(log *logtest.Log) *Tracer {
	return New(Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
}

func shut(t *testing.T, tr *Tracer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := tr.Close(ctx); err != nil {
		t.Error(err)
	}
}

func rec(id string) record { return record{topic: "T", text: id + "\x02", keys: []string{id}} }

// Ten records travel at once, fewer after five seconds, the rest at the end.
func TestTracerBatchesAsJava(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var log logtest.Log
		b, tr := &brokerOf{}, newTracer(&log)
		tr.Start(b)
		for range 12 {
			tr.put(rec("a"))
		}
		synctest.Wait()
		sent := b.messages()
		if got := b.texts(); len(got) != 10 || len(sent) != 1 || !slices.Equal(sent[0].Keys, []string{"a"}) || sent[0].Topic != wire.TraceTopic {
			t.Errorf("at once %d records in %d messages: %+v", len(got), len(sent), sent)
		}
		<-time.After(flushGap + time.Millisecond)
		synctest.Wait()
		if got := b.texts(); len(got) != 12 {
			t.Errorf("%d records after %s, want 12", len(got), flushGap)
		}
		tr.put(rec("b"))
		shut(t, tr)
		tr.put(rec("late"))
		if got := tr.Counts(); got != (Counts{Written: 13, Dropped: 1}) {
			t.Errorf("counted %+v", got)
		}
	})
}

// Nothing waits for a broker that does not answer: what does not fit is counted and told once a minute.
func TestFullQueueDropsAndTells(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var log logtest.Log
		b, tr := &brokerOf{block: make(chan struct{})}, newTracer(&log)
		tr.Start(b)
		const n = 3 * queueSize
		start := time.Now()
		for range n {
			tr.put(rec("a"))
		}
		if time.Since(start) != 0 {
			t.Error("putting a record waited")
		}
		synctest.Wait()
		dropped := tr.Counts().Dropped
		if dropped < queueSize/2 || dropped >= n || strings.Count(log.String(), "full") != 1 {
			t.Errorf("%d dropped, told %q", dropped, log.String())
		}
		close(b.block)
		shut(t, tr)
		if got := tr.Counts(); got.Written != n-dropped || got.Failed != 0 {
			t.Errorf("counted %+v of %d", got, n)
		}
	})
}

func TestRefusedRecordsAreCounted(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var log logtest.Log
		b, tr := &brokerOf{err: errors.New("topic not found")}, newTracer(&log)
		tr.Start(b)
		for range 20 {
			tr.put(rec("a"))
		}
		shut(t, tr)
		if got := tr.Counts(); got != (Counts{Failed: 20}) || strings.Count(log.String(), "traceTopicEnable") != 1 || !strings.Contains(log.String(), "topic not found") {
			t.Errorf("counted %+v, told %q", got, log.String())
		}
	})
}

// A broker that hangs does not hold up a stop longer than its context.
func TestCloseIsBounded(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var log logtest.Log
		b, tr := &brokerOf{block: make(chan struct{})}, newTracer(&log)
		tr.Start(b)
		tr.put(rec("a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tr.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closing: %v", err)
		}
		<-time.After(sendTimeout)
		synctest.Wait()
		if got := tr.Counts(); got.Failed != 1 {
			t.Errorf("counted %+v", got)
		}
	})
}

func TestSentIsPublished(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var log logtest.Log
		b, tr := &brokerOf{}, newTracer(&log)
		tr.Start(b)
		for _, s := range []*rocketmq.SentMessage{
			{Message: &rocketmq.OutgoingMessage{Topic: "T"}, Result: rocketmq.SendResult{Status: rocketmq.SendOK, MessageID: "M"}},
			{Message: &rocketmq.OutgoingMessage{Topic: "T"}, Result: rocketmq.SendResult{TraceOff: true}},
			{Message: &rocketmq.OutgoingMessage{Topic: wire.TraceTopic}},
		} {
			tr.Sent(s)
		}
		shut(t, tr)
		if got := b.texts(); len(got) != 1 || !strings.HasPrefix(got[0], "Pub\x01") {
			t.Errorf("published %q", got)
		}
	})
}

// spanOf is the span of the observer behind.
type spanOf struct {
	ended []error
	id    [16]byte
}

func (s *spanOf) Settle(string, string) func(error) { return func(error) {} }
func (s *spanOf) End(_ frame.Verdict, err error)    { s.ended = append(s.ended, err) }
func (s *spanOf) TraceID() [16]byte                 { return s.id }

// behind is an observer that hears all, too.
type behind struct {
	runtime.Observer
	span     runtime.AttemptSpan
	answered []runtime.AttemptSpan
}

func (b *behind) Attempt(*runtime.AttemptInfo, *[frame.TraceSize]byte) runtime.AttemptSpan {
	return b.span
}

func (b *behind) Answered(a *runtime.AttemptInfo, _ frame.Verdict, _ time.Duration) {
	b.answered = append(b.answered, a.Span)
}

type stored wire.Message

func (s *stored) Message() *wire.Message { return (*wire.Message)(s) }

func info(properties string, number int) *runtime.AttemptInfo {
	return &runtime.AttemptInfo{Broker: "main", Group: "G", Topic: "T", Number: number, Stored: &stored{Properties: []byte(properties)}}
}

func TestAttemptsAreWritten(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var log logtest.Log
		b, tr, next := &brokerOf{}, newTracer(&log), &behind{}
		tr.Start(b)
		o := Observe(next, func(broker string) *Tracer {
			if broker == "main" {
				return tr
			}
			return nil
		})
		var sc [frame.TraceSize]byte
		begin := func(number int) (runtime.AttemptSpan, *runtime.AttemptInfo) {
			a := info("UNIQ_KEY\x01U\x02KEYS\x01k\x02MSG_REGION\x01east\x02", number)
			s := o.Attempt(a, &sc)
			<-time.After(7 * time.Millisecond)
			a.Span = s
			return s, a
		}
		s, _ := begin(1)
		s.End(frame.Verdict{Kind: frame.VerdictAck}, nil)
		for _, class := range []string{"db", "deadline", "panic"} {
			s, a := begin(2)
			o.Answered(a, frame.Verdict{Kind: frame.VerdictRetry, Class: class}, 7*time.Millisecond)
			s.Settle("send_back", "x")(nil)
			<-time.After(time.Second) // the send-back
			s.End(frame.Verdict{Kind: frame.VerdictRetry}, nil)
		}
		s, _ = begin(1)
		s.End(frame.Verdict{}, errors.New("the lane was lost"))
		for _, silent := range []*runtime.AttemptInfo{
			info("TRACE_ON\x01false\x02", 1), {Broker: "other", Topic: "T", Stored: &stored{}}, {Broker: "main", Topic: wire.TraceTopic, Stored: &stored{}},
		} {
			if s := o.Attempt(silent, &sc); s != nil {
				t.Errorf("%+v is traced", silent)
			}
		}
		shut(t, tr)
		var ends []string
		open := map[string]string{} // by request id
		for _, text := range b.texts() {
			f := strings.Split(text, "\x01")
			if f[0] == "SubBefore" {
				open[f[4]] = f[6]
				if f[2] != "east" || f[5] != "U" || f[7] != "k" {
					t.Errorf("before: %q", f)
				}
				continue
			}
			retries, ok := open[f[1]]
			if !ok || f[3] != "7" {
				t.Errorf("after: %q (known %t)", f, ok)
			}
			delete(open, f[1])
			ends = append(ends, retries+" "+f[4]+" "+f[6])
		}
		if want := []string{"0 true 0", "1 false 4", "1 false 1", "1 false 2", "0 false 2"}; !slices.Equal(ends, want) || len(open) != 0 {
			t.Errorf("attempts ended as %v, want %v; open %v", ends, want, open)
		}
		if len(next.answered) != 3 || next.answered[0] != nil {
			t.Errorf("the observer behind was given spans that are not its own: %v", next.answered)
		}
	})
}

// The observer behind keeps its spans, and failure records find their trace.
func TestSpansOfTheObserverBehind(t *testing.T) {
	var log logtest.Log
	tr := newTracer(&log)
	inner := &spanOf{id: [16]byte{1}}
	next := &behind{span: inner}
	o := Observe(next, func(string) *Tracer { return tr })
	var sc [frame.TraceSize]byte
	a := info("", 1)
	s := o.Attempt(a, &sc)
	if known, ok := s.(interface{ TraceID() [16]byte }); !ok || known.TraceID() != inner.id {
		t.Errorf("the trace id is lost: %T", s)
	}
	a.Span = s
	o.Answered(a, frame.Verdict{Kind: frame.VerdictRetry}, 0)
	s.End(frame.Verdict{Kind: frame.VerdictRetry}, nil)
	if len(inner.ended) != 1 || len(next.answered) != 1 || next.answered[0] != runtime.AttemptSpan(inner) {
		t.Errorf("behind: ended %v, answered %v", inner.ended, next.answered)
	}
	tr.Start(&brokerOf{})
	shut(t, tr)
}
