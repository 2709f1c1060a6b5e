package broker

import (
	"encoding/binary"
	"fmt"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// maxQueueEntries bounds one look into a queue's index.
const maxQueueEntries = 1000

// onConsumeQueue is 321: a part of a queue's index and, with a group, which of it the group's filter lets pass.
func (b *Broker) onConsumeQueue(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	topic, queue, index, count := f.text("topic"), f.int32("queueId"), f.int64("index"), int(f.int32("count"))
	group := f.optional("consumerGroup")
	if bad := f.bad(); bad != nil {
		return bad
	}
	first, next, ok := b.storage.Bounds(topic, queue)
	if !ok {
		return plain(wire.RespSystemError, fmt.Sprintf("%d@%s is not exist!", queue, topic))
	}
	body := wire.ConsumeQueueBody{Min: first, Max: next, Entries: []wire.ConsumeQueueEntry{}}
	pass := b.describeFilter(group, topic, &body)
	entries := b.storage.Messages(topic, queue, max(index, first), min(max(count, 1), maxQueueEntries))
	if index >= next {
		a := jsonBody(body, wire.Standard)
		a.Remark = fmt.Sprintf("Index %d of %d@%s is not exist!", index, queue, topic)
		return a
	}
	for _, raw := range entries[:min(len(entries), max(count, 0))] {
		body.Entries = append(body.Entries, queueEntry(raw, pass))
	}
	a := jsonBody(body, wire.Standard)
	a.Remark = unset
	return a
}

// describeFilter says what a group subscribes to and returns its filter; nil without an expression, as RocketMQ evaluates
// no tags here.
func (b *Broker) describeFilter(group, topic string, body *wire.ConsumeQueueBody) func(raw []byte) bool {
	if group == "" {
		return nil
	}
	s, _, _, subscribed := b.members.subscription(group, topic)
	if !subscribed {
		return nil
	}
	body.Subscription, body.FilterData = &s, "null"
	if !isSQL(s.ExpressionType) {
		return nil
	}
	f, err := b.registeredFilter(s)
	if err != nil {
		body.FilterData = err.Error()
		return nil
	}
	body.FilterData = s.SubString
	return func(raw []byte) bool { return f.accepts(0, raw) }
}

func queueEntry(raw []byte, pass func([]byte) bool) wire.ConsumeQueueEntry {
	e := wire.ConsumeQueueEntry{Size: int32(binary.BigEndian.Uint32(raw)), Eval: pass != nil && pass(raw)}
	var m wire.Message
	if _, err := m.Decode(raw); err != nil {
		e.Message = err.Error()
		return e
	}
	e.LogOffset, e.TagHash = m.LogOffset, int64(tagHash(m.Properties))
	return e
}
