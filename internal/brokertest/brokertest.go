package brokertest

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/streamd/streamd/internal/broker"
	"github.com/streamd/streamd/internal/porttest"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Start starts a broker in memory.
func Start(t *testing.T) *broker.Broker {
	t.Helper()
	return StartGuarded(t, nil)
}

// StartGuarded starts a broker that refuses some requests, with the words of access control.
func StartGuarded(t *testing.T, access func(from netip.Addr, cmd *wire.Command) (remark string, allowed bool)) *broker.Broker {
	t.Helper()
	b := broker.New(broker.Config{CallTimeout: 10 * time.Second, Access: access, Address: porttest.Reserve(t)})
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// Client starts a client of b that sends each message once. An empty id is made by the client.
func Client(t *testing.T, b *broker.Broker, id string, change ...func(*rocketmq.Config)) *rocketmq.Client {
	t.Helper()
	cfg := rocketmq.Config{
		NameServers: []string{b.Address()}, ClientID: id, CallTimeout: 30 * time.Second, SendRetries: -1, Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	c, err := rocketmq.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Join makes a client of b a member of a group. It answers 307 with spec.RunningInfo; without it, it tells nothing.
func Join(t *testing.T, b *broker.Broker, id string, spec rocketmq.GroupSpec) {
	t.Helper()
	c := Client(t, b, id)
	for _, s := range spec.Subscriptions() {
		if wire.IsRetryTopic(s.Topic) {
			continue // comes with the member
		}
		if _, err := c.Queues(t.Context(), s.Topic); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Join(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
}
