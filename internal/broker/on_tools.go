package broker

import (
	"slices"
	"time"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onTopicGroups is 300: the groups that committed offsets for a topic, or subscribe to it now.
func (b *Broker) onTopicGroups(r *remote.Request) *remote.Answer {
	topic := fieldsOf(r).optional("topic")
	groups := append(b.offsets.groups(topic), b.members.subscribers(topic)...)
	slices.Sort(groups)
	return jsonBody(wire.GroupList{Groups: slices.Compact(groups)}, wire.Standard)
}

// onGroupTopics is 343: the topics that a group committed offsets for.
func (b *Broker) onGroupTopics(r *remote.Request) *remote.Answer {
	topics := b.offsets.topics(fieldsOf(r).optional("group"))
	if topics == nil {
		topics = []string{}
	}
	return jsonBody(wire.TopicList{BrokerAddr: b.Address(), Topics: topics}, wire.Standard)
}

// onSubscription is 345: what a group's members registered for a topic.
func (b *Broker) onSubscription(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	body := wire.QuerySubscriptionBody{Group: f.optional("group"), Topic: f.optional("topic")}
	if s, _, _, ok := b.members.subscription(body.Group, body.Topic); ok {
		body.SubscriptionData = &s
	}
	return jsonBody(body, wire.Standard)
}

// onTimeSpan is 303: the extent of a topic's queues in time, and the group's place in it.
func (b *Broker) onTimeSpan(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	topic, group := f.text("topic"), f.text("group")
	if bad := f.bad(); bad != nil {
		return bad
	}
	c, ok := b.topics.get(topic)
	if !ok {
		return plain(wire.RespTopicNotExist, "topic["+topic+"] not exist")
	}
	spans := wire.TimeSpans{Spans: []wire.TimeSpan{}}
	for queue := range c.WriteQueues {
		spans.Spans = append(spans.Spans, b.timeSpan(queueOf(group, topic, queue)))
	}
	return jsonBody(spans, wire.Standard)
}

func (b *Broker) timeSpan(q groupQueue) wire.TimeSpan {
	first, next, _ := b.storage.Bounds(q.topic, q.queue)
	committed, _ := b.offsets.query(q)
	earliest, ok := b.storage.StoreMillis(q.topic, q.queue, first)
	if !ok {
		earliest = -1
	}
	latest, ok := b.storage.StoreMillis(q.topic, q.queue, next-1)
	if !ok {
		latest = -1
	}
	consumed, ok := b.storage.StoreMillis(q.topic, q.queue, max(committed-1, first))
	if !ok {
		consumed = earliest
	}
	span := wire.TimeSpan{Queue: b.queueName(q.topic, q.queue), MinMillis: earliest, MaxMillis: latest, ConsumeMillis: consumed}
	if waiting, ok := b.storage.StoreMillis(q.topic, q.queue, max(committed, first)); ok {
		span.DelayMillis = time.Now().UnixMilli() - waiting
	}
	return span
}

// onCloneOffsets is 314: gives a group another one's offsets, in one topic or in all.
func (b *Broker) onCloneOffsets(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	from, to := f.text("srcGroup"), f.name("destGroup")
	if bad := f.bad(); bad != nil {
		return bad
	}
	topics := b.offsets.topics(from)
	if topic := f.optional("topic"); topic != "" {
		topics = []string{topic}
	}
	for _, topic := range topics {
		for queue, offset := range b.offsets.all(groupTopic{from, topic}) {
			b.offsets.piggyback(queueOf(to, topic, queue), offset)
		}
	}
	return plain(wire.RespSuccess, "")
}

// groups returns the groups that committed offsets for a topic.
func (t *offsetTable) groups(topic string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	groups := []string{}
	for k := range t.committed {
		if k.topic == topic {
			groups = append(groups, k.group)
		}
	}
	return groups
}

// subscribers returns the groups whose members subscribe to a topic.
func (t *memberTable) subscribers(topic string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var groups []string
	for name, g := range t.consumers {
		if _, ok := g.subscriptions[topic]; ok {
			groups = append(groups, name)
		}
	}
	return groups
}
