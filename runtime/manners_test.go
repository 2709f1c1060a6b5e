package runtime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime"
)

// javaClient answers 307 as a Java client with two callback threads does: two questions at once stop it for long.
type javaClient struct {
	runtime.Broker
	id               string
	busy, most, asks atomic.Int32
}

func (j *javaClient) PeerInfo(ctx context.Context, groupName, id string) (*wire.ConsumerRunningInfo, error) {
	if id != j.id {
		return j.Broker.PeerInfo(ctx, groupName, id)
	}
	j.asks.Add(1)
	n := j.busy.Add(1)
	defer j.busy.Add(-1)
	j.most.Store(max(j.most.Load(), n))
	nap(200 * time.Millisecond)
	return j.Broker.PeerInfo(ctx, groupName, id)
}

// A Java member is asked one question at a time and one a minute, whatever a hand-over, refused locks and the look at
// neighbors want to know.
func TestJavaMembersAreAskedWithManners(t *testing.T) {
	for _, order := range []runtime.Order{runtime.OrderNone, runtime.OrderQueue} {
		bubbletest.Run(t, func(t *testing.T) {
			r := newRig(t, 4, ack)
			r.javaMember("j1", rocketmq.Subscription{Topic: topicName, Expression: "*", Type: rocketmq.FilterTag, Version: 7})
			cfg := r.config("c1", func(s *runtime.StreamConfig) { s.Order = order })
			java := &javaClient{Broker: cfg.Brokers["main"], id: "j1"}
			cfg.Brokers["main"] = java
			e := r.start(cfg)
			wait(10 * time.Minute)
			if got := owned(e); len(got) != 2 {
				t.Errorf("owns %v, want its half", got)
			}
			if n := java.asks.Load(); n < 5 || n > 12 || java.most.Load() != 1 {
				t.Errorf("asked %d times in ten minutes, %d questions at once; want one a minute, one at a time", n, java.most.Load())
			}
			r.stop(e)
		})
	}
}

// One that does not answer is left in peace as long, and is unknown meanwhile.
func TestSilentJavaMembersAreLeftInPeace(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		r := newRig(t, 4, ack)
		r.javaMember("j1", rocketmq.Subscription{Topic: topicName, Expression: "*", Type: rocketmq.FilterTag, Version: 7})
		cfg := r.config("c1")
		java := &stuckClient{Broker: cfg.Brokers["main"]}
		cfg.Brokers["main"] = java
		e := r.start(cfg)
		wait(30 * time.Second)
		java.stuck.Store(true)
		java.asks.Store(0)
		wait(10 * time.Minute)
		if n := java.asks.Load(); n < 5 || n > 12 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		if got := owned(e); len(got) != 2 {
			t.Errorf("owns %v, want its half", got)
		}
		r.stop(e)
	})
}

// stuckClient does not answer while it is stuck.
type stuckClient struct {
	runtime.Broker
	stuck atomic.Bool
	asks  atomic.Int32
}

func (s *stuckClient) PeerInfo(ctx context.Context, groupName, id string) (*wire.ConsumerRunningInfo, error) {
	s.asks.Add(1)
	if s.stuck.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Broker.PeerInfo(ctx, groupName, id)
}
