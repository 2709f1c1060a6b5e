package broker

import (
	"fmt"
	"strings"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onQueryOffset is 14.
func (b *Broker) onQueryOffset(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	q := queueOf(f.text("consumerGroup"), f.text("topic"), f.int32("queueId"))
	zero := f.flag("setZeroIfNotFound", true)
	if bad := f.bad(); bad != nil {
		return bad
	}
	if offset, ok := b.offsets.query(q); ok && offset >= 0 {
		return headed(wire.RespSuccess, "", number("offset", offset))
	}
	first, _, young := b.storage.Bounds(q.topic, q.queue)
	switch {
	case !zero:
		return headed(wire.RespQueryNotFound, "Not found, do not set to zero, maybe this group boot first")
	case young && first <= 0:
		// A young topic is read from its start, whatever the group's start position says.
		return headed(wire.RespSuccess, "", number("offset", 0))
	default:
		return headed(wire.RespQueryNotFound, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")
	}
}

// onUpdateOffset is 15. It never makes a group (vectors/README.md 4.5) and takes a lower offset, but not while a reset
// waits to be picked up.
func (b *Broker) onUpdateOffset(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	q := queueOf(f.text("consumerGroup"), f.text("topic"), f.int32("queueId"))
	offset := f.int64("commitOffset")
	if bad := f.bad(); bad != nil {
		return bad
	}
	if _, ok := b.groups.get(q.group); !ok {
		return headed(wire.RespGroupNotExist, fmt.Sprintf("Group %s not exist!", q.group))
	}
	topic, ok := b.topics.get(q.topic)
	if !ok {
		return headed(wire.RespTopicNotExist, fmt.Sprintf("Topic %s not exist!", q.topic))
	}
	if q.queue < 0 || q.queue >= max(topic.ReadQueues, topic.WriteQueues) {
		return headed(wire.RespInvalidParameter, fmt.Sprintf("QueueId %d not valid!", q.queue))
	}
	if !b.offsets.commit(q, offset) {
		return headed(wire.RespSuccess, "Offset has been previously reset")
	}
	return headed(wire.RespSuccess, "")
}

// onMaxOffset is 30.
func (b *Broker) onMaxOffset(r *remote.Request) *remote.Answer {
	return b.ofQueue(r, func(topic string, queue int32) *remote.Answer {
		_, next, _ := b.storage.Bounds(topic, queue)
		return headed(wire.RespSuccess, "", number("offset", next))
	})
}

// onMinOffset is 31. Its success has an empty remark, which other codes leave out (vectors/README.md 5.2).
func (b *Broker) onMinOffset(r *remote.Request) *remote.Answer {
	return b.ofQueue(r, func(topic string, queue int32) *remote.Answer {
		first, _, _ := b.storage.Bounds(topic, queue)
		a := headed(wire.RespSuccess, "", number("offset", first))
		a.EmptyRemark = true
		return a
	})
}

// onSearchOffset is 29.
func (b *Broker) onSearchOffset(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	millis, upper := f.int64("timestamp"), strings.EqualFold(f.optional("boundaryType"), "upper")
	if bad := f.bad(); bad != nil {
		return bad
	}
	return b.ofQueue(r, func(topic string, queue int32) *remote.Answer {
		return headed(wire.RespSuccess, "", number("offset", b.storage.Search(topic, queue, millis, upper)))
	})
}

// onEarliestTime is 32: when the first readable message was stored, −1 if there is none.
func (b *Broker) onEarliestTime(r *remote.Request) *remote.Answer {
	return b.ofQueue(r, func(topic string, queue int32) *remote.Answer {
		first, _, _ := b.storage.Bounds(topic, queue)
		millis, ok := b.storage.StoreMillis(topic, queue, first)
		if !ok {
			millis = -1
		}
		return headed(wire.RespSuccess, "", number("timestamp", millis))
	})
}

// ofQueue reads the two fields that name a queue. A queue that is not there is no error to these requests.
func (b *Broker) ofQueue(r *remote.Request, answer func(topic string, queue int32) *remote.Answer) *remote.Answer {
	f := fieldsOf(r)
	topic, queue := f.text("topic"), f.int32("queueId")
	if bad := f.bad(); bad != nil {
		return bad
	}
	return answer(topic, queue)
}
