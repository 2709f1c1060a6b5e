package runtime_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
)

// Dies on one message only: that message is poison, the others are acked without an attempt counted.
func TestPoisonIsRejectedAfterTheProof(t *testing.T) {
	for _, noPages := range []bool{false, true} {
		bubbletest.Run(t, func(t *testing.T) {
			r := newRig(t, 2, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
				return clustertest.Answer{Crash: rec.Body == "7" && rec.QueueID == 1}
			})
			r.handler.NoPages = noPages
			for i := range 2 {
				r.cluster.Fill(clustertest.Queue(topicName, i), 100)
			}
			e := r.start(r.config("c1"))
			for range 30 { // the plugin proves itself on what comes
				wait(2 * time.Second)
				r.cluster.Fill(clustertest.Queue(topicName, 0), 1)
			}
			dead := r.cluster.Messages(wire.DLQTopic(group))
			if len(dead) != 1 || string(dead[0].Body) != "7" {
				t.Errorf("pages %t: %d dead letters %v, want message 7", !noPages, len(dead), dead)
			}
			if n := len(r.cluster.Messages(wire.RetryTopic(group))); n != 0 {
				t.Errorf("%d retries: a crash is no attempt", n)
			}
			for _, rec := range r.handler.Handled() {
				if rec.Attempt != 1 {
					t.Errorf("attempt %d of %s", rec.Attempt, rec.Body)
				}
			}
			wait(2 * time.Second)
			r.committedAll(2)
			if p := e.Status().Streams[0].Counters.Dispatch.Poisoned; p != 1 {
				t.Errorf("%d poisoned, want 1", p)
			}
			r.stop(e)
		})
	}
}

// Dies on every message for 10 minutes: no dead letter, no retry, and the stream says why it holds. Then it is mended.
func TestBrokenPluginBurnsNothing(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		mended := time.Now().Add(10 * time.Minute)
		r := newRig(t, 2, func(context.Context, clustertest.Record) clustertest.Answer {
			return clustertest.Answer{Crash: time.Now().Before(mended)}
		})
		for i := range 2 {
			r.cluster.Fill(clustertest.Queue(topicName, i), 200)
		}
		e := r.start(r.config("c1"))
		wait(10*time.Minute - time.Second)
		if n := len(r.cluster.Messages(wire.DLQTopic(group))) + len(r.cluster.Messages(wire.RetryTopic(group))); n != 0 {
			t.Errorf("%d messages burned while the plugin was broken", n)
		}
		if !holds(e.Status(), runtime.HoldPluginBroken) {
			t.Errorf("status does not tell: %+v", e.Status().Streams[0].Holds)
		}
		wait(5 * time.Minute)
		r.committedAll(2)
		if n := len(r.cluster.Messages(wire.DLQTopic(group))) + len(r.cluster.Messages(wire.RetryTopic(group))); n != 0 {
			t.Errorf("%d messages burned", n)
		}
		r.stop(e)
	})
}

// SH-P03: without a process nothing is delivered, and nothing burns.
func TestPluginDownHoldsAndRecovers(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		back := time.Now().Add(2 * time.Minute)
		r := newRig(t, 1, ack)
		r.handler.Down = func() error {
			if time.Now().Before(back) {
				return errors.New("exec: no such file")
			}
			return nil
		}
		r.cluster.Fill(clustertest.Queue(topicName, 0), 5000)
		e := r.start(r.config("c1"))
		wait(time.Minute)
		st := e.Status()
		if !holds(st, runtime.HoldPluginDown) || st.Ready() {
			t.Errorf("status does not tell: %+v", st.Streams[0].Holds)
		}
		wait(2 * time.Minute)
		r.committedAll(1)
		r.stop(e)
	})
}

// A swap, a drain or a lost lane costs no attempt, and what was out goes again at once.
func TestLostLanesCostNoAttempt(t *testing.T) {
	for _, cause := range []frame.Cause{frame.CauseSwap, frame.CauseProtocol, frame.CauseMemory, frame.CauseStopped} {
		bubbletest.Run(t, func(t *testing.T) {
			r := newRig(t, 1, func(context.Context, clustertest.Record) clustertest.Answer {
				nap(10 * time.Millisecond)
				return clustertest.Answer{}
			})
			r.cluster.Fill(clustertest.Queue(topicName, 0), 1000)
			e := r.start(r.config("c1"))
			for range 5 {
				wait(47 * time.Millisecond)
				r.handler.Lose(cause, "gone")
			}
			wait(10 * time.Second)
			r.committedAll(1)
			for _, rec := range r.handler.Handled() {
				if rec.Attempt != 1 || rec.Solo {
					t.Fatalf("cause %d: %+v", cause, rec)
				}
			}
			r.stop(e)
		})
	}
}

func TestUntouchedIsNoAttempt(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		seen := map[string]bool{}
		r := newRig(t, 1, nil)
		r.handler.Do = func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			if !seen[rec.Body] {
				seen[rec.Body] = true
				return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictUntouched}}
			}
			return clustertest.Answer{}
		}
		r.cluster.Fill(clustertest.Queue(topicName, 0), 3)
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Concurrency = 1 }))
		wait(3 * time.Second)
		r.committedAll(1)
		for _, rec := range r.handler.Handled() {
			if rec.Attempt != 1 {
				t.Errorf("attempt %d", rec.Attempt)
			}
		}
		r.stop(e)
	})
}
