package runtime_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/streamd/streamd/internal/bubbletest"
	"github.com/streamd/streamd/internal/rocketmq"
)

// CheckFilter over the real protocol: what the embedded broker takes, and what it refuses with the parser's words.
func TestCheckFilterOverTheRealProtocol(t *testing.T) {
	bubbletest.Run(t, func(t *testing.T) {
		w := newWired(t, 1, ack)
		defer w.close()
		c, err := rocketmq.New(rocketmq.Config{NameServers: []string{w.broker.Address()}, ClientID: "c1", Dial: w.net.Dial, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		queues, err := c.Queues(t.Context(), topicName)
		if err != nil {
			t.Fatal(err)
		}
		check := func(expression string) error {
			return c.CheckFilter(t.Context(), group, queues[0].Broker, rocketmq.Subscription{Topic: topicName, Expression: expression, Type: rocketmq.FilterSQL92, Version: 1})
		}
		if err := check("amount > 100 AND region IN ('eu', 'us')"); err != nil {
			t.Errorf("a good expression: %v", err)
		}
		var refused *rocketmq.FilterError
		if err := check("amount >"); !errors.As(err, &refused) || refused.Unsupported || !rocketmq.IsFatal(err) {
			t.Errorf("a bad expression: %v", err)
		}
		if subs, err := c.Registered(t.Context(), group, []string{topicName}); err != nil || len(subs) != 0 {
			t.Errorf("registered of a group without members: %v, %v", subs, err)
		}
	})
}
