package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/runtime"
	"github.com/streamd/streamd/runtime/internal/clustertest"
	"github.com/streamd/streamd/sdk"
)

// A held queue goes on when an operator resets the group at the broker, as its hold says: also where the broker carries
// the reset itself and tells nobody.
func TestResetAtTheBrokerReleasesAHeldQueue(t *testing.T) {
	for name, choose := range map[string]func(*clustertest.Cluster, sdk.Queue){
		"carried by the broker": func(c *clustertest.Cluster, q sdk.Queue) { c.Reset(group, q, 8) },
		"stored by a tool":      func(c *clustertest.Cluster, q sdk.Queue) { c.SetCommitted(group, q, 8) },
	} {
		for kind, held := range map[string]func(*clustertest.Cluster, sdk.Queue){
			"offsets lost": func(c *clustertest.Cluster, q sdk.Queue) { c.Expire(q, 5) },
			"out of range": func(c *clustertest.Cluster, q sdk.Queue) { c.SetCommitted(group, q, 5000) },
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				bubbletest.Run(t, func(t *testing.T) {
					r := newRig(t, 2, ack)
					q := clustertest.Queue(topicName, 1)
					r.cluster.Fill(q, 20)
					r.cluster.SetCommitted(group, clustertest.Queue(topicName, 0), 0)
					held(r.cluster, q)
					e := r.start(r.config("c1"))
					wait(2 * time.Minute)
					if n := len(r.handler.Handled()); n != 0 || !holds(e.Status(), runtime.HoldOffsetsLost) && !holds(e.Status(), runtime.HoldOutOfRange) {
						t.Fatalf("%d delivered, holds %+v", n, e.Status().Streams[0].Queues)
					}
					choose(r.cluster, q)
					wait(15 * time.Second)
					if n := len(r.handler.Handled()); n != 12 {
						t.Errorf("%d delivered, want 12 from offset 8", n)
					}
					r.committedAll(2)
					r.stop(e)
				})
			})
		}
	}
}

// A message that never ends fills the window; the reset past it must not wait for room.
func TestServerSideResetPassesAFullWindow(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(ctx context.Context, rec clustertest.Record) clustertest.Answer {
			if rec.Offset == 0 {
				<-ctx.Done()
			}
			return clustertest.Answer{}
		})
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 500)
		e := r.start(r.config("c1", func(s *runtime.StreamConfig) { s.Window.Span, s.Deadline = 50, time.Hour }))
		wait(time.Minute)
		if !holds(e.Status(), runtime.HoldWindowSpan) {
			t.Fatalf("holds %+v", e.Status().Streams[0].Queues)
		}
		r.cluster.Reset(group, q, 400)
		wait(time.Minute)
		r.committedAll(1)
		r.stop(e)
	})
}

// A reset that reaches a queue while it drains for another member is what that member starts at.
func TestResetOfADrainingQueueIsItsLastCommit(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 1, func(ctx context.Context, _ clustertest.Record) clustertest.Answer {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			<-ctx.Done()
			return clustertest.Answer{}
		})
		q := clustertest.Queue(topicName, 0)
		r.cluster.Fill(q, 40)
		e := r.start(r.config("c1"))
		wait(7 * time.Second)
		stopped := make(chan struct{})
		go func() { defer close(stopped); r.stop(e) }()
		wait(time.Second)
		r.cluster.Spec(group, "c1").OnReset(topicName, map[runtime.Queue]int64{q: 3})
		<-stopped
		if got := r.cluster.Committed(group, q); got != 3 {
			t.Errorf("committed %d after a reset to 3", got)
		}
	})
}

// A replica that begins later than its master, or lags behind it, says nothing about what is gone or lost: neither by 20 nor,
// where the broker's offsetCheckInSlave is on, by 21.
func TestReplicaSaysNothingOfWhatIsGone(t *testing.T) {
	for name, answer := range map[string]rocketmq.PullResult{
		"begins later":            {Status: rocketmq.PullNoMatch, Next: 15, Min: 15, Max: 20},
		"begins later, refuses":   {Status: rocketmq.PullOffsetIllegal, Next: 15, Min: 15, Max: 20},
		"lags behind and refuses": {Status: rocketmq.PullOffsetIllegal, Next: 5, Min: 0, Max: 5},
	} {
		t.Run(name, func(t *testing.T) {
			bubbletest.Run(t, func(t *testing.T) {
				r := newRig(t, 1, ack)
				q := clustertest.Queue(topicName, 0)
				r.cluster.Fill(q, 20)
				r.cluster.SetCommitted(group, q, 8)
				var asked atomic.Int32
				cfg := r.config("c1")
				cfg.Brokers["main"] = oddReplica{cfg.Brokers["main"], &asked, answer}
				e := r.start(cfg)
				wait(15 * time.Second)
				if n := len(r.handler.Handled()); n != 12 || asked.Load() != 3 {
					t.Errorf("%d delivered, want 12, after %d answers of a replica; queues %+v", n, asked.Load(), e.Status().Streams[0].Queues)
				}
				if c := e.Status().Streams[0].Counters.Queues; c.Expired != 0 || c.Resets != 0 {
					t.Errorf("%d expired, %d resets by a replica's word", c.Expired, c.Resets)
				}
				r.committedAll(1)
				r.stop(e)
			})
		})
	}
}

// oddReplica answers the first pulls as a slave whose log is not its master's.
type oddReplica struct {
	runtime.Broker
	asked  *atomic.Int32
	answer rocketmq.PullResult
}

func (b oddReplica) StartPull(*rocketmq.PullRequest, func(*rocketmq.PullResult, error)) (func(), bool) {
	return nil, false
}

func (b oddReplica) Pull(ctx context.Context, req *rocketmq.PullRequest) (*rocketmq.PullResult, error) {
	if req.Queue.Topic != topicName || b.asked.Load() == 3 {
		res, err := b.Broker.Pull(ctx, req)
		if err != nil {
			return nil, errors.Join(err)
		}
		return res, nil
	}
	b.asked.Add(1)
	res := b.answer
	res.Release, res.Broker = func() {}, rocketmq.BrokerAddr{ID: 1, Addr: "slave:10911"}
	return &res, nil
}
