package broker

import (
	"strconv"
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onPutGroup is 200. Members that the body leaves out have Java's defaults.
func (b *Broker) onPutGroup(r *remote.Request) *remote.Answer {
	g := b.NewGroup("")
	if bad := readBody(r, &g); bad != nil {
		return bad
	}
	if bad := b.checkGroup(g); bad != nil {
		return bad
	}
	b.groups.put(g)
	return plain(wire.RespSuccess, "")
}

// checkGroup refuses a group that cannot be, or is one too many.
func (b *Broker) checkGroup(g wire.SubscriptionGroup) *remote.Answer {
	_, known := b.groups.get(g.GroupName)
	switch {
	case g.GroupName == "":
		return plain(wire.RespSystemError, "the group has no groupName")
	case len(g.GroupName) > maxRetryTopic:
		return plain(wire.RespInvalidParameter, "the groupName is longer than "+strconv.Itoa(maxRetryTopic)+" characters")
	case !keyable(g.GroupName):
		return plain(wire.RespInvalidParameter, "the groupName has a zero byte")
	case g.RetryQueues > maxTopicQueues:
		return plain(wire.RespInvalidParameter, "retryQueueNums is more than "+strconv.Itoa(maxTopicQueues))
	case !known && b.groups.full():
		return plain(wire.RespSystemError, "the broker has "+strconv.Itoa(maxGroups)+" groups, which is the most")
	}
	return nil
}

// onGroupConfig is 352.
func (b *Broker) onGroupConfig(r *remote.Request) *remote.Answer {
	name := fieldsOf(r).optional("group")
	g, ok := b.groups.get(name)
	if !ok {
		return plain(wire.RespGroupNotExist, "No group in this broker. group: "+name)
	}
	return jsonBody(g, wire.Standard)
}

// onAllGroups is 201.
func (b *Broker) onAllGroups(*remote.Request) *remote.Answer {
	return jsonBody(b.groups.snapshot(), wire.Standard)
}

// onDeleteGroup is 207.
func (b *Broker) onDeleteGroup(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	name := f.text("groupName")
	if bad := f.bad(); bad != nil {
		return bad
	}
	b.groups.remove(name)
	b.counters.forgetGroup(name)
	b.forbidden.remove(func(k groupTopic) bool { return k.group == name })
	if f.flag("cleanOffset", false) || f.flag("removeOffset", false) {
		b.offsets.removeGroup(name)
	}
	return plain(wire.RespSuccess, "")
}

// onConsumers is 203.
func (b *Broker) onConsumers(r *remote.Request) *remote.Answer {
	name := fieldsOf(r).optional("consumerGroup")
	g, ok := b.members.group(name)
	if !ok {
		return plain(wire.RespConsumerNotOnline, "the consumer group["+name+"] not online")
	}
	return jsonBody(wire.ConsumerConnections{
		Connections: connectionsOf(g.members), ConsumeFromWhere: g.fromWhere, ConsumeType: g.consumeType, MessageModel: g.model,
		Subscriptions: g.subscriptions,
	}, wire.Standard)
}

// onProducers is 204.
func (b *Broker) onProducers(r *remote.Request) *remote.Answer {
	name := fieldsOf(r).optional("producerGroup")
	members := b.members.producer(name)
	if len(members) == 0 {
		return plain(wire.RespSystemError, "the producer group["+name+"] not exist")
	}
	return jsonBody(wire.ProducerConnections{Connections: connectionsOf(members)}, wire.Standard)
}

func connectionsOf(members []member) []wire.Connection {
	all := make([]wire.Connection, 0, len(members))
	for _, m := range members {
		all = append(all, wire.Connection{Addr: m.conn.Remote().String(), ClientID: m.clientID, Language: m.language, Version: m.version})
	}
	return all
}

// onConsumeStats is 208: how far a group is, in the topics named or in all that it has offsets in.
func (b *Broker) onConsumeStats(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	group := f.text("consumerGroup")
	if bad := f.bad(); bad != nil {
		return bad
	}
	stats := wire.ConsumeStats{Offsets: make(wire.QueueTable[wire.ConsumeOffset])}
	for _, topic := range b.statTopics(f, group) {
		c, ok := b.topics.get(topic)
		if !ok || b.notSubscribed(group, topic) {
			continue
		}
		for queue := range c.ReadQueues {
			stats.Offsets[b.queueName(topic, queue)] = b.consumeOffset(queueOf(group, topic, queue))
		}
		stats.TPS += b.getTPS(group, topic)
	}
	return jsonBody(stats, wire.Fastjson)
}

func (b *Broker) statTopics(f *fields, group string) []string {
	if topic := strings.TrimSpace(f.optional("topic")); topic != "" {
		return []string{topic}
	}
	if list := f.optional("topicList"); list != "" {
		return strings.Split(list, ";")
	}
	return b.offsets.topics(group)
}

// notSubscribed tells that a group with members online does not consume a topic any more.
func (b *Broker) notSubscribed(group, topic string) bool {
	g, online := b.members.group(group)
	_, subscribed := g.subscriptions[topic]
	return online && !subscribed && len(g.subscriptions) > 0
}

func (b *Broker) consumeOffset(q groupQueue) wire.ConsumeOffset {
	_, next, _ := b.storage.Bounds(q.topic, q.queue)
	committed, _ := b.offsets.query(q)
	pulled := b.offsets.lastPull(q)
	last, _ := b.storage.StoreMillis(q.topic, q.queue, committed-1)
	return wire.ConsumeOffset{BrokerOffset: next, ConsumerOffset: committed, LastMillis: last, PullOffset: &pulled}
}
