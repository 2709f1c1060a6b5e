package rocketmq

import (
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Names have their namespace on the wire and nowhere else: requests get it last before they are signed, answers and the
// brokers' own requests lose it first. Producer groups have it too, as Java's producers give it to theirs: members in two
// namespaces are not asked about each other's transactions. The inner group of consumers stays as it is.

// The header fields of version 2 (remoting-protocol.md 1.7).
const (
	fieldNamespace    = "ns"
	fieldHasNamespace = "nsd"
)

// finish is what happens to a request last: its names get their namespace, then it is signed. Nil: nothing.
func (c Config) finish() func(*wire.Command) error {
	if c.Namespace == "" && c.NamespaceV2 == "" {
		return c.Sign
	}
	return func(cmd *wire.Command) error {
		if c.NamespaceV2 != "" {
			cmd.Ext.Set(fieldNamespace, c.NamespaceV2)
			cmd.Ext.Set(fieldHasNamespace, "true")
		}
		eachName(cmd.Ext, func(name string) string { return wire.WithNamespace(c.Namespace, name) })
		if c.Sign == nil {
			return nil
		}
		return c.Sign(cmd)
	}
}

// eachName replaces the names of topics and groups among a header's fields.
func eachName(fields wire.Fields, change func(string) string) {
	for i := range fields {
		switch f := &fields[i]; f.Key {
		case "topic", "consumerGroup", "producerGroup", "group", "originTopic", "a", "b": // a and b are the group and the topic of 310
			f.Value = change(f.Value)
		}
	}
}

// wired gives a name its namespace, for a body; plain takes it off.
func (c *Client) wired(name string) string { return wire.WithNamespace(c.cfg.Namespace, name) }
func (c *Client) plain(name string) string { return wire.WithoutNamespace(c.cfg.Namespace, name) }

func (c *Client) wiredQueue(q sdk.Queue) wire.MessageQueue {
	q.Topic = c.wired(q.Topic)
	return messageQueue(q)
}

func (c *Client) plainQueue(q wire.MessageQueue) sdk.Queue {
	q.Topic = c.plain(q.Topic)
	return queueOf(q)
}

// wiredHeartbeat is data with the names of the wire. data itself is not changed.
func (c *Client) wiredHeartbeat(data *wire.HeartbeatData) *wire.HeartbeatData {
	if c.cfg.Namespace == "" {
		return data
	}
	out := *data
	out.ConsumerDataSet = make([]wire.ConsumerData, len(data.ConsumerDataSet))
	for i, consumer := range data.ConsumerDataSet {
		consumer.GroupName = c.wired(consumer.GroupName)
		consumer.SubscriptionDataSet = changedSubscriptions(consumer.SubscriptionDataSet, c.wired)
		out.ConsumerDataSet[i] = consumer
	}
	out.ProducerDataSet = make([]wire.ProducerData, len(data.ProducerDataSet))
	for i, producer := range data.ProducerDataSet {
		producer.GroupName = c.wired(producer.GroupName)
		out.ProducerDataSet[i] = producer
	}
	return &out
}

func changedSubscriptions(all []wire.SubscriptionData, change func(string) string) []wire.SubscriptionData {
	if all == nil {
		return nil
	}
	out := make([]wire.SubscriptionData, len(all))
	for i, s := range all {
		s.Topic = change(s.Topic)
		out[i] = s
	}
	return out
}

// changed is info with other names of topics. What streamd tells of itself in the properties has plain names everywhere.
func (c *Client) changed(info *wire.ConsumerRunningInfo, change func(string) string) *wire.ConsumerRunningInfo {
	if c.cfg.Namespace == "" || info == nil {
		return info
	}
	out := *info
	out.Queues = changedTable(info.Queues, change)
	out.PopTable = changedTable(info.PopTable, change)
	out.Subscriptions = changedSubscriptions(info.Subscriptions, change)
	if info.Status != nil {
		out.Status = make(map[string]wire.ConsumeStatus, len(info.Status))
		for topic, s := range info.Status {
			out.Status[change(topic)] = s
		}
	}
	return &out
}

func changedTable[V any](table wire.QueueTable[V], change func(string) string) wire.QueueTable[V] {
	if table == nil {
		return nil
	}
	out := make(wire.QueueTable[V], len(table))
	for q, v := range table {
		q.Topic = change(q.Topic)
		out[q] = v
	}
	return out
}

func (c *Client) plainSubscriptions(all map[string]wire.SubscriptionData) map[string]wire.SubscriptionData {
	if c.cfg.Namespace == "" || all == nil {
		return all
	}
	out := make(map[string]wire.SubscriptionData, len(all))
	for _, s := range all {
		s.Topic = c.plain(s.Topic)
		out[s.Topic] = s
	}
	return out
}

// Namespace is that of version 1, which names have on the wire; empty = none.
func (c *Client) Namespace() string { return c.cfg.Namespace }
