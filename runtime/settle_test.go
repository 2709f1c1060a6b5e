package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/runtime/internal/settle"
	"github.com/streamd/streamd/sdk"
)

func failing(context.Context, clustertest.Record) clustertest.Answer {
	return clustertest.Answer{Verdict: retryOnce}
}

func refuse(code wire.ResponseCode, remark string) error {
	return &rocketmq.ResponseError{Request: wire.ReqSendBack, Code: code, Remark: remark, Broker: clustertest.Broker}
}

// Easy version refused: settled before durable (design.md 14; PO-P01).
func TestRefusedSendBackHoldsTheOffset(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var refusing atomic.Bool
		refusing.Store(true)
		r := newRig(t, 1, failing)
		r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
			if refusing.Load() && (op == "SendBack" || op == "Send") {
				return refuse(wire.RespSystemBusy, "busy")
			}
			return nil
		}
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 10)
		e := r.start(r.config("c1"))
		wait(time.Minute)
		if got := r.cluster.Committed(group, q); got != 0 {
			t.Errorf("committed is %d while nothing is durable, want 0", got)
		}
		if st := e.Status(); !holds(st, runtime.HoldSettle) || st.Streams[0].Settling != 10 {
			t.Errorf("status does not tell the refusal: %+v", st.Streams[0].Holds)
		}
		refusing.Store(false)
		wait(12 * time.Second)
		r.committedAll(1)
		if n := len(r.cluster.Messages(wire.RetryTopic(group))); n < 10 {
			t.Errorf("%d retries, want at least 10", n)
		}
		r.stop(e)
	})
}

// What waits for a broker goes on when it is back, not at the end of a pause that may be 10 s long.
func TestSendBackGoesOnWhenTheBrokerIsBack(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var away atomic.Bool
		var tries atomic.Int64
		away.Store(true)
		r := newRig(t, 1, failing)
		r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
			if away.Load() && (op == "SendBack" || op == "Send") {
				tries.Add(1)
				return refuse(wire.RespSystemBusy, "busy")
			}
			return nil
		}
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 10)
		e := r.start(r.config("c1"))
		wait(time.Minute) // the pauses are at their longest
		for before := tries.Load(); tries.Load() < before+10; {
			wait(100 * time.Millisecond)
		}
		wait(time.Second) // every message has just been tried
		away.Store(false)
		r.cluster.Spec(group, "c1").OnBrokerBack(q.Broker)
		wait(3 * time.Second)
		if st := e.Status(); holds(st, runtime.HoldSettle) || st.Streams[0].Settling != 0 {
			t.Errorf("%d messages still wait: %+v", st.Streams[0].Settling, st.Streams[0].Holds)
		}
		r.committedAll(1)
		r.stop(e)
	})
}

// RT-P04: the message is sent anew with the handler's delay, its identity and its count.
func TestOriginalGoneIsSentAnew(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, nil)
		q := clustertest.Queue(topicName, 0)
		r.handler.Do = func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.Attempt > 1 {
				return clustertest.Answer{}
			}
			r.cluster.Expire(q, 1)
			return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictRetry, Delay: 5 * time.Second}}
		}
		r.cluster.Put(q, rocketmq.OutgoingMessage{Body: []byte("x"), Tag: "a", Keys: []string{"k"}, Properties: map[string]string{wire.PropUniqueKey: "U"}})
		first := r.cluster.Messages(topicName)[0].OffsetID()
		e := r.start(r.config("c1"))
		wait(5 * time.Second)
		r.committedAll(1)
		all := r.handler.Handled()
		if len(all) != 2 || all[1].Attempt != 2 || all[1].ID != first || all[1].Topic != topicName || all[1].Tag != "a" || all[1].Keys != "k" {
			t.Fatalf("deliveries: %+v, want the same message %s again", all, first)
		}
		sent := r.cluster.Sent()
		if len(sent) != 1 || sent[0].DelayLevel != 2 || sent[0].Properties[wire.PropReconsumeTime] != "1" || sent[0].Properties[wire.PropMaxReconsumeTimes] != "16" {
			t.Errorf("sent anew: %+v", sent)
		}
		r.stop(e)
	})
}

func TestOriginalGoneIsDeadLettered(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, nil)
		q := clustertest.Queue(topicName, 0)
		r.handler.Do = func(context.Context, clustertest.Record) clustertest.Answer {
			r.cluster.Expire(q, 1)
			return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictReject, Class: "schema"}}
		}
		r.cluster.Fill(q, 1)
		e := r.start(r.config("c1"))
		wait(5 * time.Second)
		if n := len(r.cluster.Messages(wire.DLQTopic(group))); n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
		r.committedAll(1)
		r.stop(e)
	})
}

// A broker answers SUCCESS to a send-back into a retry topic without queues and stores nothing.
func TestRetryTopicWithoutWriteQueues(t *testing.T) {
	for _, on := range []runtime.OnExhausted{runtime.DeadLetter, runtime.Block, runtime.Skip} {
		bubbletest.Run(t, func(t *testing.T) {
			r := newRig(t, 1, failing)
			r.cluster.SetWritable(wire.RetryTopic(group), 0)
			r.cluster.CreateTopic(wire.DLQTopic(group), 1)
			q := clustertest.Queue(topicName, 0)
			r.cluster.Fill(q, 1)
			e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.OnExhausted = on }))
			wait(40 * time.Second)
			dead, committed := len(r.cluster.Messages(wire.DLQTopic(group))), r.cluster.Committed(group, q)
			want := map[runtime.OnExhausted][2]int64{runtime.DeadLetter: {1, 1}, runtime.Block: {0, 0}, runtime.Skip: {0, 1}}[on]
			if int64(dead) != want[0] || committed != want[1] {
				t.Errorf("%s: %d dead letters, committed %d; want %v", on, dead, committed, want)
			}
			if on == runtime.Block && (!holds(e.Status(), runtime.HoldRetryOff) || len(r.handler.Handled()) != 2) {
				t.Errorf("block: %+v after %d deliveries", e.Status().Streams[0].Holds, len(r.handler.Handled()))
			}
			stopNow(t, e)
		})
	}
}

// The group's settings lose their retry queues while the retry topic keeps its own: from the next look on nothing is sent back into
// nowhere, and when they are given back retries go on.
func TestGroupWithoutRetryQueues(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, failing)
		r.cluster.CreateTopic(wire.RetryTopic(group), 1)
		r.cluster.CreateTopic(wire.DLQTopic(group), 1)
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { // a topic that nobody has made yet changes nothing
			s.Subscriptions = append(s.Subscriptions, runtime.Subscription{Topic: "Later"})
		}))
		wait(5 * time.Second)
		r.cluster.SetRetries(group, false)
		wait(40 * time.Second) // a round and a half, with its jitter
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 1)
		wait(10 * time.Second)
		if dead, committed := len(r.cluster.Messages(wire.DLQTopic(group))), r.cluster.Committed(group, q); dead != 1 || committed != 1 {
			t.Errorf("without retry queues: %d dead letters, committed %d; want 1 and 1", dead, committed)
		}
		r.cluster.SetRetries(group, true)
		wait(40 * time.Second)
		r.cluster.Fill(q, 1)
		wait(time.Second)
		if n := len(r.cluster.Messages(wire.DLQTopic(group))); n != 1 {
			t.Errorf("with retry queues again: %d dead letters at once, want 1", n)
		}
		stopNow(t, e)
	})
}

// Easy version refused: a late verdict taken (design.md 14; PQ-P05).
func TestLateVerdictIsCountedAndChangesNothing(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.Attempt == 1 {
				nap(8 * time.Second) // ignores its context
			}
			return clustertest.Answer{}
		})
		r.cluster.Fill(clustertest.Queue(topicName, 0), 1)
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Deadline = 5 * time.Second }))
		wait(30 * time.Second)
		d := e.Status().Streams[0].Counters.Dispatch
		if d.Late != 1 || d.Deadlines != 1 || d.Acks != 1 {
			t.Errorf("late %d, deadlines %d, acks %d; want 1 each", d.Late, d.Deadlines, d.Acks)
		}
		if n := len(r.cluster.Messages(wire.RetryTopic(group))); n != 1 {
			t.Errorf("%d retry entries, want 1", n)
		}
		r.committedAll(1)
		r.stop(e)
	})
}

func output(body string) frame.Record { return frame.Record{Topic: "Out", Body: []byte(body)} }

func TestOutputsAreStoredBeforeTheMessageIsSettled(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			return clustertest.Answer{Outputs: []frame.Record{output(rec.Body + "a"), output(rec.Body + "b")}}
		})
		r.cluster.CreateTopic("Out", 1)
		var sends atomic.Int32
		r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
			if op == "Send" && sends.Add(1)%3 == 0 {
				return errors.New("connection broke")
			}
			return nil
		}
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 20)
		e := r.start(r.config("c1"))
		wait(30 * time.Second)
		got := map[string]int{}
		for _, m := range r.cluster.Messages("Out") {
			got[string(m.Body)]++
		}
		if len(got) != 40 {
			t.Errorf("%d different outputs, want 40", len(got))
		}
		for body, n := range got {
			if n != 1 {
				t.Errorf("output %s stored %d times: what was stored must not be sent again", body, n)
			}
		}
		r.committedAll(1)
		r.stop(e)
	})
}

func TestOutputThatNobodyStoresFailsItsMessageOnly(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			a := clustertest.Answer{Outputs: []frame.Record{output(rec.Body)}}
			if rec.Body == "1" {
				a.Outputs[0].Topic = "" // and no default topic
			}
			return a
		})
		r.cluster.CreateTopic("Out", 1)
		r.cluster.Fill(clustertest.Queue(topicName, 0), 3)
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Retry.MaxRetries = 1 }))
		wait(20 * time.Second)
		if n := len(r.cluster.Messages("Out")); n != 2 {
			t.Errorf("%d outputs, want 2", n)
		}
		if n := len(r.cluster.Messages(wire.DLQTopic(group))); n != 1 {
			t.Errorf("%d dead letters, want 1", n)
		}
		r.committedAll(1)
		r.stop(e)
	})
}

func TestFailureRecordsGoToTheirTopicOrTheFile(t *testing.T) {
	dir := t.TempDir()
	bubbletest.Run(t, func(t *testing.T) {
		var down atomic.Bool
		r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.Attempt == 1 {
				return clustertest.Answer{Verdict: retryOnce}
			}
			down.Store(true)
			return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictReject, Class: "schema", Text: "bad"}}
		})
		r.cluster.CreateTopic(settle.DefaultFailureTopic, 1)
		r.cluster.Fault = func(op, _ string, q sdk.Queue) error {
			if op == "Send" && q.Topic == settle.DefaultFailureTopic && down.Load() {
				return refuse(wire.RespNoPermission, "topic is not writable")
			}
			return nil
		}
		r.cluster.Fill(clustertest.Queue(topicName, 0), 1)
		cfg := r.config("c1", func(s *runtime.StreamConfig) { s.FailureTopic = "" })
		cfg.FailureFile = func(stream string) string { return filepath.Join(dir, "failures", stream+".jsonl") }
		e := r.start(cfg)
		wait(20 * time.Second)
		r.stop(e)
		stored := r.cluster.Messages(settle.DefaultFailureTopic)
		if len(stored) != 1 {
			t.Fatalf("%d records in the topic, want 1", len(stored))
		}
		text, err := os.ReadFile(filepath.Join(dir, "failures", "orders.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var first, second settle.Failure
		if err := json.Unmarshal(stored[0].Body, &first); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(strings.TrimSpace(string(text))), &second); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if first.Identity != second.Identity || first.Attempt != 1 || second.Attempt != 2 || first.Class != "db" || second.Verdict != "reject" ||
			first.Plugin != "fake" || first.Checksum != "sum" || first.Member != "c1" {
			t.Errorf("records %+v and %+v", first, second)
		}
		if keys := stored[0].Keys(); len(keys) == 0 || keys[0] != first.Identity {
			t.Errorf("record's keys are %v, want the identity", keys)
		}
		r.committedAll(1)
	})
}

// Code 16 is also a whole broker that is read-only for a while: that is a refusal, not a retry topic that is off.
func TestReadOnlyBrokerIsNotARetryTopicThatIsOff(t *testing.T) {
	for remark, dead := range map[string]int{"the broker[10.0.0.1] sending message is forbidden": 0, "the topic[%RETRY%G] sending message is forbidden": 1} {
		bubbletest.Run(t, func(t *testing.T) {
			var refusing atomic.Bool
			refusing.Store(true)
			r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
				if rec.Attempt == 1 {
					return clustertest.Answer{Verdict: retryOnce}
				}
				return clustertest.Answer{}
			})
			r.cluster.CreateTopic(wire.DLQTopic(group), 1)
			r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
				if op == "SendBack" && refusing.Load() {
					return refuse(wire.RespNoPermission, remark)
				}
				return nil
			}
			r.cluster.Fill(clustertest.Queue(topicName, 0), 1)
			e := r.start(r.config("c1"))
			wait(20 * time.Second)
			refusing.Store(false)
			wait(30 * time.Second)
			if n := len(r.cluster.Messages(wire.DLQTopic(group))); n != dead {
				t.Errorf("%s: %d dead letters, want %d", remark, n, dead)
			}
			r.committedAll(1)
			r.stop(e)
		})
	}
}
