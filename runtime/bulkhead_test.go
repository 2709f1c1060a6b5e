package runtime_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// One broker takes connections and says nothing more, with thousands of failed messages of its own to be sent back. What the other
// broker is told goes on at once: send-backs, dead letters and outputs.
func TestSilentBrokerHoldsNobodyElsesSettling(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		gate := make(chan struct{})
		f := newFleet(t, broker.Config{}, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			<-gate
			n, _ := strconv.Atoi(rec.Body)
			switch {
			case rec.Attempt > 1:
				return clustertest.Answer{}
			case n < 4000 || n%3 == 0:
				return clustertest.Answer{Verdict: retryOnce}
			case n%3 == 1:
				return clustertest.Answer{Verdict: frame.Verdict{Kind: frame.VerdictReject}}
			}
			return clustertest.Answer{Outputs: []frame.Record{{Topic: "Out", Body: []byte(rec.Body)}}, Sharding: []string{"k"}}
		})
		defer f.close()
		f.a.CreateTopic("Out", 1)
		f.b.CreateTopic(topicName, 4)
		f.put(f.b, 4, 1000)
		e, stop := f.member("10.0.0.2@1#1", func(s *runtime.StreamConfig) { s.Retry.MaxRetries = 16 })
		wait(5 * time.Second) // the windows are full
		silence := f.b.Silence()
		close(gate)
		wait(time.Second)
		if st := e.Status().Streams[0]; st.Settling < 3900 {
			t.Fatalf("%d messages wait for the silent broker", st.Settling)
		}
		f.put(f.a, 2, 150)
		wait(2 * time.Second)
		retries, dead, outputs := len(f.a.Messages(wire.RetryTopic(group))), len(f.a.DeadLetters(group)), len(f.a.Messages("Out"))
		if retries != 100 || dead != 100 || outputs != 100 {
			t.Errorf("two seconds later broker a has %d retries, %d dead letters and %d outputs, want 100 each", retries, dead, outputs)
		}
		if st := e.Status(); !holds(st, runtime.HoldSettle) {
			t.Errorf("the status does not tell that settling waits: %+v", st.Streams[0].Holds)
		}
		silence.Lift()
		wait(2 * time.Minute)
		if st := e.Status().Streams[0]; st.Settling != 0 {
			t.Errorf("%d messages are not settled although the broker is back", st.Settling)
		}
		stop()
	})
}

// What failed on a broker that takes nothing back stays in memory, and leaves room for what the other one has.
func TestSilentBrokerLeavesMemoryToOthers(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			if len(rec.Body) > 1000 {
				return clustertest.Answer{Verdict: retryOnce}
			}
			return clustertest.Answer{}
		})
		defer f.close()
		hit := f.b.Faults().Inject(broker.Fault{Codes: []wire.RequestCode{wire.ReqSendBack}, Do: broker.DropRequest()})
		e, stop := f.member("10.0.0.2@1#1", func(s *runtime.StreamConfig) {
			s.Window.Bytes, s.Window.StreamBytes = 1<<20, 1<<20
		})
		wait(time.Second)
		for i := range 200 {
			if err := f.b.Put(broker.Message{Topic: topicName, Queue: int32(i % 2), Body: make([]byte, 16<<10)}); err != nil {
				t.Fatal(err)
			}
		}
		wait(20 * time.Second)
		// An answer that is larger than the one before it takes more than was reserved for it.
		const more = 2 * 256 << 10
		st := e.Status().Streams[0]
		if !holds(e.Status(), runtime.HoldStreamBytes) || st.BytesUsed > 1<<20+more {
			t.Errorf("%d bytes used, holds %+v", st.BytesUsed, st.Holds)
		}
		f.put(f.a, 2, 100)
		wait(5 * time.Second)
		for q := range int32(2) {
			if got, _ := f.a.Committed(group, topicName, q); got != 100 {
				t.Errorf("queue %d of the broker that answers is committed to %d, want 100", q, got)
			}
		}
		hit.Lift()
		wait(2 * time.Minute)
		for q := range int32(2) {
			if got, _ := f.b.Committed(group, topicName, q); got != 100 {
				t.Errorf("queue %d of the broker that was silent is committed to %d, want 100", q, got)
			}
		}
		stop()
	})
}

// A stop does not wait for calls that are queued behind a silent broker's: the other broker's queues are settled and committed, and
// what is left is told.
func TestStopDoesNotWorkOffWhatASilentBrokerIsOwed(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, failing)
		defer f.close()
		c := f.client(rocketmq.Config{ClientID: "10.0.0.2@1#1", Dial: f.dial})
		e := f.engine(c, func(s *runtime.StreamConfig) { s.DrainLimit = 5 * time.Second })
		wait(2 * time.Second)
		hit := f.b.Faults().Inject(broker.Fault{Codes: []wire.RequestCode{wire.ReqSendBack}, Do: broker.DropRequest()})
		f.put(f.b, 2, 500)
		f.put(f.a, 2, 10)
		wait(time.Second)
		stopping := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := e.Stop(ctx); err == nil {
			t.Error("the stop does not tell what it left")
		}
		if took := time.Since(stopping); took > 20*time.Second {
			t.Errorf("the stop took %s", took)
		}
		for q := range int32(2) {
			if got, _ := f.a.Committed(group, topicName, q); got != 10 {
				t.Errorf("queue %d of the broker that answers is committed to %d, want 10", q, got)
			}
		}
		hit.Lift()
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A queue without an offset is started once one broker tells that the group is not new; it does not wait for another that is silent.
func TestSilentBrokerHoldsNoStartElsewhere(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, ack)
		defer f.close()
		f.put(f.b, 2, 10)
		for _, b := range []*broker.Broker{f.a, f.b} {
			b.PutGroup(b.NewGroup(group))
		}
		c := f.client(rocketmq.Config{ClientID: "10.0.0.2@1#1", Dial: f.dial})
		if _, err := c.Queues(t.Context(), topicName); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Commit(t.Context(), group, sdk.Queue{Topic: topicName, Broker: f.b.Name()}, 5); err != nil {
			t.Fatal(err)
		}
		hit := f.a.Faults().Inject(broker.Fault{Codes: []wire.RequestCode{wire.ReqQueryConsumerOffset}, Do: broker.DropRequest()})
		e := f.engine(c)
		wait(10 * time.Second)
		for q := range int32(2) {
			if got, _ := f.b.Committed(group, topicName, q); got != 10 {
				t.Errorf("queue %d of the broker that answers is committed to %d, want 10", q, got)
			}
		}
		hit.Lift()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := errors.Join(e.Stop(ctx), c.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
}
