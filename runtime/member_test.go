package runtime_test

import (
	"context"
	"errors"
	"slices"
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

// produce stores a message in each queue every 10 ms for d.
func (r *rig) produce(queues int, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); nap(10 * time.Millisecond) {
		for i := range queues {
			r.cluster.Put(clustertest.Queue(topicName, i), rocketmq.OutgoingMessage{Body: []byte("x")})
		}
	}
}

// once wants every message delivered, and exactly once.
func (r *rig) once(want int) {
	r.t.Helper()
	n := r.bodies()
	twice := 0
	for _, times := range n {
		if times > 1 {
			twice++
		}
	}
	if len(n) != want || twice > 0 {
		r.t.Errorf("%d of %d messages delivered, %d of them twice", len(n), want, twice)
	}
}

func (r *rig) total(queues int) (n int) {
	for i := range queues {
		n += int(r.cluster.End(clustertest.Queue(topicName, i)))
	}
	return n
}

func owned(e *runtime.Runtime) (ids []int32) {
	for _, q := range e.Status().Streams[0].Queues {
		if q.State == "owned" && q.Queue.Topic == topicName {
			ids = append(ids, q.Queue.ID)
		}
	}
	return ids
}

// Members join and leave under load: each queue has one owner, nothing is lost, nothing comes twice.
func TestHandOverBetweenMembersIsClean(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 8, func(context.Context, clustertest.Record) clustertest.Answer {
			nap(37 * time.Millisecond)
			return clustertest.Answer{}
		})
		a := r.start(r.config("c1"))
		go r.produce(8, 20*time.Second)
		wait(3 * time.Second)
		if got := owned(a); len(got) != 8 {
			t.Errorf("alone owns %v", got)
		}
		b := r.start(r.config("c2"))
		wait(time.Second)
		if x, y := owned(a), owned(b); !slices.Equal(x, []int32{0, 1, 2, 3}) || !slices.Equal(y, []int32{4, 5, 6, 7}) {
			t.Errorf("owned %v and %v", x, y)
		}
		c := r.start(r.config("c3"))
		wait(3 * time.Second)
		r.stop(a)
		wait(3 * time.Second)
		r.stop(c)
		wait(25 * time.Second) // the load ends 10 s from here, with a backlog: the handler has 37 ms for each message
		if got := owned(b); len(got) != 8 {
			t.Errorf("alone again owns %v", got)
		}
		r.committedAll(8)
		r.once(r.total(8))
		for i := range 8 {
			if n := r.cluster.MostPulls(clustertest.Queue(topicName, i)); n != 1 {
				t.Errorf("queue %d was pulled %d times at once", i, n)
			}
		}
		if o := b.Status().Streams[0].Counters.Group.Overlaps; o != 0 {
			t.Errorf("%d overlaps", o)
		}
		r.stop(b)
	})
}

// A new owner waits while a streamd member drains, and takes over within 10 s at most.
func TestNewOwnerWaitsForTheDrain(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		free := make(chan struct{})
		r := newRig(t, 2, func(ctx context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.QueueID == 1 {
				select {
				case <-free:
				case <-ctx.Done():
					return clustertest.Answer{Never: true}
				}
			}
			return clustertest.Answer{}
		})
		r.cluster.Fill(clustertest.Queue(topicName, 1), 1)
		a := r.start(r.config("c1"))
		wait(2 * time.Second)
		b := r.start(r.config("c2"))
		wait(4 * time.Second)
		if got := owned(b); len(got) != 0 {
			t.Errorf("owns %v while the other drains", got)
		}
		if !holds(b.Status(), runtime.HoldHandOver) {
			t.Errorf("status does not tell: %+v", b.Status().Streams[0].Queues)
		}
		close(free)
		wait(300 * time.Millisecond)
		if got := owned(b); !slices.Equal(got, []int32{1}) {
			t.Errorf("after the drain owns %v", got)
		}
		r.once(1)
		r.stop(a)
		r.stop(b)
	})
}

func TestNewOwnerTakesOverAfterTenSeconds(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, func(ctx context.Context, _ clustertest.Record) clustertest.Answer {
			<-ctx.Done()
			return clustertest.Answer{Never: true}
		})
		r.cluster.Fill(clustertest.Queue(topicName, 1), 1)
		a := r.start(r.config("c1"))
		wait(2 * time.Second)
		b := r.start(r.config("c2"))
		wait(12 * time.Second)
		st := b.Status().Streams[0]
		if got := owned(b); !slices.Equal(got, []int32{1}) || st.Counters.Group.Overlaps != 1 {
			t.Errorf("owns %v, %d overlaps; want queue 1 and 1", got, st.Counters.Group.Overlaps)
		}
		stopNow(t, a)
		stopNow(t, b)
	})
}

// kill -9: the survivor takes over what was committed; what was in flight comes again, nothing is lost.
func TestKilledMemberLosesNothing(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, func(context.Context, clustertest.Record) clustertest.Answer {
			nap(20 * time.Millisecond)
			return clustertest.Answer{}
		})
		var dead atomic.Bool
		r.cluster.Fault = func(_, client string, _ sdk.Queue) error {
			if dead.Load() && client == "c1" {
				return errors.New("dead")
			}
			return nil
		}
		a, b := r.start(r.config("c1")), r.start(r.config("c2"))
		go r.produce(4, 6*time.Second)
		wait(3 * time.Second)
		dead.Store(true)
		r.cluster.Kill("c1")
		stopNow(t, a)
		wait(10 * time.Second)
		if got := len(r.bodies()); got != r.total(4) {
			t.Errorf("%d of %d messages delivered", got, r.total(4))
		}
		r.committedAll(4)
		r.stop(b)
	})
}

// Design.md 1.4: no member list, own id missing, no route: what is owned stays, and Status says why.
func TestUnknownIsNotEmpty(t *testing.T) {
	for name, fault := range map[string]func(op string) error{
		"members": func(op string) error {
			if op == "Members" {
				return errors.New("broker does not answer")
			}
			return nil
		},
		"route": func(op string) error {
			if op == "Queues" {
				return errors.New("no name server answers")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				var on atomic.Bool
				r := newRig(t, 4, ack)
				r.cluster.Fault = func(op, _ string, _ sdk.Queue) error {
					if on.Load() {
						return fault(op)
					}
					return nil
				}
				e := r.start(r.config("c1"))
				wait(time.Second)
				on.Store(true)
				wait(5 * time.Minute)
				st := e.Status()
				if got := owned(e); len(got) != 4 || len(st.Streams[0].Holds) == 0 {
					t.Errorf("owns %v, holds %v", got, st.Streams[0].Holds)
				}
				on.Store(false)
				wait(3 * time.Second)
				if h := e.Status().Streams[0].Holds; len(h) != 0 {
					t.Errorf("still held: %v", h)
				}
				r.stop(e)
			})
		})
	}
}

func TestOwnIDMissingKeepsTheShare(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		e := r.start(r.config("c1"))
		wait(time.Second)
		r.cluster.Kill("c1") // a broker that restarted and has not seen the heartbeat yet
		other := r.cluster.Client("c0")
		if err := other.Join(t.Context(), rocketmq.GroupSpec{Name: group}); err != nil {
			t.Fatal(err)
		}
		wait(time.Minute)
		if got := owned(e); len(got) != 4 || !holds(e.Status(), runtime.HoldMembersUnknown) {
			t.Errorf("owns %v, holds %+v", got, e.Status().Streams[0].Holds)
		}
		r.stop(e)
	})
}

// RB-P05: an ownership that comes and goes quickly never has two pulls, and nothing is lost.
func TestFlappingOwnershipHasOnePull(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, func(context.Context, clustertest.Record) clustertest.Answer {
			nap(5 * time.Millisecond)
			return clustertest.Answer{}
		})
		e := r.start(r.config("c2"))
		go r.produce(2, 60*time.Second)
		phantom := r.cluster.Client("c1")
		for range 100 {
			wait(300 * time.Millisecond)
			if err := phantom.Join(t.Context(), rocketmq.GroupSpec{Name: group}); err != nil {
				t.Fatal(err)
			}
			wait(250 * time.Millisecond)
			if err := phantom.Leave(t.Context(), group); err != nil {
				t.Fatal(err)
			}
		}
		wait(30 * time.Second)
		for i := range 2 {
			if n := r.cluster.MostPulls(clustertest.Queue(topicName, i)); n != 1 {
				t.Errorf("queue %d was pulled %d times at once", i, n)
			}
		}
		r.committedAll(2)
		r.once(r.total(2))
		r.stop(e)
	})
}

// RB-P03: added queues are taken without a restart, removed ones are given up.
func TestRouteChangesAreFollowed(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 2, ack)
		e := r.start(r.config("c1"))
		wait(time.Second)
		r.cluster.CreateTopic(topicName, 4)
		r.cluster.Fill(clustertest.Queue(topicName, 3), 10)
		wait(2 * time.Second)
		r.committedAll(4)
		r.cluster.CreateTopic(topicName, 1)
		wait(2 * time.Second)
		if got := owned(e); !slices.Equal(got, []int32{0}) {
			t.Errorf("owns %v", got)
		}
		r.stop(e)
	})
}

func TestGroupJoinedTwiceFailsTheStartAndReleases(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, ack)
		cfg := r.config("c1")
		first := r.start(cfg)
		second, err := runtime.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := second.Start(t.Context()); !errors.Is(err, rocketmq.ErrDuplicateGroup) || second.State() != runtime.StateCreated {
			t.Fatalf("second start: %v, state %s", err, second.State())
		}
		r.stop(first)
		if err := second.Start(t.Context()); err != nil {
			t.Fatalf("third start: %v", err)
		}
		r.stop(second)
	})
}

// Broker absent at start and back later: the stream waits, says so, and joins.
func TestBrokerAbsentAtStart(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		var up atomic.Bool
		r := newRig(t, 1, ack)
		r.cluster.Fault = func(string, string, sdk.Queue) error {
			if !up.Load() {
				return errors.New("connection refused")
			}
			return nil
		}
		r.cluster.Fill(clustertest.Queue(topicName, 0), 10)
		e := r.start(r.config("c1"))
		wait(10 * time.Minute)
		if st := e.Status(); !holds(st, runtime.HoldBroker) || st.Streams[0].Joined {
			t.Errorf("status: %+v", st.Streams[0])
		}
		up.Store(true)
		wait(10 * time.Second)
		r.committedAll(1)
		r.stop(e)
	})
}

func TestAnswersToBrokers(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(_ context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.Body == "bad" {
				return clustertest.Answer{Verdict: retryOnce}
			}
			return clustertest.Answer{}
		})
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 7)
		cfg := r.config("c1")
		cfg.Version = "v0.1.0"
		e := r.start(cfg)
		wait(2 * time.Second)
		info, err := r.cluster.Client("tool").PeerInfo(t.Context(), group, "c1")
		if err != nil {
			t.Fatal(err)
		}
		p, err := runtime.ParsePeerInfo(info)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Queues[q.String()]; got.State != "owned" || got.Committed != 7 || got.Queue() != q || p.Version != "v0.1.0" || p.Plugin != "fake" {
			t.Errorf("peer info: %+v", p)
		}
		if got := info.Queues[wire.MessageQueue{Topic: topicName, BrokerName: clustertest.Broker}]; got.CommitOffset != 7 {
			t.Errorf("307's table: %+v", info.Queues)
		}
		spec := r.cluster.Spec(group, "c1")
		if got := spec.ConsumerStatus(topicName); got[q] != 7 {
			t.Errorf("221: %v", got)
		}
		for body, want := range map[string]wire.ConsumeResult{"good": wire.ConsumeSuccess, "bad": wire.ConsumeLater} {
			m := wire.Message{Topic: []byte(topicName), Body: []byte(body), StoreHost: r.cluster.Messages(topicName)[0].StoreHost}
			if got := spec.ConsumeDirectly(&m, clustertest.Broker); got.Result != want {
				t.Errorf("309 of %s: %+v, want %s", body, got, want)
			}
		}
		spec.OnReset(topicName, map[sdk.Queue]int64{q: 3})
		wait(3 * time.Second)
		if got := len(r.handler.Handled()); got != 7+2+4 {
			t.Errorf("%d deliveries, want 7, 2 by hand and 4 after the reset", got)
		}
		r.committedAll(1)
		if n := len(r.cluster.Messages(wire.RetryTopic(group))); n != 0 {
			t.Errorf("309 sent %d messages back", n)
		}
		r.stop(e)
	})
}

func TestParsePeerInfoOfOthers(t *testing.T) {
	if _, err := runtime.ParsePeerInfo(&wire.ConsumerRunningInfo{}); !errors.Is(err, runtime.ErrNotStreamd) {
		t.Errorf("a Java member: %v", err)
	}
	broken := &wire.ConsumerRunningInfo{Properties: map[string]string{runtime.PeerInfoProperty: "{"}}
	if _, err := runtime.ParsePeerInfo(broken); err == nil || errors.Is(err, runtime.ErrNotStreamd) {
		t.Errorf("garbled: %v", err)
	}
}
