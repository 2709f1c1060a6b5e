package broker

import (
	"fmt"
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// maxTopicQueues bounds the queues of one topic: the ids that the store takes.
const maxTopicQueues = 1 << 16

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
	if bad := b.checkNewTopic(c); bad != nil {
		return bad
	}
	for attribute := range strings.SplitSeq(f.optional("attributes"), ",") {
		if name, value, ok := strings.Cut(attribute, "="); ok && strings.HasPrefix(name, "+") {
			c.Attributes[name[1:]] = value
		}
	}
	if bad := checkAttributes(c.Attributes); bad != nil {
		return bad
	}
	b.topics.put(c)
	return plain(wire.RespSuccess, unset)
}

// checkNewTopic is checkTopic for a topic that may be one too many.
func (b *Broker) checkNewTopic(c wire.TopicConfig) *remote.Answer {
	if _, known := b.topics.get(c.Name); !known && b.topics.full() {
		return plain(wire.RespSystemError, fmt.Sprintf("the broker has %d topics, which is the most", maxTopics))
	}
	return checkTopic(c)
}

// checkTopic refuses names and queue counts that no topic may have.
func checkTopic(c wire.TopicConfig) *remote.Answer {
	if fault := topicNameFault(c.Name); fault != "" {
		return plain(wire.RespInvalidParameter, fault)
	}
	if wire.IsSystemTopic(c.Name) {
		return plain(wire.RespInvalidParameter, "The topic["+c.Name+"] is conflict with system topic.")
	}
	if most := max(c.ReadQueues, c.WriteQueues); min(c.ReadQueues, c.WriteQueues) < 0 || most > maxTopicQueues {
		return plain(wire.RespInvalidParameter, fmt.Sprintf("the topic %s would have %d queues; at most %d are allowed", c.Name, most, maxTopicQueues))
	}
	return checkAttributes(c.Attributes)
}

// checkAttributes refuses attributes that RocketMQ does not know, and kinds of topics that are not there.
func checkAttributes(attributes map[string]string) *remote.Answer {
	for name, value := range attributes {
		switch name {
		case "message.type", "reserve.time":
		case "queue.type":
			if value != "SimpleCQ" {
				return plain(wire.RespInvalidParameter, "topics with queue.type="+value+" are not supported; SimpleCQ is")
			}
		case "cleanup.policy":
			if value != "DELETE" {
				return plain(wire.RespInvalidParameter, "topics with cleanup.policy="+value+" are not supported; DELETE is")
			}
		default:
			return plain(wire.RespSystemError, "unsupported key: "+name)
		}
	}
	return nil
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
	b.counters.forgetTopic(name)
	b.forbidden.remove(func(k groupTopic) bool { return k.topic == name })
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
	stats, tps := make(wire.QueueTable[wire.TopicOffset]), b.putTPS(name)
	for queue := range max(c.ReadQueues, c.WriteQueues) {
		first, next, _ := b.storage.Bounds(name, queue)
		last, _ := b.storage.StoreMillis(name, queue, next-1)
		stats[b.queueName(name, queue)] = wire.TopicOffset{LastUpdateMillis: last, MaxOffset: next, MinOffset: first}
	}
	return jsonBody(wire.TopicStats{Offsets: stats, PutTPS: &tps}, wire.Fastjson)
}
