package broker

import (
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onCreateTopic is 17: makes or changes a topic.
func (b *Broker) onCreateTopic(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	c := wire.TopicConfig{
		Attributes: map[string]string{}, Name: f.text("topic"), ReadQueues: f.int32("readQueueNums"), WriteQueues: f.int32("writeQueueNums"),
		Perm: f.int32("perm"), FilterType: f.optional("topicFilterType"), TopicSysFlag: f.int32Or("topicSysFlag", 0), Order: f.flag("order", false),
	}
	if bad := f.bad(); bad != nil {
		return bad
	}
	if fault := topicNameFault(c.Name); fault != "" {
		return plain(wire.RespInvalidParameter, fault)
	}
	if wire.IsSystemTopic(c.Name) {
		return plain(wire.RespInvalidParameter, "The topic["+c.Name+"] is conflict with system topic.")
	}
	for attribute := range strings.SplitSeq(f.optional("attributes"), ",") {
		if name, value, ok := strings.Cut(attribute, "="); ok && strings.HasPrefix(name, "+") {
			c.Attributes[name[1:]] = value
		}
	}
	b.topics.put(c)
	return plain(wire.RespSuccess, unset)
}

// onDeleteTopic is 215.
func (b *Broker) onDeleteTopic(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	name := f.text("topic")
	if bad := f.bad(); bad != nil {
		return bad
	}
	if wire.IsSystemTopic(name) {
		return plain(wire.RespInvalidParameter, "The topic["+name+"] is conflict with system topic.")
	}
	b.DeleteTopic(name)
	return plain(wire.RespSuccess, "")
}

// onTopicConfig is 351.
func (b *Broker) onTopicConfig(r *remote.Request) *remote.Answer {
	name := fieldsOf(r).optional("topic")
	c, ok := b.topics.get(name)
	if !ok {
		return plain(wire.RespTopicNotExist, "No topic in this broker. topic: "+name)
	}
	return jsonBody(c, wire.Standard)
}

// onAllTopics is 21.
func (b *Broker) onAllTopics(*remote.Request) *remote.Answer {
	return jsonBody(b.topics.snapshot(), wire.Standard)
}

// onTopicStats is 202.
func (b *Broker) onTopicStats(r *remote.Request) *remote.Answer {
	name := fieldsOf(r).optional("topic")
	c, ok := b.topics.get(name)
	if !ok {
		return plain(wire.RespTopicNotExist, "topic["+name+"] not exist")
	}
	stats, tps := make(wire.QueueTable[wire.TopicOffset]), 0.0
	for queue := range max(c.ReadQueues, c.WriteQueues) {
		first, next, _ := b.store.Bounds(name, queue)
		last, _ := b.store.StoreMillis(name, queue, next-1)
		stats[b.queueName(name, queue)] = wire.TopicOffset{LastUpdateMillis: last, MaxOffset: next, MinOffset: first}
	}
	return jsonBody(wire.TopicStats{Offsets: stats, PutTPS: &tps}, wire.Fastjson)
}
