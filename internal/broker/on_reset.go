package broker

import (
	"fmt"
	"strconv"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// resetting is the header of 222.
type resetting struct {
	topic, group      string
	queue             int32 // −1 = all
	offset, timestamp int64 // offset −1 = by timestamp; timestamp −1 = the end
	force             bool
}

// onReset is 222: by leaving the new offsets for the group's next pulls, or with PushResets by telling the members.
func (b *Broker) onReset(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	q := resetting{
		topic: f.text("topic"), group: f.text("group"), queue: f.int32Or("queueId", -1), offset: f.int64Or("offset", -1),
		timestamp: f.int64("timestamp"), force: f.flag("isForce", false),
	}
	if bad := f.bad(); bad != nil {
		return bad
	}
	topic, ok := b.topics.get(q.topic)
	if !ok {
		return plain(wire.RespTopicNotExist, "Topic "+q.topic+" does not exist")
	}
	if b.tuned.pushResets.Load() {
		return b.pushReset(q, topic)
	}
	if _, ok := b.groups.get(q.group); !ok {
		return plain(wire.RespGroupNotExist, "Group "+q.group+" does not exist")
	}
	targets, bad := b.resetTargets(q, topic)
	if bad != nil {
		return bad
	}
	for queue, offset := range targets {
		b.offsets.reset(queueOf(q.group, q.topic, queue.QueueID), offset)
	}
	return jsonBody(wire.ResetOffsetBody{Offsets: targets}, wire.Fastjson)
}

// resetTargets computes the new offset of each queue (resetOffsetInner).
func (b *Broker) resetTargets(q resetting, topic wire.TopicConfig) (wire.QueueTable[int64], *remote.Answer) {
	targets := make(wire.QueueTable[int64])
	if q.queue < 0 {
		for queue := range topic.ReadQueues {
			targets[b.queueName(q.topic, queue)] = b.offsetAt(q, queue)
		}
		return targets, nil
	}
	if q.queue >= topic.ReadQueues {
		return nil, plain(wire.RespSystemError, fmt.Sprintf("Topic %s has no queue %d", q.topic, q.queue))
	}
	target := q.offset
	if target == -1 {
		target = b.offsetAt(q, q.queue)
	}
	if first, next, _ := b.storage.Bounds(q.topic, q.queue); target < first || target > next+1 {
		return nil, plain(wire.RespSystemError, fmt.Sprintf("Target offset %d not in consume queue range [%d-%d]", target, first, next))
	}
	targets[b.queueName(q.topic, q.queue)] = target
	return targets, nil
}

func (b *Broker) offsetAt(q resetting, queue int32) int64 {
	if q.timestamp < 0 {
		_, next, _ := b.storage.Bounds(q.topic, queue)
		return next
	}
	return b.storage.Search(q.topic, queue, q.timestamp, false)
}

func (b *Broker) queueName(topic string, queue int32) wire.MessageQueue {
	return wire.MessageQueue{BrokerName: b.config.Name, QueueID: queue, Topic: topic}
}

// pushReset is what brokers did before 5.1: each queue must have an offset, and the members, who must be online, are told
// by 220. Without force an offset only goes back.
func (b *Broker) pushReset(q resetting, topic wire.TopicConfig) *remote.Answer {
	targets := make(wire.QueueTable[int64])
	for queue := range topic.WriteQueues {
		now, ok := b.offsets.query(queueOf(q.group, q.topic, queue))
		if !ok {
			return plain(wire.RespSystemError, "THe consumer group <"+q.group+"> not exist")
		}
		if target := b.offsetAt(q, queue); q.force || target < now {
			now = target
		}
		targets[b.queueName(q.topic, queue)] = now
	}
	conns, _ := b.members.conns(q.group)
	if len(conns) == 0 {
		return plain(wire.RespConsumerNotOnline, "Consumer not online, so can not reset offset, Group: "+q.group+
			" Topic: "+q.topic+" Timestamp: "+strconv.FormatInt(q.timestamp, 10))
	}
	answer := jsonBody(wire.ResetOffsetBody{Offsets: targets}, wire.Fastjson)
	for _, c := range conns {
		c.Send(&wire.Command{
			Code: int32(wire.ReqResetConsumerClientOffset),
			// isForce is false whatever the tool said (vectors/README.md 5.13).
			Ext: wire.Fields{
				text("topic", q.topic), text("group", q.group), number("timestamp", q.timestamp), text("queueId", "-1"), text("isForce", "false"),
			},
			Body: answer.Body,
		})
	}
	answer.Remark = unset
	return answer
}
