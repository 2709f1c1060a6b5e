package rocketmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// whyNoMembers looks behind ErrNoMembers. A broker that does not create groups (autoCreateSubscriptionGroup=false) answers
// the heartbeat of a group that it does not know with success and forgets it (consumer-semantics.md 9.2): that is told from
// a heartbeat that is still on its way by a pull, which looks for the group before anything else. The pull names no queue,
// so it reads nothing.
func (c *Client) whyNoMembers(ctx context.Context, group, topic string, r *route, err error) error {
	if !errors.Is(err, ErrNoMembers) || !c.groups.joined(group) {
		return err
	}
	for _, broker := range c.shuffled(r) {
		reply, probed := c.onMaster(ctx, request{broker: broker, topic: topic, fast: true, anyReplica: true, header: &wire.PullRequest{
			Group: group, Topic: topic, QueueID: noQueue, SysFlag: wire.PullSubscription, Subscription: wire.Some(wire.AllTags),
			ExpressionType: wire.Some(wire.ExpressionTag), Common: named(broker),
		}})
		if probed == nil {
			reply.Release()
			continue
		}
		if resp, refused := errors.AsType[*ResponseError](probed); refused && resp.Code == wire.RespGroupNotExist {
			return fmt.Errorf("%w: broker %s does not know it, does not create groups by itself, and ignores our heartbeats", ErrGroupNotFound, broker)
		}
	}
	return err
}

// noQueue is the id of no queue: brokers refuse it after they looked for group and topic.
const noQueue = -1
