package runtime_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// What tools read of any consumer (307): properties under Java's names, subscriptions, queues, rates. Their analysis parses
// some of it (ConsumerRunningInfo.analyzeSubscription, analyzeProcessQueue).
func TestRunningInfoForTools(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		free := make(chan struct{})
		r := newRig(t, 2, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			nap(20 * time.Millisecond)
			switch {
			case rec.Body == "stuck":
				<-free
			case strings.HasSuffix(rec.Body, "3") && rec.Attempt == 1:
				return clustertest.Answer{Verdict: retryOnce}
			}
			return clustertest.Answer{}
		})
		began := time.Now()
		e := r.start(r.config("10.0.0.9@1#1", func(s *runtime.StreamConfig) { s.Deadline = time.Hour; s.Concurrency = 7 }))
		busy, idle := clustertest.Queue(topicName, 0), clustertest.Queue(topicName, 1)
		for range 6 {
			nap(10 * time.Second)
			r.cluster.Fill(busy, 20)
		}
		wait(5 * time.Second)
		settledBy := time.Now()
		r.cluster.Put(busy, rocketmq.OutgoingMessage{Body: []byte("stuck")})
		r.cluster.Put(busy, rocketmq.OutgoingMessage{Body: []byte("x")})
		wait(3 * time.Minute)
		spec := r.cluster.Spec(group, "10.0.0.9@1#1")
		info := spec.RunningInfo(false)
		for name, want := range map[string]string{
			wire.RunningConsumeType: "CONSUME_PASSIVELY", wire.RunningOrderly: "false", wire.RunningVersion: "V4_9_8",
			wire.RunningThreads: "7", wire.RunningStartMillis: strconv.FormatInt(began.UnixMilli(), 10),
			"consumerGroup": group, "messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "language": "GO",
			"pullBatchSize": "32", "maxReconsumeTimes": "16", "consumeTimeout": "60", "consumeThreadMax": "7",
		} {
			if got := info.Properties[name]; got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		topics := make([]string, 0, len(info.Subscriptions))
		for _, s := range info.Subscriptions {
			topics = append(topics, s.Topic)
		}
		if slices.Sort(topics); !slices.Equal(topics, []string{"%RETRY%G", topicName}) || info.Jstack != "" {
			t.Errorf("subscriptions %v, jstack %q", topics, info.Jstack)
		}
		held := info.Queues[wire.MessageQueue{Topic: topicName, BrokerName: clustertest.Broker}]
		if held.CachedCount != 1 || held.CachedMinOffset != 120 || held.CachedMaxOffset != 121 || held.CommitOffset != 120 || !held.Locked || held.Dropped {
			t.Errorf("the queue that is held up: %+v", held)
		}
		if at := time.UnixMilli(held.LastConsumeMillis); at.Before(settledBy.Add(-time.Second)) || at.After(settledBy.Add(5*time.Second)) {
			t.Errorf("last consumed at %s, want about %s", at, settledBy)
		}
		rest := info.Queues[wire.MessageQueue{Topic: topicName, BrokerName: clustertest.Broker, QueueID: 1}]
		if rest.CachedCount != 0 || rest.CachedMinOffset != 0 || rest.CachedMaxOffset != 0 || rest.LastConsumeMillis == 0 || rest.LastPullMillis == 0 || rest.LastLockMillis == 0 {
			t.Errorf("the idle queue %s: %+v", idle, rest)
		}
		if got := info.Status[topicName]; got.OKTPS != 0 || got.FailedMessages != 12 {
			t.Errorf("minutes later: %+v", got)
		}
		close(free)
		r.stop(e)
	})
}

func TestRatesForTools(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			nap(20 * time.Millisecond)
			if rec.Body == "0" && rec.Attempt == 1 {
				return clustertest.Answer{Verdict: retryOnce}
			}
			return clustertest.Answer{}
		})
		e := r.start(r.config("c1"))
		for range 60 { // ten a second, one of them fails once
			nap(time.Second)
			r.cluster.Fill(clustertest.Queue(topicName, 0), 10)
		}
		wait(time.Second)
		info := r.cluster.Spec(group, "c1").RunningInfo(true)
		near := func(got, want float64) bool { return got > 0.85*want && got < 1.15*want }
		if s := info.Status[topicName]; !near(s.PullTPS, 10) || !near(s.OKTPS, 9) || !near(s.FailedTPS, 1) || s.FailedMessages != 60 || s.ConsumeRT != 20 || s.PullRT <= 0 {
			t.Errorf("%s: %+v", topicName, s)
		}
		if s := info.Status[wire.RetryTopic(group)]; !near(s.OKTPS, 1) || s.FailedTPS != 0 {
			t.Errorf("the retry topic: %+v", s)
		}
		if !strings.Contains(info.Jstack, "goroutine profile") || !strings.Contains(info.Jstack, "runtime/internal/queue.(*Worker).Run") {
			t.Errorf("with jstack: %.300s", info.Jstack)
		}
		r.stop(e)
	})
}

// 309: the handler's verdict in Java's words, within 10 s; it settles nothing and counts for no rate.
func TestConsumeDirectly(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(ctx context.Context, rec clustertest.Record) clustertest.Answer {
			switch rec.Body {
			case "fails":
				return clustertest.Answer{Verdict: retryOnce}
			case "panics":
				return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictRetry, Class: sdk.ClassPanic, Text: "index out of range"}}
			case "rejected":
				return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictReject, Class: "bad", Text: "no customer"}}
			case "hangs":
				<-ctx.Done()
				return clustertest.Answer{Never: true}
			case "emits":
				return clustertest.Answer{Outputs: []frame.Record{{Topic: "Out", Body: []byte("out")}}}
			case "emits to nobody":
				return clustertest.Answer{Outputs: []frame.Record{{Topic: "Nobody", Body: []byte("out")}}}
			case "emits nowhere":
				return clustertest.Answer{Outputs: []frame.Record{{Body: []byte("out")}}}
			}
			return clustertest.Answer{}
		})
		r.refuse("Nobody", 1<<30)
		e := r.start(r.config("c1"))
		wait(2 * time.Second)
		spec := r.cluster.Spec(group, "c1")
		for body, want := range map[string]struct {
			result wire.ConsumeResult
			remark string
		}{
			"good": {wire.ConsumeSuccess, ""}, "fails": {wire.ConsumeLater, "db: db timeout"},
			"panics": {wire.ConsumeThrewException, "panic: index out of range"}, "rejected": {wire.ConsumeThrewException, "rejected: bad: no customer"},
			"hangs":           {wire.ConsumeThrewException, "the handler did not answer within 9s, or what it emitted is not stored"},
			"emits":           {wire.ConsumeSuccess, ""},
			"emits to nobody": {wire.ConsumeThrewException, "the handler did not answer within 9s, or what it emitted is not stored"},
			"emits nowhere":   {wire.ConsumeLater, "output: output without a topic, and the stream's outputs.topic is not set"},
		} {
			m := wire.Message{Topic: []byte(topicName), Body: []byte(body), StoreHost: clustertest.Host()}
			began := time.Now()
			got := spec.ConsumeDirectly(&m, clustertest.Broker)
			took := time.Since(began)
			if got.Result != want.result || got.Remark != want.remark || !got.AutoCommit || got.Order || took > 9500*time.Millisecond || got.SpentMillis != took.Milliseconds() {
				t.Errorf("%s: %+v after %s, want %+v", body, got, took, want)
			}
		}
		if n := len(r.cluster.Messages(wire.RetryTopic(group))) + len(r.cluster.Messages(wire.DLQTopic(group))); n != 0 {
			t.Errorf("%d were sent back or dead-lettered", n)
		}
		if got := r.texts("Out"); !slices.Equal(got, []string{"out"}) {
			t.Errorf("the outputs of a message that succeeded: %v", got)
		}
		if s := spec.RunningInfo(false).Status[topicName]; s.OKTPS != 0 || s.FailedTPS != 0 {
			t.Errorf("counted: %+v", s)
		}
		r.stop(e)
	})
}
