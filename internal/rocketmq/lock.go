package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// LockQueues asks the brokers to reserve queues of a group for this client (41), or to renew that, and returns those it
// holds now; the others are another client's. A lock lasts 60 s on the broker (consumer-semantics.md 6.1). Queues of a
// broker that did not answer are missing from the result and in the error.
func (c *Client) LockQueues(ctx context.Context, group string, queues []sdk.Queue) ([]sdk.Queue, error) {
	var mu sync.Mutex
	var held []sdk.Queue
	err := c.eachBroker(queues, func(broker string, mine []sdk.Queue) error {
		reply, err := c.lockRequest(ctx, wire.ReqLockQueues, group, broker, mine)
		if err != nil {
			return fmt.Errorf("locking %d queues of group %s at broker %s: %w", len(mine), group, broker, err)
		}
		var result wire.LockResult
		if err := wire.DecodeBody(reply, &result); err != nil {
			return fmt.Errorf("locking queues of group %s at broker %s: %w: %w", group, broker, ErrProtocol, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, q := range result.Queues {
			held = append(held, c.plainQueue(q))
		}
		return nil
	})
	return held, err
}

// UnlockQueues gives queues of a group free for other clients (42) and waits for the brokers' words. A broker that did not
// answer frees them by itself after 60 s.
func (c *Client) UnlockQueues(ctx context.Context, group string, queues []sdk.Queue) error {
	return c.eachBroker(queues, func(broker string, mine []sdk.Queue) error {
		if _, err := c.lockRequest(ctx, wire.ReqUnlockQueues, group, broker, mine); err != nil {
			return fmt.Errorf("unlocking %d queues of group %s at broker %s: %w", len(mine), group, broker, err)
		}
		return nil
	})
}

func (c *Client) lockRequest(ctx context.Context, op wire.RequestCode, group, broker string, queues []sdk.Queue) ([]byte, error) {
	list := make([]wire.MessageQueue, 0, len(queues))
	for _, q := range queues {
		list = append(list, c.wiredQueue(q))
	}
	body, err := wire.EncodeBody(&wire.LockBody{ClientID: c.cfg.ClientID, Group: c.wired(group), Queues: list}, wire.Standard)
	if err != nil {
		return nil, err
	}
	r := request{broker: broker, topic: queues[0].Topic, header: &wire.PlainRequest{Op: op, Common: named(broker)}, body: body}
	return c.bodyOf(ctx, r)
}

// eachBroker runs f for the queues of each broker, side by side.
func (c *Client) eachBroker(queues []sdk.Queue, f func(broker string, queues []sdk.Queue) error) error {
	byBroker := map[string][]sdk.Queue{}
	var brokers []string
	for _, q := range queues {
		if byBroker[q.Broker] == nil {
			brokers = append(brokers, q.Broker)
		}
		byBroker[q.Broker] = append(byBroker[q.Broker], q)
	}
	return errors.Join(forEach(brokers, func(broker string) error { return f(broker, byBroker[broker]) })...)
}
