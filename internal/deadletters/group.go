package deadletters

import (
	"context"
	"errors"
	"fmt"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Members is what CheckRetry asks. *rocketmq.Client fills it.
type Members interface {
	WritableQueues(ctx context.Context, topic string) ([]sdk.Queue, error)
	ConsumerConnections(ctx context.Context, broker, group string) (*wire.ConsumerConnections, error)
	PeerInfo(ctx context.Context, group, clientID string) (*wire.ConsumerRunningInfo, error)
}

// CheckRetry tells why a group's retry topic would not bring messages to its members; nil when nothing speaks against it.
// Brokers from 5.1.1 on divert what is sent to the retry topic of a group that holds queue locks back to its dead letters
// (consumer-semantics.md 6.4), so a group that keeps order is refused.
func CheckRetry(ctx context.Context, c Members, group string) error {
	topic := wire.RetryTopic(group)
	queues, err := c.WritableQueues(ctx, topic)
	if errors.Is(err, rocketmq.ErrTopicNotFound) || err == nil && len(queues) == 0 {
		return fmt.Errorf("group %s has no retry topic that takes messages (%s); start a member of it once, or use --to topic", group, topic)
	}
	if err != nil {
		return err //nolint:wrapcheck // says which topic
	}
	asked := map[string]bool{}
	for _, q := range queues {
		if asked[q.Broker] {
			continue
		}
		asked[q.Broker] = true
		if err := ordered(ctx, c, q.Broker, group); err != nil {
			return err
		}
	}
	return nil
}

func ordered(ctx context.Context, c Members, broker, group string) error {
	members, err := c.ConsumerConnections(ctx, broker, group)
	if errors.Is(err, rocketmq.ErrNoMembers) {
		return nil // they get it when they come
	}
	if err != nil {
		return err //nolint:wrapcheck // says which group and broker
	}
	for _, m := range members.Connections {
		info, err := c.PeerInfo(ctx, group, m.ClientID)
		if err != nil {
			return fmt.Errorf("whether member %s keeps order is not known, and brokers put messages for an ordered group back to its dead letters: %w; use --to topic, or try again", m.ClientID, err)
		}
		if info.Properties[wire.RunningOrderly] == "true" {
			return fmt.Errorf("group %s keeps order (member %s): brokers put what is sent to its retry topic back to the dead letters while it holds queue locks; "+
				"stop its members and wait a minute, or use --to topic, which every group of the topic sees", group, m.ClientID)
		}
	}
	return nil
}
