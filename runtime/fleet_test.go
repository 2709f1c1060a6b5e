package runtime_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
)

// fleet is the engine over streamd's client and a cluster of two masters with one name server, on a network in memory. The
// name server lives at broker a.
type fleet struct {
	t       *testing.T
	net     *memnet.Network
	a, b    *broker.Broker
	handler *clustertest.Handler
	// refused are the connections that are refused.
	refused atomic.Bool
	sent    int
}

func newFleet(t *testing.T, c broker.Config, do func(context.Context, clustertest.Record) clustertest.Answer) *fleet {
	t.Helper()
	f := &fleet{t: t, net: &memnet.Network{}, handler: &clustertest.Handler{Do: do}}
	c.Listen = f.net.Listen
	c.DelayLevels = []time.Duration{time.Second, time.Second, time.Second, time.Second, time.Second}
	c.Name, c.Address = "broker-a", "10.0.0.1:9876"
	f.a = broker.New(c)
	c.Name, c.Address, c.NameServer = "broker-b", "10.0.0.2:9876", f.a.NameServer()
	f.b = broker.New(c)
	for _, b := range []*broker.Broker{f.a, f.b} {
		if err := b.Start(); err != nil {
			t.Fatal(err)
		}
		b.CreateTopic(topicName, 2)
	}
	return f
}

func (f *fleet) close() {
	if err := errors.Join(f.b.Close(), f.a.Close()); err != nil {
		f.t.Error(err)
	}
}

func (f *fleet) dial(ctx context.Context, addr string) (net.Conn, error) {
	if f.refused.Load() {
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	return f.net.Dial(ctx, addr)
}

func (f *fleet) member(id string, change ...func(*runtime.StreamConfig)) (e *runtime.Runtime, stop func()) {
	f.t.Helper()
	return f.memberOver(rocketmq.Config{ClientID: id, Dial: f.dial}, change...)
}

// memberOver is member with a client of its own making.
func (f *fleet) memberOver(cfg rocketmq.Config, change ...func(*runtime.StreamConfig)) (e *runtime.Runtime, stop func()) {
	f.t.Helper()
	c := f.client(cfg)
	e = f.engine(c, change...)
	return e, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(e.Stop(ctx), c.Close(ctx)); err != nil {
			f.t.Errorf("stopping %s: %v", cfg.ClientID, err)
		}
	}
}

func (f *fleet) client(cfg rocketmq.Config) *rocketmq.Client {
	f.t.Helper()
	cfg.NameServers, cfg.Logger = []string{f.a.Address()}, slog.New(slog.DiscardHandler)
	c, err := rocketmq.New(cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := c.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *fleet) engine(c *rocketmq.Client, change ...func(*runtime.StreamConfig)) *runtime.Runtime {
	f.t.Helper()
	s := runtime.StreamConfig{
		Name: "orders", Broker: "main", Group: group, Handler: "h", Subscriptions: []runtime.Subscription{{Topic: topicName}},
		StartFrom: runtime.StartFrom{First: true}, Retry: runtime.Retry{MaxRetries: 2}, FailureTopic: "-",
	}
	for _, f := range change {
		f(&s)
	}
	e, err := runtime.New(runtime.Config{
		Streams: []runtime.StreamConfig{s}, Brokers: map[string]runtime.Broker{"main": c}, Handlers: handlers{f.handler},
		Logger: slog.New(slog.NewTextHandler(testWriter{f.t}, nil)),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	if err := e.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return e
}

// put stores n messages in each of the first queues of a broker, each with a body of its own.
func (f *fleet) put(b *broker.Broker, queues int32, n int) {
	f.t.Helper()
	for q := range queues {
		for range n {
			if err := b.Put(broker.Message{Topic: topicName, Queue: q, Body: []byte(strconv.Itoa(f.sent))}); err != nil {
				f.t.Fatal(err)
			}
			f.sent++
		}
	}
}

// deliveries counts them by body.
func (f *fleet) deliveries() map[string]int {
	n := map[string]int{}
	for _, r := range f.handler.Handled() {
		n[r.Body]++
	}
	return n
}

// all wants every message that was put delivered so often.
func (f *fleet) all(times int) {
	f.t.Helper()
	n := f.deliveries()
	for i := range f.sent {
		if got := n[strconv.Itoa(i)]; got != times {
			f.t.Errorf("message %d was delivered %d times, want %d; %d of %d came", i, got, times, len(n), f.sent)
			return
		}
	}
}

// committed wants the queues of a topic committed to their ends.
func (f *fleet) committed(b *broker.Broker, topic string, queues int32) {
	f.t.Helper()
	for q := range queues {
		_, next := b.Bounds(topic, q)
		if got, _ := b.Committed(group, topic, q); got != next {
			f.t.Errorf("%s: queue %d of %s is committed to %d of %d", b.Name(), q, topic, got, next)
		}
	}
}

func ownedAt(e *runtime.Runtime, topic string) map[string]int {
	n := map[string]int{}
	for _, q := range e.Status().Streams[0].Queues {
		if q.State == "owned" && q.Queue.Topic == topic {
			n[q.Queue.Broker]++
		}
	}
	return n
}

// The retry topic has a queue at each broker: what fails comes back at its own broker, whoever has that queue.
func TestRetryTopicOverSeveralBrokers(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, func(_ context.Context, r clustertest.Record) clustertest.Answer {
			if r.Attempt == 1 {
				return clustertest.Answer{Verdict: retryOnce}
			}
			return clustertest.Answer{}
		})
		defer f.close()
		one, stopOne := f.member("10.0.0.3@1#1")
		two, stopTwo := f.member("10.0.0.3@1#2")
		wait(40 * time.Second)
		retry := wire.RetryTopic(group)
		x, y := ownedAt(one, retry), ownedAt(two, retry)
		if x["broker-a"]+y["broker-a"] != 1 || x["broker-b"]+y["broker-b"] != 1 || len(x) != 1 || len(y) != 1 {
			t.Errorf("the retry queues are owned %v and %v", x, y)
		}
		f.put(f.a, 2, 20)
		f.put(f.b, 2, 20)
		wait(10 * time.Second)
		f.all(2)
		for _, b := range []*broker.Broker{f.a, f.b} {
			if got := len(b.Messages(retry)); got != 40 {
				t.Errorf("%s: %d retries, want 40", b.Name(), got)
			}
			f.committed(b, topicName, 2)
			f.committed(b, retry, 1)
		}
		stopOne()
		stopTwo()
	})
}

// A master that goes takes its queues with it, and brings them back: the others' go on, nothing is lost.
func TestBrokerLeavesAndReturns(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, ack)
		defer f.close()
		e, stop := f.member("10.0.0.3@1#1")
		f.put(f.a, 2, 20)
		f.put(f.b, 2, 20)
		wait(5 * time.Second)
		if got := ownedAt(e, topicName); got["broker-a"] != 2 || got["broker-b"] != 2 {
			t.Fatalf("owned %v", got)
		}
		f.put(f.b, 2, 20)
		if err := f.b.Stop(); err != nil {
			t.Fatal(err)
		}
		f.put(f.a, 2, 20)
		wait(5 * time.Second)
		f.committed(f.a, topicName, 2)
		wait(time.Minute)
		if got := ownedAt(e, topicName); got["broker-a"] != 2 || got["broker-b"] != 0 {
			t.Errorf("without broker-b owned %v", got)
		}
		if err := f.b.Start(); err != nil {
			t.Fatal(err)
		}
		f.put(f.b, 2, 20)
		wait(35 * time.Second) // a route is asked for every 30 s
		f.committed(f.b, topicName, 2)
		if n := f.deliveries(); len(n) != f.sent {
			t.Errorf("%d of %d messages were delivered", len(n), f.sent)
		}
		stop()
	})
}

// A topic that gets a second broker, more queues, and fewer again, while it is consumed (RB-P03).
func TestTopicGrowsAndShrinks(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, ack)
		defer f.close()
		f.b.DeleteTopic(topicName)
		e, stop := f.member("10.0.0.3@1#1")
		f.put(f.a, 2, 20)
		wait(5 * time.Second)
		f.all(1)
		f.b.CreateTopic(topicName, 2)
		f.put(f.b, 2, 20)
		wait(35 * time.Second)
		f.all(1)
		f.a.CreateTopic(topicName, 8)
		f.put(f.a, 8, 10)
		wait(35 * time.Second)
		f.all(1)
		if got := ownedAt(e, topicName); got["broker-a"] != 8 || got["broker-b"] != 2 {
			t.Errorf("owned %v", got)
		}
		f.a.PutTopic(wire.TopicConfig{Name: topicName, Perm: 6, ReadQueues: 2, WriteQueues: 2})
		wait(35 * time.Second)
		if got := ownedAt(e, topicName); got["broker-a"] != 2 {
			t.Errorf("after the topic shrank %v are owned", got)
		}
		f.committed(f.a, topicName, 8)
		stop()
	})
}

// A topic that only takes messages has nothing to read; one that only gives them is read.
func TestPermissionsOfATopic(t *testing.T) {
	for perm, want := range map[int32]int{2: 0, 4: 40} {
		bubbletest.Run(t, func(t *testing.T) {
			f := newFleet(t, broker.Config{}, ack)
			defer f.close()
			f.b.DeleteTopic(topicName)
			f.put(f.a, 2, 20)
			f.a.PutTopic(wire.TopicConfig{Name: topicName, Perm: perm, ReadQueues: 2, WriteQueues: 2})
			e, stop := f.member("10.0.0.3@1#1")
			wait(5 * time.Second)
			if got := len(f.deliveries()); got != want {
				t.Errorf("perm %d: %d delivered, want %d", perm, got, want)
			}
			if perm == 2 {
				if got := ownedAt(e, topicName); len(got) != 0 {
					t.Errorf("owned %v of a topic that is not readable", got)
				}
				f.a.PutTopic(wire.TopicConfig{Name: topicName, Perm: 6, ReadQueues: 2, WriteQueues: 2})
				wait(35 * time.Second)
				f.all(1)
			}
			stop()
		})
	}
}

// OF-P06: a topic that is deleted and made again while it is consumed: its new messages are read.
func TestTopicDeletedAndMadeAgain(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, ack)
		defer f.close()
		f.b.DeleteTopic(topicName)
		f.put(f.a, 2, 500)
		e, stop := f.member("10.0.0.3@1#1")
		wait(5 * time.Second)
		f.all(1)
		wait(time.Hour) // what was settled lies further back than the margin that is read again
		f.a.DeleteTopic(topicName)
		wait(20 * time.Second)
		f.a.CreateTopic(topicName, 2)
		f.put(f.a, 2, 10)
		wait(40 * time.Second)
		f.all(1)
		f.committed(f.a, topicName, 2)
		for _, q := range e.Status().Streams[0].Queues {
			if q.Hold.Held() || q.Lag > 0 {
				t.Errorf("%s: lag %d, hold %+v", q.Queue, q.Lag, q.Hold)
			}
		}
		stop()
	})
}

// The same while nobody consumes, at a broker that keeps the group's offsets: nobody knows a time to go by, so an operator is
// asked, and what he chooses is read.
func TestTopicMadeAgainUnderOldOffsetsIsHeld(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, ack)
		defer f.close()
		f.b.DeleteTopic(topicName)
		f.put(f.a, 1, 10)
		f.a.Commit(group, topicName, 0, 5000)
		f.a.Commit(group, topicName, 1, 0)
		e, stop := f.member("10.0.0.3@1#1")
		wait(time.Minute)
		if !holds(e.Status(), runtime.HoldOutOfRange) || len(f.deliveries()) != 0 {
			t.Errorf("%d delivered, queues %+v", len(f.deliveries()), e.Status().Streams[0].Queues)
		}
		f.a.Reset(group, topicName, 0, 0)
		wait(10 * time.Second)
		f.all(1)
		stop()
	})
}

// A group whose consumption is switched off is paused: nothing fails, the status says who paused it, and it goes on by itself.
func TestDisabledGroupIsPaused(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, ack)
		defer f.close()
		f.b.DeleteTopic(topicName)
		off := f.a.NewGroup(group)
		off.ConsumeEnable = false
		f.a.PutGroup(off)
		e, stop := f.member("10.0.0.3@1#1")
		f.put(f.a, 2, 20)
		wait(3 * time.Minute)
		st := e.Status().Streams[0]
		if len(f.deliveries()) != 0 || st.Counters.Queues.PullErrors != 0 {
			t.Errorf("%d delivered, %d pulls count as failed", len(f.deliveries()), st.Counters.Queues.PullErrors)
		}
		for _, q := range st.Queues {
			if q.State != "owned" || q.Hold.Kind != runtime.HoldGroupDisabled || !strings.Contains(q.Hold.Text, "mqadmin updateSubGroup -c CLUSTER -g G -s true") {
				t.Errorf("%s is %s, hold %+v", q.Queue, q.State, q.Hold)
			}
		}
		f.a.PutGroup(f.a.NewGroup(group))
		wait(6 * time.Second)
		f.all(1)
		f.committed(f.a, topicName, 2)
		for _, q := range e.Status().Streams[0].Queues {
			if q.Hold.Held() {
				t.Errorf("%s: hold %+v", q.Queue, q.Hold)
			}
		}
		stop()
	})
}

// Brokers that make no groups ignore the heartbeat of one that is not there, and say nothing: the status does, and the group
// is joined soon after it was made.
func TestGroupThatIsNotThereIsNamed(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{NoGroupCreation: true}, ack)
		defer f.close()
		f.put(f.a, 2, 20)
		f.put(f.b, 2, 20)
		e, stop := f.member("10.0.0.3@1#1")
		wait(time.Minute)
		st := e.Status().Streams[0]
		if len(st.Holds) == 0 || st.Holds[0].Kind != runtime.HoldGroupMissing || !strings.Contains(st.Holds[0].Text, "mqadmin updateSubGroup -c CLUSTER -g G") || len(f.deliveries()) != 0 {
			t.Errorf("%d delivered, holds %+v", len(f.deliveries()), st.Holds)
		}
		f.a.PutGroup(f.a.NewGroup(group))
		wait(20 * time.Second)
		if got := ownedAt(e, topicName); got["broker-a"] != 2 || !holds(e.Status(), runtime.HoldGroupMissing) {
			t.Errorf("the group is at one broker: owned %v, %+v", got, e.Status().Streams[0].Queues)
		}
		f.b.PutGroup(f.b.NewGroup(group))
		wait(10 * time.Second)
		f.all(1)
		if holds(e.Status(), runtime.HoldGroupMissing) {
			t.Errorf("still held: %+v %+v", e.Status().Streams[0].Holds, e.Status().Streams[0].Queues)
		}
		stop()
	})
}

// A busy broker is asked again, ever more slowly, and goes on as soon as it is not.
func TestBusyBrokerIsWaitedFor(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		f := newFleet(t, broker.Config{}, ack)
		defer f.close()
		f.b.DeleteTopic(topicName)
		e, stop := f.member("10.0.0.3@1#1")
		wait(2 * time.Second)
		busy := f.a.Faults().Inject(broker.Fault{Codes: []wire.RequestCode{wire.ReqPullMessage}, Do: broker.Refuse(wire.RespSystemBusy, "[PCBUSY_CLEAN_QUEUE]broker busy")})
		f.put(f.a, 2, 20)
		wait(2 * time.Minute)
		st := e.Status().Streams[0]
		if n := st.Counters.Queues.PullErrors; n == 0 || n > 200 || !holds(e.Status(), runtime.HoldBroker) {
			t.Errorf("%d refused pulls in two minutes, %+v", n, st.Queues)
		}
		busy.Lift()
		wait(6 * time.Second)
		f.all(1)
		stop()
	})
}

// After an outage consumption goes on within a second and a half, however long it was and however it looked.
func TestConsumptionReturnsSoonAfterAnOutage(t *testing.T) {
	for name, outage := range map[string]func(f *fleet) (end func()){
		"refused": func(f *fleet) func() {
			f.refused.Store(true)
			f.a.DropConnections()
			return func() { f.refused.Store(false) }
		},
		"flapping": func(f *fleet) func() {
			done := make(chan struct{})
			go func() {
				tick := time.NewTicker(100 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-tick.C:
						f.a.DropConnections()
					case <-done:
						return
					}
				}
			}()
			return func() { close(done) }
		},
		"restarted": func(f *fleet) func() {
			if err := f.a.Stop(); err != nil {
				f.t.Error(err)
			}
			return func() {
				if err := f.a.Start(); err != nil {
					f.t.Error(err)
				}
			}
		},
	} {
		for _, long := range []time.Duration{3 * time.Second, 5 * time.Minute} {
			t.Run(name+" for "+long.String(), func(t *testing.T) {
				bubbletest.Run(t, func(t *testing.T) {
					f := newFleet(t, broker.Config{}, ack)
					defer f.close()
					f.b.DeleteTopic(topicName)
					_, stop := f.member("10.0.0.3@1#1")
					f.put(f.a, 2, 20)
					wait(3 * time.Second)
					f.all(1)
					end := outage(f)
					wait(long)
					end()
					f.put(f.a, 2, 20)
					back := time.Now()
					for len(f.deliveries()) < f.sent && time.Since(back) < time.Minute {
						nap(10 * time.Millisecond)
					}
					if took := time.Since(back); took > 2*time.Second+100*time.Millisecond {
						t.Errorf("consumption went on after %s", took)
					}
					wait(5 * time.Second)
					f.committed(f.a, topicName, 2)
					stop()
				})
			})
		}
	}
}
