package broker

import (
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Stored is one message that the broker holds.
type Stored struct {
	Topic          string
	Queue          int32
	Offset         int64
	LogOffset      int64
	ID             string // UNIQ_KEY
	OffsetID       string
	Tag            string
	Keys           []string
	Properties     map[string]string
	Body           []byte // as stored; shared, do not change
	SysFlag        int32
	Flag           int32
	ReconsumeTimes int32
	Born, Stored   time.Time
	Raw            []byte // the stored form; shared, do not change
}

// Messages returns the readable messages of a topic, queue by queue.
func (b *Broker) Messages(topic string) []Stored {
	var all []Stored
	for queue := range int32(b.storage.Queues(topic)) {
		for _, raw := range b.storage.Messages(topic, queue, 0, 0) {
			if m, ok := storedOf(raw); ok {
				all = append(all, m)
			}
		}
	}
	return all
}

func storedOf(raw []byte) (Stored, bool) {
	var m wire.Message
	if _, err := m.Decode(raw); err != nil {
		return Stored{}, false
	}
	return Stored{
		Topic: string(m.Topic), Queue: m.QueueID, Offset: m.QueueOffset, LogOffset: m.LogOffset,
		ID: m.UniqueKey(), OffsetID: m.OffsetID(), Tag: string(m.Tag()), Keys: m.Keys(),
		Properties: wire.PropertyMap(m.Properties), Body: m.Body, SysFlag: m.SysFlag, Flag: m.Flag,
		ReconsumeTimes: m.ReconsumeTimes, Born: time.UnixMilli(m.BornMillis), Stored: time.UnixMilli(m.StoreMillis), Raw: m.Raw,
	}, true
}

// DeadLetters returns the messages of a group's dead-letter topic.
func (b *Broker) DeadLetters(group string) []Stored { return b.Messages(wire.DLQTopic(group)) }

// Bounds returns the first readable offset of a queue and the next to be written, both 0 for one never written to.
func (b *Broker) Bounds(topic string, queue int32) (first, next int64) {
	first, next, _ = b.storage.Bounds(topic, queue)
	return first, next
}

// Committed returns what a group committed for a queue; false when nothing.
func (b *Broker) Committed(group, topic string, queue int32) (int64, bool) {
	offset, ok := b.offsets.all(groupTopic{group, topic})[queue]
	return offset, ok
}

// Commit stores an offset for a group, as a member would.
func (b *Broker) Commit(group, topic string, queue int32, offset int64) {
	b.groups.ensure(group)
	b.offsets.piggyback(queueOf(group, topic, queue), offset)
}

// Members returns the client ids of a group in the order in which they came.
func (b *Broker) Members(group string) []string { return b.members.ids(group) }

// Subscriptions returns what a group's members registered: expression by topic.
func (b *Broker) Subscriptions(group string) map[string]string {
	g, _ := b.members.group(group)
	subs := make(map[string]string, len(g.subscriptions))
	for topic, s := range g.subscriptions {
		subs[topic] = s.SubString
	}
	return subs
}

// LockOwner returns the client that holds a queue for a group, "" when nobody does.
func (b *Broker) LockOwner(group, topic string, queue int32) string {
	return b.locks.owner(group, wire.MessageQueue{BrokerName: b.config.Name, QueueID: queue, Topic: topic})
}

// HeldPulls is how many pulls wait for messages.
func (b *Broker) HeldPulls() int { return b.holds.count() }

// Connections is how many connections are open.
func (b *Broker) Connections() int { return len(b.server.Connections()) }

// Topics returns the names of all topics.
func (b *Broker) Topics() []string { return b.topics.names() }

// Topic returns a topic's settings; false when there is none.
func (b *Broker) Topic(name string) (wire.TopicConfig, bool) { return b.topics.get(name) }

// Group returns a group's settings; false when there is none.
func (b *Broker) Group(name string) (wire.SubscriptionGroup, bool) { return b.groups.get(name) }

// Delayed is how many messages wait for their delay to end.
func (b *Broker) Delayed() int { return b.storage.waiting() }
