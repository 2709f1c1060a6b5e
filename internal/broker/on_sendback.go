package broker

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onSendBack is 36: stores a message again, for its group's next attempt or as a dead letter (consumer-semantics.md 8.1).
func (b *Broker) onSendBack(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	name, offset, level := f.text("group"), f.int64("offset"), f.int32("delayLevel")
	if bad := f.bad(); bad != nil {
		return bad
	}
	group, ok := b.groups.ensure(name)
	if !ok {
		return plain(wire.RespGroupNotExist, fmt.Sprintf(remarkNoGroup, name))
	}
	if group.RetryQueues <= 0 {
		return plain(wire.RespSuccess, "")
	}
	topic := b.topics.ensure(wire.RetryTopic(name), group.RetryQueues)
	if topic.Perm&wire.PermWrite == 0 {
		return plain(wire.RespNoPermission, fmt.Sprintf("the topic[%s] sending message is forbidden", topic.Name))
	}
	m, ok := b.lookup(offset)
	if !ok {
		return plain(wire.RespSystemError, fmt.Sprintf("look message by offset failed, %d", offset))
	}
	limit := group.RetryMaxTimes
	if wire.Version(r.Command.Version) >= wire.Version3_4_9 {
		limit = f.int32Or("maxReconsumeTimes", limit)
	}
	if _, err := b.put(b.again(m, group, level, limit)); err != nil {
		return b.cannotStore(err)
	}
	b.counters.sentBack(string(m.Topic), name)
	return plain(wire.RespSuccess, "")
}

// again makes the copy that is stored: one attempt more, in the retry topic with a delay, or in the dead-letter topic
// when the attempts are used up or the client says so by a negative level.
func (b *Broker) again(m *wire.Message, group wire.SubscriptionGroup, level, limit int32) *draft {
	d := draftOf(m)
	if d.properties.get(wire.PropRetryTopic) == "" {
		d.properties.set(wire.PropRetryTopic, string(m.Topic))
	}
	if d.properties.get(wire.PropOriginMessageID) == "" {
		d.properties.set(wire.PropOriginMessageID, m.OffsetID())
	}
	d.properties.set(wire.PropWait, "false")
	switch {
	case level < 0 || m.ReconsumeTimes >= limit:
		d.topic, d.queue, level = wire.DLQTopic(group.GroupName), 0, 0
		b.topics.ensure(d.topic, 1)
	case level == 0:
		d.topic, d.queue, level = wire.RetryTopic(group.GroupName), anyQueue(group.RetryQueues), 3+m.ReconsumeTimes
	default:
		d.topic, d.queue = wire.RetryTopic(group.GroupName), anyQueue(group.RetryQueues)
	}
	d.properties.set(wire.PropDelayLevel, strconv.Itoa(int(level)))
	d.reconsumed = m.ReconsumeTimes + 1
	return d
}

func anyQueue(queues int32) int32 {
	return rand.Int32N(queues)
}
