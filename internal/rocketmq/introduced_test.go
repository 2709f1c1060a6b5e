package rocketmq

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// A broker that is slow with heartbeats alone (it makes retry topics, and registers them, within one) does not keep a group
// from being left for as long as a pull may take: a pull's heartbeat, which a leave waits for, has the time of any request.
func TestHeartbeatOfAPullIsBounded(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		join(t, c, spec("G"))
		broker.on(wire.ReqHeartbeat, func(req *wire.Command) *wire.Command {
			if strings.Contains(string(req.Body), `"groupName":"G"`) {
				return nil
			}
			return wire.NewResponse(req, wire.RespSuccess, "") // a probe
		})
		start := time.Now()
		_, err := c.Pull(t.Context(), pullOf(0, 15*time.Second)) // of a newer subscription: the broker has to hear of it first
		if took := time.Since(start); !IsRetriable(err) || took > 3500*time.Millisecond {
			t.Errorf("the pull: %v after %s", err, took)
		}
	})
}

// A group that is left in the moment between a new connection's first heartbeat and its first use is unregistered there: the
// broker would list the member for two minutes.
func TestLeaveReachesAConnectionThatNobodyUsesYet(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		c := n.start(t, nil)
		var hold atomic.Bool
		free := make(chan struct{})
		c.brokers.hello = func(ctx context.Context, one *peer, conn *remoting.Conn) error {
			err := c.hello(ctx, one, conn)
			if hold.Load() {
				<-free
			}
			return err
		}
		join(t, c, spec("G"))
		before := len(heartbeats(t, broker))
		hold.Store(true)
		for _, nc := range broker.connections() {
			_ = nc.Close()
		}
		wait(time.Second)
		if got := len(heartbeats(t, broker)) - before; got != 1 {
			t.Fatalf("%d heartbeats on the new connection, want 1", got)
		}
		if err := c.Leave(t.Context(), "G"); err != nil {
			t.Errorf("leaving: %v", err)
		}
		if got := len(broker.requests(wire.ReqUnregisterClient)); got != 1 {
			t.Errorf("the broker was told %d times of the leave, want once", got)
		}
		close(free)
	})
}

// A broker forgets what a group subscribes to with its last member. Who joins again tells it in full, however soon.
func TestShortHeartbeatsBeginAnewWithTheGroup(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		broker.on(wire.ReqHeartbeat, knowsV2(new(atomic.Bool)))
		c := n.start(t, short)
		join(t, c, spec("G"))
		if err := c.Heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		if without, _, _ := lastBeat(t, broker); !without {
			t.Fatal("the second heartbeat is not short")
		}
		if err := c.Leave(t.Context(), "G"); err != nil {
			t.Fatal(err)
		}
		join(t, c, spec("G"))
		if without, _, subscriptions := lastBeat(t, broker); without || subscriptions == 0 {
			t.Errorf("the first heartbeat after a leave: short %t, %d subscriptions", without, subscriptions)
		}
	})
}

// An answer that comes late, on a connection that drains, says nothing of what the broker was told on the next one.
func TestShortHeartbeatsAreOfOneConnection(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		n, _, broker := one(t)
		know := knowsV2(new(atomic.Bool))
		broker.on(wire.ReqHeartbeat, know)
		c := n.start(t, short)
		join(t, c, spec("G"))
		answer := make(chan struct{})
		broker.on(wire.ReqHeartbeat, func(req *wire.Command) *wire.Command {
			<-answer
			return know(req)
		})
		beaten := make(chan error, 1)
		go func() { beaten <- c.Heartbeat(t.Context()) }()
		wait(100 * time.Millisecond)
		broker.set(refusing) // a new connection takes a while
		broker.on(wire.ReqGetMaxOffset, refuse(wire.RespGoAway, "shutting down"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.MaxOffset(ctx, queue("a", 0)); !IsRetriable(err) {
			t.Errorf("a broker that goes away: %v", err)
		}
		close(answer)
		if err := <-beaten; err != nil {
			t.Errorf("the heartbeat under way: %v", err)
		}
		before := len(heartbeats(t, broker))
		broker.set(up)
		wait(3 * time.Second)
		if after := len(heartbeats(t, broker)); after != before+1 {
			t.Fatalf("%d heartbeats on the new connection, want 1", after-before)
		}
		if without, _, _ := lastBeat(t, broker); without {
			t.Error("the first heartbeat of a new connection is short")
		}
	})
}
