package runtime_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
)

func TestBacklogIsHandledOnceAndCommitted(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		for i := range 4 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 500)
		}
		e := r.start(r.config("c1"))
		wait(3 * time.Second)
		r.committedAll(4)
		r.stop(e)
		if n := r.bodies(); len(n) != 2000 {
			t.Errorf("%d messages handled, want 2000", len(n))
		}
		for id, n := range r.bodies() {
			if n != 1 {
				t.Errorf("message %s delivered %d times", id, n)
			}
		}
		if m := r.cluster.Members(group); len(m) != 0 {
			t.Errorf("members after the stop: %v", m)
		}
	})
}

// Easy version refused: a verdict for the batch instead of the message (design.md 14).
func TestSlowMessageHoldsTheOffsetAndNothingElse(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		free := make(chan struct{})
		r := newRig(t, 1, func(ctx context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.Offset == 0 {
				select {
				case <-free:
				case <-ctx.Done():
				}
			}
			return clustertest.Answer{}
		})
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 512)
		e := r.start(r.config("c1"))
		wait(5 * time.Second)
		if got := len(r.handler.Handled()); got != 512 {
			t.Errorf("%d delivered while one is slow, want 512", got)
		}
		if got := r.cluster.Committed(group, q); got != 0 {
			t.Errorf("committed is %d while message 0 runs, want 0", got)
		}
		st := e.Status().Streams[0].Queues
		for _, s := range st {
			if s.Queue == q && (s.HolderOffset != 0 || s.Holder == "" || s.InFlight != 1 || now().Sub(s.HolderSince) < 4*time.Second) {
				t.Errorf("status does not tell the holder: %+v", s.Status)
			}
		}
		close(free)
		wait(2 * time.Second)
		r.committedAll(1)
		r.stop(e)
	})
}

func now() time.Time { return time.Now() }

func TestRetryGoesThroughTheBrokerAndKeepsIdentity(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.Attempt < 3 {
				return clustertest.Answer{Verdict: retryOnce}
			}
			return clustertest.Answer{}
		})
		r.cluster.Fill(clustertest.Queue(topicName, 0), 5)
		e := r.start(r.config("c1"))
		wait(30 * time.Second)
		r.committedAll(1)
		if n := len(r.cluster.Messages(wire.RetryTopic(group))); n != 10 {
			t.Errorf("%d entries in the retry topic, want 10", n)
		}
		if n := r.bodies(); len(n) != 5 {
			t.Errorf("%d identities over all attempts, want 5: %v", len(n), n)
		}
		for _, rec := range r.handler.Handled() {
			if rec.Topic != topicName {
				t.Errorf("handler saw topic %s", rec.Topic)
			}
		}
		r.stop(e)
	})
}

// RT-P07: 0, 1 and -1 mean 1, 2 and 17 deliveries.
func TestMaxRetriesCountAsRocketMQ(t *testing.T) {
	for retries, deliveries := range map[int]int{0: 1, 1: 2, -1: 17} {
		bubbletest.Run(t, func(t *testing.T) {
			r := newRig(t, 1, func(context.Context, clustertest.Record) clustertest.Answer {
				return clustertest.Answer{Verdict: retryOnce}
			})
			r.cluster.Fill(clustertest.Queue(topicName, 0), 1)
			e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Retry.MaxRetries = retries }))
			wait(10 * time.Minute)
			if n := len(r.handler.Handled()); n != deliveries {
				t.Errorf("max_retries %d: %d deliveries, want %d", retries, n, deliveries)
			}
			if n := len(r.cluster.Messages(wire.DLQTopic(group))); n != 1 {
				t.Errorf("max_retries %d: %d dead letters, want 1", retries, n)
			}
			r.committedAll(1)
			r.stop(e)
		})
	}
}

func TestRejectGoesStraightToTheDeadLetters(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(context.Context, clustertest.Record) clustertest.Answer {
			return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictReject, Class: "schema", Text: "no such customer"}}
		})
		r.cluster.Fill(clustertest.Queue(topicName, 0), 1)
		e := r.start(r.config("c1"))
		wait(2 * time.Second)
		if n := len(r.cluster.Messages(wire.DLQTopic(group))); n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
		if n := len(r.cluster.Messages(wire.RetryTopic(group))); n != 0 {
			t.Errorf("%d entries in the retry topic, want 0", n)
		}
		r.committedAll(1)
		r.stop(e)
	})
}

// Easy version refused: no real credits (design.md 14).
func TestNoMoreIsOutThanWasGranted(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 8, func(ctx context.Context, _ clustertest.Record) clustertest.Answer {
			<-ctx.Done()
			return clustertest.Answer{Never: true}
		})
		for i := range 8 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 1500)
		}
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Credits = 256 }))
		wait(5 * time.Second)
		if got := r.handler.MostOut(); got != 256 {
			t.Errorf("%d out, want the 256 granted", got)
		}
		for _, q := range e.Status().Streams[0].Queues {
			if q.Messages > 1000+32 {
				t.Errorf("%s has %d messages in its window, limit 1000", q.Queue, q.Messages)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := e.Stop(ctx)
		if err == nil || !strings.Contains(err.Error(), "will be delivered again") {
			t.Errorf("Stop of a hanging handler says %v", err)
		}
		for i := range 8 {
			if got := r.cluster.Committed(group, clustertest.Queue(topicName, i)); got != 0 {
				t.Errorf("queue %d committed %d, want 0", i, got)
			}
		}
	})
}

// PQ-P03: the span limit stops only the queue with the old message.
func TestSpanHoldsOnlyItsQueue(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, func(ctx context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.QueueID == 1 && rec.Offset == 0 {
				<-ctx.Done()
				return clustertest.Answer{Never: true}
			}
			return clustertest.Answer{}
		})
		for i := range 2 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 1000)
		}
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Window.Span = 100; s.Deadline = 20 * time.Second }))
		wait(10 * time.Second)
		if got := r.cluster.Committed(group, clustertest.Queue(topicName, 0)); got != 1000 {
			t.Errorf("the other queue committed %d, want 1000", got)
		}
		st := e.Status()
		if !holds(st, runtime.HoldWindowSpan) {
			t.Errorf("status does not tell the span: %+v", st)
		}
		for _, q := range st.Streams[0].Queues {
			if q.Queue.ID == 1 && q.Queue.Topic == topicName && (q.Span < 100 || q.Span > 140 || q.Hold.Message == "") {
				t.Errorf("span %d, hold %+v", q.Span, q.Hold)
			}
		}
		wait(15 * time.Second) // the deadline frees it
		if got := r.cluster.Committed(group, clustertest.Queue(topicName, 1)); got != 1000 {
			t.Errorf("after the deadline committed is %d, want 1000", got)
		}
		if n := len(r.cluster.Messages(wire.RetryTopic(group))); n != 1 {
			t.Errorf("%d retries, want 1", n)
		}
		stopNow(t, e)
	})
}

func stopNow(t *testing.T, e *runtime.Runtime) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_ = e.Stop(ctx)
}
