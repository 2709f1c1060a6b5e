package rocketmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// ConsumerConnections lists the members of a group that are connected to a broker (203). ErrNoMembers when there is none.
func (c *Client) ConsumerConnections(ctx context.Context, broker, group string) (*wire.ConsumerConnections, error) {
	var table wire.ConsumerConnections
	err := c.table(ctx, request{broker: broker, header: &wire.ConsumerConnectionsRequest{Group: group}}, &table)
	var resp *ResponseError
	if errors.As(err, &resp) && resp.Code == wire.RespConsumerNotOnline {
		err = ErrNoMembers
	}
	if err != nil {
		return nil, fmt.Errorf("listing the connections of group %s at broker %s: %w", group, broker, err)
	}
	table.Subscriptions = c.plainSubscriptions(table.Subscriptions)
	return &table, nil
}

// ConsumeStats tells how far a group is in its queues at a broker (208). topic "" = all topics of the group, its retry topic
// included.
func (c *Client) ConsumeStats(ctx context.Context, broker, group, topic string) (*wire.ConsumeStats, error) {
	header := &wire.ConsumeStatsRequest{Group: group}
	if topic != "" {
		header.Topic = wire.Some(topic)
	}
	var table wire.ConsumeStats
	if err := c.table(ctx, request{broker: broker, topic: topic, header: header}, &table); err != nil {
		return nil, fmt.Errorf("reading the progress of group %s at broker %s: %w", group, broker, err)
	}
	table.Offsets = changedTable(table.Offsets, c.plain)
	return &table, nil
}

// TopicStats tells the extent of a topic's queues at a broker (202).
func (c *Client) TopicStats(ctx context.Context, broker, topic string) (*wire.TopicStats, error) {
	var table wire.TopicStats
	header := &wire.TopicRequest{Op: wire.ReqGetTopicStats, Topic: topic}
	if err := c.table(ctx, request{broker: broker, topic: topic, header: header}, &table); err != nil {
		return nil, fmt.Errorf("reading the extent of topic %s at broker %s: %w", topic, broker, err)
	}
	table.Offsets = changedTable(table.Offsets, c.plain)
	return &table, nil
}

// CreateTopic makes a topic, or changes its queues, at every broker of the cluster that has a master (17). Name servers
// know it when CreateTopic returns, or a moment later. perm 0 = read and write. ErrNoBroker when no master is registered at
// the name servers, as in the first seconds of a cluster.
func (c *Client) CreateTopic(ctx context.Context, topic string, queues, perm int32) error {
	if err := wire.ValidateTopic(topic); err != nil {
		return fmt.Errorf("creating a topic: %w", err)
	}
	if perm == 0 {
		perm = permRead | permWrite
	}
	masters, err := c.Masters(ctx)
	if err != nil {
		return fmt.Errorf("creating topic %s: %w", topic, err)
	}
	if len(masters) == 0 {
		return fmt.Errorf("creating topic %s: %w: the name servers know no broker with a master", topic, ErrNoBroker)
	}
	errs := forEach(masters, func(to BrokerAddr) error { return c.createTopicAt(ctx, to, topic, queues, perm) })
	c.routes.expedite(topic)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("creating topic %s: %w", topic, err)
	}
	return nil
}

func (c *Client) createTopicAt(ctx context.Context, to BrokerAddr, topic string, queues, perm int32) error {
	r := request{broker: to.Name, topic: topic, header: &wire.CreateTopicRequest{
		Topic: topic, DefaultTopic: wire.DefaultTopic, ReadQueues: queues, WriteQueues: queues, Perm: perm,
		FilterType: wire.FilterTypeSingleTag, TopicSysFlag: wire.Some(int32(0)), Common: named(to.Name),
	}}
	reply, err := c.send(ctx, to, r)
	if err != nil {
		return err
	}
	if err := c.refusal(r, to, reply); err != nil {
		return err
	}
	reply.Release()
	return nil
}

// ClusterInfo lists the brokers that the name servers know (106).
func (c *Client) ClusterInfo(ctx context.Context) (*wire.ClusterInfo, error) {
	var info wire.ClusterInfo
	if err := c.askNameServer(ctx, wire.ReqGetClusterInfo, &info); err != nil {
		return nil, fmt.Errorf("listing the brokers: %w", err)
	}
	return &info, nil
}

// Topics lists all topics that the name servers know, RocketMQ's own included (206).
func (c *Client) Topics(ctx context.Context) ([]string, error) {
	var list wire.TopicList
	if err := c.askNameServer(ctx, wire.ReqGetAllTopics, &list); err != nil {
		return nil, fmt.Errorf("listing the topics: %w", err)
	}
	return list.Topics, nil
}

func (c *Client) askNameServer(ctx context.Context, op wire.RequestCode, into any) error {
	if err := c.running(); err != nil {
		return err
	}
	reply, err := c.ns.ask(ctx, wire.NewRequest(&wire.PlainRequest{Op: op}, nil))
	if err != nil {
		return err
	}
	defer reply.Release()
	if err := wire.DecodeBody(reply.Body, into); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return nil
}
