package runtime_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
)

// wired is the engine over streamd's client and the embedded broker, on a network in memory.
type wired struct {
	t       *testing.T
	net     *memnet.Network
	broker  *broker.Broker
	handler *clustertest.Handler
}

func newWired(t *testing.T, queues int32, do func(context.Context, clustertest.Record) clustertest.Answer) *wired {
	t.Helper()
	w := &wired{t: t, net: &memnet.Network{}, handler: &clustertest.Handler{Do: do}}
	w.broker = broker.New(broker.Config{Address: "10.0.0.1:9876", Listen: w.net.Listen, DelayLevels: []time.Duration{time.Second, time.Second, time.Second, time.Second, time.Second}})
	if err := w.broker.Start(); err != nil {
		t.Fatal(err)
	}
	w.broker.CreateTopic(topicName, queues)
	return w
}

func (w *wired) close() {
	if err := w.broker.Close(); err != nil {
		w.t.Error(err)
	}
}

// member starts an engine with a client of its own; stop ends both.
func (w *wired) member(id string) (e *runtime.Runtime, stop func()) {
	w.t.Helper()
	c, err := rocketmq.New(rocketmq.Config{NameServers: []string{w.broker.Address()}, ClientID: id, Dial: w.net.Dial, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	e, err = runtime.New(runtime.Config{
		Streams: []runtime.StreamConfig{{
			Name: "orders", Broker: "main", Group: group, Handler: "h", Subscriptions: []runtime.Subscription{{Topic: topicName}},
			StartFrom: runtime.StartFrom{First: true}, Retry: runtime.Retry{MaxRetries: 2},
		}},
		Brokers: map[string]runtime.Broker{"main": c}, Handlers: handlers{w.handler}, Logger: slog.New(slog.NewTextHandler(testWriter{w.t}, nil)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := e.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return e, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(e.Stop(ctx), c.Close(ctx)); err != nil {
			w.t.Errorf("stopping %s: %v", id, err)
		}
	}
}

func (w *wired) put(queue int32, from, to int) {
	for i := from; i < to; i++ {
		if err := w.broker.Put(broker.Message{Topic: topicName, Queue: queue, Body: []byte(strconv.Itoa(i))}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *wired) committed(queues int32) {
	w.t.Helper()
	for q := range queues {
		_, next := w.broker.Bounds(topicName, q)
		if got, _ := w.broker.Committed(group, topicName, q); got != next {
			w.t.Errorf("queue %d is committed to %d of %d", q, got, next)
		}
	}
}

// The engine, the client and the broker over the real protocol: two members share, one leaves, messages fail and are
// dead-lettered after three deliveries, rejects go there at once.
func TestOverTheRealProtocol(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		w := newWired(t, 4, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			n, _ := strconv.Atoi(rec.Body)
			switch n % 100 {
			case 7:
				return clustertest.Answer{Verdict: retryOnce}
			case 8:
				return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictReject}}
			}
			return clustertest.Answer{}
		})
		defer w.close()
		for q := range int32(4) {
			w.put(q, 0, 300)
		}
		a, stopA := w.member("10.0.0.2@1#1")
		wait(5 * time.Second)
		b, stopB := w.member("10.0.0.2@1#2")
		wait(5 * time.Second)
		if x, y := owned(a), owned(b); len(x) != 2 || len(y) != 2 {
			t.Errorf("owned %v and %v", x, y)
		}
		for q := range int32(4) {
			w.put(q, 300, 600)
		}
		wait(30 * time.Second)
		stopA()
		wait(2 * time.Second)
		if got := owned(b); len(got) != 4 {
			t.Errorf("after the other left %v", got)
		}
		w.committed(4)
		n := map[string]int{}
		for _, d := range w.handler.Handled() {
			n[d.ID]++
		}
		for id, times := range n {
			if times != 1 && times != 3 {
				t.Errorf("message %s delivered %d times", id, times)
			}
		}
		if len(n) != 2400 || len(w.broker.DeadLetters(group)) != 48 {
			t.Errorf("%d messages delivered, %d dead letters; want 2400 and 48", len(n), len(w.broker.DeadLetters(group)))
		}
		if got := len(w.broker.Messages("STREAMD_FAILURES")); got != 24*3+24 {
			t.Errorf("%d failure records, want %d", got, 24*3+24)
		}
		stopB()
		if m := w.broker.Members(group); len(m) != 0 {
			t.Errorf("members left: %v", m)
		}
	})
}

// The broker is killed and restarted, cut and silent, refuses send-backs, and garbles: nothing is lost.
func TestFaultsOverTheRealProtocol(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		w := newWired(t, 4, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			nap(3 * time.Millisecond)
			if n, _ := strconv.Atoi(rec.Body); n%50 == 7 && rec.Attempt == 1 {
				return clustertest.Answer{Verdict: retryOnce}
			}
			return clustertest.Answer{}
		})
		defer w.close()
		_, stop := w.member("10.0.0.2@1#1")
		faults := []func() (lift func()){
			func() func() { w.broker.DropConnections(); return func() {} },
			func() func() { i := w.broker.Silence(); return i.Lift },
			func() func() {
				i := w.broker.Faults().Inject(broker.Fault{Codes: []wire.RequestCode{wire.ReqSendBack}, Do: broker.Refuse(wire.RespSystemBusy, "busy")})
				return i.Lift
			},
			func() func() {
				if err := w.broker.Restart(); err != nil {
					t.Error(err)
				}
				return func() {}
			},
		}
		at := 0
		for _, fault := range faults {
			for q := range int32(4) {
				w.put(q, at, at+200)
			}
			nap(50 * time.Millisecond)
			lift := fault()
			for q := range int32(4) {
				w.put(q, at+200, at+400)
			}
			at += 400
			nap(time.Minute)
			lift()
			wait(time.Minute)
		}
		w.committed(4)
		n := map[string]bool{}
		for _, d := range w.handler.Handled() {
			n[d.ID] = true
		}
		if len(n) != 4*at {
			t.Errorf("%d of %d messages delivered", len(n), 4*at)
		}
		stop()
	})
}
