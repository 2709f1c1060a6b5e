package runtime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// A message failed, and no broker has stored it again for longer than a lost tail is waited with: the position is looked up by
// the time of what was settled last, which stands far behind it, and is not beyond it.
func TestLostTailIsNotReadAgainBehindAnUnsettledMessage(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		const failed = 10
		r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.Offset == failed && rec.QueueID == 0 && rec.Attempt == 1 {
				return clustertest.Answer{Verdict: retryOnce}
			}
			return clustertest.Answer{}
		})
		var refusing atomic.Bool
		refusing.Store(true)
		r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
			if op == "SendBack" && refusing.Load() {
				return refuse(wire.RespSystemBusy, "busy")
			}
			return nil
		}
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 100)
		e := r.start(r.config("c1"))
		wait(time.Hour)
		r.cluster.Fill(q, 100)
		wait(5 * time.Second)
		r.cluster.Truncate(q, 190)
		wait(3 * time.Minute)
		if got := r.cluster.Committed(group, q); got > failed {
			t.Errorf("committed is %d, over the message at %d, which is not settled", got, failed)
		}
		refusing.Store(false)
		wait(time.Minute)
		r.committedAll(1)
		if n := len(r.cluster.Messages(wire.RetryTopic(group))); n != 1 {
			t.Errorf("%d messages in the retry topic, want the one that failed", n)
		}
		r.stop(e)
	})
}

// An operator chooses the position of a held queue by a reset that its broker carries, while the queue has something to
// commit: the broker ignores that commit, and the queue goes on where the reset says.
func TestResetReleasesAHeldQueueThatHasToCommit(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, nil)
		answer := make(chan struct{})
		r.handler.Do = func(ctx context.Context, _ clustertest.Record) clustertest.Answer {
			select {
			case <-answer:
			case <-ctx.Done():
			}
			return clustertest.Answer{}
		}
		q := clustertest.Queue(topicName, 0)
		var chosen atomic.Bool
		r.cluster.Fault = func(op, _ string, of sdk.Queue) error {
			if op == "Commit" && of == q && chosen.CompareAndSwap(false, true) {
				r.cluster.Reset(group, q, 5) // a moment before the commit
			}
			return nil
		}
		r.cluster.SetCommitted(group, q, 0)
		r.cluster.Fill(q, 32)
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Deadline, s.Concurrency = 10*time.Minute, 40 }))
		wait(2 * time.Second)
		r.cluster.Truncate(q, 20)
		wait(20 * time.Second)
		if !holds(e.Status(), runtime.HoldOutOfRange) {
			t.Fatalf("the queue is not held: %+v", e.Status().Streams[0].Queues)
		}
		close(answer)
		wait(2 * time.Minute)
		if !chosen.Load() || holds(e.Status(), runtime.HoldOutOfRange) {
			t.Errorf("the queue is still held: %+v", e.Status().Streams[0].Queues)
		}
		r.committedAll(1)
		if n := len(r.handler.Handled()); n != 32+15 {
			t.Errorf("%d deliveries, want 32 and the 15 from offset 5 again", n)
		}
		r.stop(e)
	})
}

// A topic goes by a reload, and it takes a while until its queues are given up: they are read with the filter that they had.
func TestATopicThatGoesKeepsItsFilter(t *testing.T) {
	for name, sub := range map[string]runtime.Subscription{"tags": {Topic: topicName, Tags: "a"}, "sql": {Topic: topicName, SQL: "kind = 'a'"}} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				r := newRig(t, 1, ack)
				r.cluster.CreateTopic("U", 1)
				var slow atomic.Bool
				r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
					if op == "Members" && slow.Load() {
						nap(3 * time.Second)
					}
					return nil
				}
				e := r.start(r.config("c1", subscribing(sub, runtime.Subscription{Topic: "U"})))
				wait(5 * time.Second)
				slow.Store(true)
				apply(t, e, r.config("c1", subscribing(runtime.Subscription{Topic: "U"})))
				q := clustertest.Queue(topicName, 0)
				r.kinds(q, 10)
				wait(time.Second)
				if n := r.handled(); n["Tb"] != 0 || n["Ta"] != 5 {
					t.Errorf("handled %v of a topic of which kind a was subscribed", n)
				}
				wait(10 * time.Second)
				r.cluster.Put(q, rocketmq.OutgoingMessage{Tag: "a", Body: []byte("late"), Properties: map[string]string{"kind": "a"}})
				wait(5 * time.Second)
				if n := r.handled(); n["late"] != 0 {
					t.Error("the topic is still read")
				}
				r.stop(e)
			})
		})
	}
}
