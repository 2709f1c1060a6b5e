package rocketmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/streamd/streamd/internal/rocketmq/remoting"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// SendBack asks the master of the broker that a message was pulled from to store it again, for a retry or as a dead letter
// (code 36), and waits for its word. nil means stored. Else:
//
//   - IsOriginalGone: the broker no longer has the message; it can be sent anew to the group's retry or dead-letter topic;
//   - IsUnknownOutcome: no answer; it may be stored, so that asking again may store it twice;
//   - any other *ResponseError: refused, nothing stored;
//   - anything else: the request did not reach a broker.
//
// The address comes from the present route of the broker's name; StoreHost is used only when no name server knows the name.
// A group whose retry topic has no queues is answered with success although nothing is stored (consumer-semantics.md 8.1
// step 4): the caller must know the retry topic's route.
func (c *Client) SendBack(ctx context.Context, req *SendBackRequest) error {
	to, err := c.master(ctx, req.Queue.Broker, req.Queue.Topic)
	if errors.Is(err, ErrNoBroker) && req.StoreHost != "" && len(c.routes.broker(req.Queue.Broker)) == 0 {
		to, err = BrokerAddr{Name: req.Queue.Broker, Addr: dialable(req.StoreHost)}, nil
	}
	if err == nil {
		err = c.sendBack(ctx, to, req)
	}
	if err != nil {
		return fmt.Errorf("sending back message %s of %s at log offset %d for group %s: %w",
			req.MessageID, req.Queue, req.LogOffset, req.Group, err)
	}
	return nil
}

func (c *Client) sendBack(ctx context.Context, to BrokerAddr, req *SendBackRequest) error {
	r := inQueue(req.Queue, &wire.SendBackRequest{
		LogOffset: req.LogOffset, Group: req.Group,
		DelayLevel:        int32(max(-1, min(req.DelayLevel, 1<<16))), //nolint:gosec // bounded
		OriginMessageID:   wire.Some(req.MessageID),
		OriginTopic:       wire.Some(req.OriginTopic),
		MaxReconsumeTimes: wire.Some(int32(max(0, min(req.MaxRetries, 1<<16)))), //nolint:gosec // bounded
		Common:            named(req.Queue.Broker),
	})
	var reply *remoting.Reply
	reply, err := c.send(ctx, to, r)
	if err != nil {
		return err
	}
	if err := c.refusal(r, to, reply); err != nil {
		return c.note(err, req.Queue.Topic)
	}
	reply.Release()
	return nil
}
