package broker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/broker/memnet"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func TestAwait_seesEachKindOfChange(t *testing.T) {
	t.Parallel()
	inBubble(t, broker.Config{IdleTimeout: time.Hour}, func(t *testing.T, b *broker.Broker, net *memnet.Network) {
		t.Helper()
		b.CreateTopic("T", 1)
		c := dial(t, net.DialContext, b.Address(), "c1")
		for name, step := range map[string]struct {
			condition func(*broker.Broker) bool
			act       func()
		}{
			"stored": {
				func(b *broker.Broker) bool { return len(b.Messages("T")) == 1 },
				func() { c.send("T", 0, "x", "", nil) },
			},
			"delayed and delivered": {
				func(b *broker.Broker) bool { return len(b.Messages("D")) == 1 },
				func() { c.send("D", 0, "x", "DELAY\x012\x02", nil) },
			},
			"held": {
				func(b *broker.Broker) bool { return b.HeldPulls() == 1 },
				func() { c.start(wire.ReqPullMessage, pullFields("G", "H", 0, 0, time.Hour), nil) },
			},
			"member expired": {
				func(b *broker.Broker) bool { return len(b.Members("E")) == 0 },
				func() {},
			},
			"connection gone": {
				func(b *broker.Broker) bool { return b.Connections() == 0 },
				func() { b.DropConnections() },
			},
		} {
			b.CreateTopic("H", 1)
			c = dial(t, net.DialContext, b.Address(), "c1")
			c.heartbeat("E", map[string]string{"T": "*"})
			done := make(chan error, 1)
			go func() { done <- b.Await(t.Context(), step.condition) }()
			synctest.Wait()
			step.act()
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			b.DropConnections()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Await(ctx, func(*broker.Broker) bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
