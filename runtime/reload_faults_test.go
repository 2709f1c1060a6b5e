package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// within runs f, which has to return in a minute.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s has not returned after a minute", what)
	}
}

// A broker that is away must not make a second reload, and with it a stop, wait for it.
func TestReloadsAndStopWhileTheGroupIsNotJoined(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		var up atomic.Bool
		r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
			if op == "Join" && !up.Load() {
				return errors.New("connection refused")
			}
			return nil
		}
		cfg := r.config("c1")
		e := r.start(cfg)
		for i := range 3 {
			next := cfg
			next.Streams = []runtime.StreamConfig{cfg.Streams[0]}
			next.Streams[0].Concurrency = 30 + i
			within(t, "a reload", func() { apply(t, e, next) })
		}
		within(t, "the stop", func() { r.stop(e) })
	})
}

// Brokers that notify in a storm while a member stops must not hold its stop.
func TestNotifiesDuringAStopDoNotHoldIt(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		gate := make(chan struct{})
		var shut atomic.Bool
		r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
			if op == "Members" && shut.Load() {
				<-gate
			}
			return nil
		}
		e := r.start(r.config("c1"))
		wait(2 * time.Second)
		notify := r.cluster.Spec(group, "c1").OnMembersChanged
		shut.Store(true)
		go notify()
		wait(time.Second) // a round is under way
		stopped := make(chan struct{})
		go func() { defer close(stopped); r.stop(e) }()
		wait(time.Second) // every queue is released
		for range 40 {
			go notify()
		}
		synctest.Wait()
		close(gate)
		within(t, "the stop", func() { <-stopped })
	})
}

// A reload that fails leaves running what ran: also a stream whose group the new config gives to another stream.
func TestApplyThatFailsLeavesRunningWhatRan(t *testing.T) {
	for name, blame := range map[string]string{"beside a new stream that fails": "other", "of a stream that cannot take over": "main"} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				r := newRig(t, 1, ack)
				var refused atomic.Bool
				joins := atomic.Int32{}
				r.cluster.Fault = func(op, client string, _ sdk.Queue) error {
					if op != "Join" || !refused.Load() {
						return nil
					}
					if client == blame && joins.Add(1) == 1 {
						return rocketmq.ErrDuplicateGroup
					}
					return nil
				}
				cfg := r.config("main")
				cfg.Brokers["other"] = r.cluster.Client("other")
				e := r.start(cfg)
				wait(time.Second)
				next := cfg
				taker, twin := cfg.Streams[0], cfg.Streams[0]
				taker.Name = "renamed"
				twin.Name, twin.Broker, twin.Group = "twin", "other", "G2"
				next.Streams = []runtime.StreamConfig{taker, twin}
				refused.Store(true)
				if err := e.Apply(t.Context(), next); !errors.Is(err, rocketmq.ErrDuplicateGroup) {
					t.Fatalf("Apply: %v", err)
				}
				st := e.Status()
				if len(st.Streams) != 1 || st.Streams[0].Name != "orders" {
					t.Fatalf("streams after the failed reload: %+v", st.Streams)
				}
				r.cluster.Fill(clustertest.Queue(topicName, 0), 7)
				wait(3 * time.Second)
				r.committedAll(1)
				if m := r.cluster.Members("G2"); len(m) != 0 {
					t.Errorf("what the failed reload started is still there: %v", m)
				}
				apply(t, e, next) // now nothing refuses
				r.cluster.Fill(clustertest.Queue(topicName, 0), 7)
				wait(3 * time.Second)
				r.committedAll(1)
				r.stop(e)
			})
		})
	}
}

// Once the new streams run there is no way back: a stream that goes and cannot end cleanly is told, and is no refusal of a
// config that is in force. Whoever took it for one would take away what the new streams run on.
func TestApplyIsDoneWhateverBecomesOfAStreamThatGoes(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(context.Context, clustertest.Record) clustertest.Answer { return clustertest.Answer{Never: true} })
		cfg := r.config("c1", func(s *runtime.StreamConfig) { s.DrainLimit = 2 * time.Second })
		e := r.start(cfg)
		r.cluster.Fill(clustertest.Queue(topicName, 0), 3)
		wait(2 * time.Second) // its handler never answers
		next := cfg
		twin := cfg.Streams[0]
		twin.Name, twin.Group = "twin", "G2"
		next.Streams = []runtime.StreamConfig{twin}
		within(t, "the reload", func() {
			if err := e.Apply(t.Context(), next); err != nil {
				t.Errorf("the new config is in force and Apply says: %v", err)
			}
		})
		if st := e.Status(); len(st.Streams) != 1 || st.Streams[0].Name != "twin" {
			t.Errorf("streams after the reload: %+v", st.Streams)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Stop(ctx); err == nil {
			t.Error("nothing was left, so the test shows nothing")
		}
	})
}

// A stop in the middle of a reload gives the streams that go the time that it has itself: what is at their handlers comes to
// its end, and is not delivered again.
func TestStopDuringAReloadDrainsTheStreamsThatGo(t *testing.T) {
	for name, reborn := range map[string]bool{"with a name of its own": false, "whose name another one has taken": true} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				r := newRig(t, 1, func(context.Context, clustertest.Record) clustertest.Answer {
					nap(10 * time.Second)
					return clustertest.Answer{}
				})
				cfg := r.config("c1")
				e := r.start(cfg)
				q := clustertest.Queue(topicName, 0)
				r.cluster.Fill(q, 3)
				wait(2 * time.Second) // they are at the handler
				next := cfg
				twin := cfg.Streams[0]
				twin.Group, twin.StartFrom = "G2", runtime.StartFrom{}
				if !reborn {
					twin.Name = "twin"
				}
				next.Streams = []runtime.StreamConfig{twin}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := e.Apply(ctx, next); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Apply that was given up: %v", err)
				}
				r.stop(e)
				r.committedAll(1)
				if m := r.cluster.Members(group); len(m) != 0 {
					t.Errorf("the group is not left: %v", m)
				}
			})
		})
	}
}
