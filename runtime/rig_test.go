package runtime_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
)

// handlers fills the engine's seam with a fake handler.
type handlers struct{ h *clustertest.Handler }

func (f handlers) Open(ctx context.Context, spec frame.LaneSpec) (runtime.Lane, error) {
	l, err := f.h.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return l, nil
}

const group, topicName = "G", "T"

var retryOnce = frame.Verdict{Kind: frame.VerdictRetry, Class: "db", Text: "db timeout"}

// rig is one cluster with one handler function, in a bubble with virtual time.
type rig struct {
	t       *testing.T
	cluster *clustertest.Cluster
	handler *clustertest.Handler
}

func newRig(t *testing.T, queues int, do func(context.Context, clustertest.Record) clustertest.Answer) *rig {
	t.Helper()
	r := &rig{t: t, cluster: clustertest.New(), handler: &clustertest.Handler{Do: do}}
	r.cluster.CreateTopic(topicName, queues)
	return r
}

func ack(context.Context, clustertest.Record) clustertest.Answer { return clustertest.Answer{} }

func (r *rig) config(client string, change ...func(*runtime.StreamConfig)) runtime.Config {
	s := runtime.StreamConfig{
		Name: "orders", Broker: "main", Group: group, Handler: "h", Subscriptions: []runtime.Subscription{{Topic: topicName}},
		StartFrom: runtime.StartFrom{First: true}, FailureTopic: "-", Retry: runtime.Retry{MaxRetries: -1},
	}
	for _, f := range change {
		f(&s)
	}
	return runtime.Config{
		Streams: []runtime.StreamConfig{s}, Brokers: map[string]runtime.Broker{"main": r.cluster.Client(client)},
		Handlers: handlers{r.handler}, Logger: slog.New(slog.NewTextHandler(testWriter{r.t}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s %s", time.Now().Format("15:04:05.000"), p[:len(p)-1])
	return len(p), nil
}

func (r *rig) start(cfg runtime.Config) *runtime.Runtime {
	r.t.Helper()
	e, err := runtime.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := e.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return e
}

func (r *rig) stop(e *runtime.Runtime) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	if err := e.Stop(ctx); err != nil {
		r.t.Errorf("Stop: %v", err)
	}
}

// committed wants every queue of the topic committed to its end.
func (r *rig) committedAll(queues int) {
	r.t.Helper()
	for i := range queues {
		q := clustertest.Queue(topicName, i)
		if got, want := r.cluster.Committed(group, q), r.cluster.End(q); got != want {
			r.t.Errorf("committed of %s is %d, want %d", q, got, want)
		}
	}
}

// bodies counts deliveries by body.
func (r *rig) bodies() map[string]int {
	n := map[string]int{}
	for _, d := range r.handler.Handled() {
		n[d.ID]++
	}
	return n
}

func wait(d time.Duration) {
	t := time.NewTimer(d)
	<-t.C
	synctest.Wait()
}

// nap passes time inside a handler.
func nap(d time.Duration) {
	t := time.NewTimer(d)
	<-t.C
}

func holds(st runtime.Status, kind runtime.HoldKind) bool {
	for _, s := range st.Streams {
		if slices.ContainsFunc(s.Holds, func(h runtime.Hold) bool { return h.Kind == kind }) {
			return true
		}
		if slices.ContainsFunc(s.Queues, func(q runtime.QueueStatus) bool { return q.Hold.Kind == kind }) {
			return true
		}
	}
	return false
}
