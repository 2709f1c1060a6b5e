package runtime_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
)

func apply(t *testing.T, e *runtime.Runtime, cfg runtime.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := e.Apply(ctx, cfg); err != nil {
		t.Fatalf("Apply: %v", err)
	}
}

// The same config changes nothing: no round, no lane, no pull more.
func TestApplyOfTheSameIsNotNoticed(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, ack)
		cfg := r.config("c1")
		e := r.start(cfg)
		wait(time.Second)
		before, lanes := e.Status().Streams[0].Counters.Group, r.handler.Opened()
		for range 20 {
			apply(t, e, cfg)
		}
		wait(time.Second)
		if got := e.Status().Streams[0].Counters.Group; got != before || r.handler.Opened() != lanes {
			t.Errorf("%+v became %+v, %d lanes %d", before, got, lanes, r.handler.Opened())
		}
		r.stop(e)
	})
}

// A changed handler starts before the old one drains; under load nothing is lost and nothing comes twice, and the
// membership is not touched.
func TestApplyOfAHandlerIsClean(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, func(context.Context, clustertest.Record) clustertest.Answer {
			nap(33 * time.Millisecond)
			return clustertest.Answer{}
		})
		cfg := r.config("c1")
		e := r.start(cfg)
		go r.produce(4, 10*time.Second)
		for i := range 8 {
			wait(time.Second)
			cfg.Streams[0].HandlerVersion = strings.Repeat("x", i+1)
			cfg.Streams[0].Window.Span = int64(1000 + i)
			apply(t, e, cfg)
		}
		wait(10 * time.Second)
		r.committedAll(4)
		r.once(r.total(4))
		st := e.Status().Streams[0]
		if r.handler.Opened() != 9 || st.Counters.Group.Acquired != 5 || st.Counters.Dispatch.Redelivered != 0 {
			t.Errorf("%d lanes, %+v, %+v", r.handler.Opened(), st.Counters.Group, st.Counters.Dispatch)
		}
		if got := int(st.Counters.Dispatch.Acks); got != r.total(4) {
			t.Errorf("%d acks counted over all handlers, want %d", got, r.total(4))
		}
		r.stop(e)
	})
}

// A handler that hangs is given up after the drain limit; its messages go to the new one.
func TestApplyOverAHangingHandler(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(ctx context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.Generation == 1 {
				<-ctx.Done()
				return clustertest.Answer{Never: true}
			}
			return clustertest.Answer{}
		})
		cfg := r.config("c1", func(s *runtime.StreamConfig) { s.DrainLimit = 10 * time.Second })
		r.cluster.Fill(clustertest.Queue(topicName, 0), 600)
		e := r.start(cfg)
		wait(time.Second)
		cfg.Streams[0].HandlerVersion = "2"
		apply(t, e, cfg)
		wait(5 * time.Second)
		if got := r.cluster.Committed(group, clustertest.Queue(topicName, 0)); got != 0 {
			t.Errorf("committed %d over messages that hang", got)
		}
		wait(10 * time.Second)
		r.committedAll(1)
		for _, rec := range r.handler.Handled() {
			if rec.Attempt != 1 {
				t.Errorf("attempt %d", rec.Attempt)
			}
		}
		r.stop(e)
	})
}

func TestApplyAddsRemovesAndRenamesStreams(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		r.cluster.CreateTopic("U", 1)
		cfg := r.config("c1")
		e := r.start(cfg)
		wait(time.Second)
		second := cfg.Streams[0]
		second.Name, second.Group, second.Subscriptions = "other", "G2", []runtime.Subscription{{Topic: "U"}}
		both := cfg
		both.Streams = []runtime.StreamConfig{cfg.Streams[0], second}
		apply(t, e, both)
		r.cluster.Fill(clustertest.Queue("U", 0), 5)
		wait(2 * time.Second)
		if got := r.cluster.Committed("G2", clustertest.Queue("U", 0)); got != 5 {
			t.Errorf("the added stream committed %d", got)
		}
		renamed := both
		renamed.Streams = []runtime.StreamConfig{second}
		renamed.Streams[0].Name = "renamed" // takes over the group of "other"
		apply(t, e, renamed)
		r.cluster.Fill(clustertest.Queue("U", 0), 5)
		wait(3 * time.Second)
		if got := r.cluster.Committed("G2", clustertest.Queue("U", 0)); got != 10 {
			t.Errorf("the renamed stream committed %d", got)
		}
		if m := r.cluster.Members(group); len(m) != 0 || len(e.Status().Streams) != 1 {
			t.Errorf("the removed stream is still there: %v", m)
		}
		r.stop(e)
	})
}

// RB-P09: two streams of one group are refused, and the old ones go on.
func TestApplyOfABadConfigChangesNothing(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		cfg := r.config("c1")
		e := r.start(cfg)
		bad := cfg
		bad.Streams = []runtime.StreamConfig{cfg.Streams[0], cfg.Streams[0]}
		bad.Streams[1].Name = "twin"
		err := e.Apply(t.Context(), bad)
		if err == nil || !strings.Contains(err.Error(), `"G"`) {
			t.Errorf("two streams of one group: %v", err)
		}
		r.cluster.Fill(clustertest.Queue(topicName, 0), 5)
		wait(2 * time.Second)
		r.committedAll(1)
		r.stop(e)
	})
}

func TestApplyOfSubscriptions(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, ack)
		r.cluster.CreateTopic("U", 2)
		cfg := r.config("c1")
		e := r.start(cfg)
		wait(time.Second)
		cfg.Streams = slices.Clone(cfg.Streams)
		cfg.Streams[0].Subscriptions = []runtime.Subscription{{Topic: "U"}}
		apply(t, e, cfg)
		wait(100 * time.Millisecond)
		r.cluster.Fill(clustertest.Queue("U", 1), 5)
		r.cluster.Fill(clustertest.Queue(topicName, 1), 5)
		wait(3 * time.Second)
		if got := r.cluster.Committed(group, clustertest.Queue("U", 1)); got != 5 {
			t.Errorf("the added topic is committed to %d", got)
		}
		if got := r.cluster.Committed(group, clustertest.Queue(topicName, 1)); got != 0 {
			t.Errorf("the removed topic is committed to %d", got)
		}
		r.stop(e)
	})
}

func TestConfigErrorsComeAllAtOnce(t *testing.T) {
	_, err := runtime.New(runtime.Config{Streams: []runtime.StreamConfig{
		{Name: "a", Broker: "nowhere", Group: "bad group", Concurrency: -1, OnExhausted: "explode", Deadline: -1},
		{Name: "a", Broker: "nowhere", Group: "g", Handler: "h", Subscriptions: []runtime.Subscription{{Topic: "T"}, {Topic: "T"}}},
	}})
	for _, part := range []string{"no handlers", "nowhere", "bad group", "concurrency", "explode", "deadline", "there twice", "has no handler", "subscribes to nothing", `topic "T" twice`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error does not name %q: %v", part, err)
		}
	}
}

func TestStatesAreKept(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		e := r.start(r.config("c1"))
		if err := e.Start(t.Context()); err == nil || e.State() != runtime.StateRunning {
			t.Errorf("a second start: %v, %s", err, e.State())
		}
		r.stop(e)
		if err := e.Stop(t.Context()); err == nil || e.State() != runtime.StateStopped {
			t.Errorf("a second stop: %v, %s", err, e.State())
		}
	})
}
