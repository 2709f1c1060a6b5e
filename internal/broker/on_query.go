package broker

import (
	"fmt"
	"math"
	"slices"

	"github.com/streamd/streamd/internal/broker/remote"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// onViewMessage is 33: one message by its log offset.
func (b *Broker) onViewMessage(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	offset := f.int64("offset")
	if bad := f.bad(); bad != nil {
		return bad
	}
	m, ok := b.lookup(offset)
	if !ok {
		return plain(wire.RespSystemError, fmt.Sprintf("can not find message by the offset, %d", offset))
	}
	return withBody(m.Raw)
}

// onQueryMessage is 12: messages by UNIQ_KEY or one of their KEYS, newest first. There is no index: the topic is searched.
func (b *Broker) onQueryMessage(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	topic, key, limit := f.text("topic"), f.text("key"), int(f.int32Or("maxNum", 32))
	begin, end := f.int64Or("beginTimestamp", 0), f.int64Or("endTimestamp", math.MaxInt64)
	if bad := f.bad(); bad != nil {
		return bad
	}
	var found [][]byte
	var last wire.Message
	for queue := range int32(b.store.Queues(topic)) {
		for _, raw := range b.store.Messages(topic, queue, 0, 0) {
			var m wire.Message
			if _, err := m.Decode(raw); err != nil || m.StoreMillis < begin || m.StoreMillis > end {
				continue
			}
			if m.UniqueKey() == key || slices.Contains(m.Keys(), key) {
				found, last = append(found, raw), m
			}
		}
	}
	if len(found) == 0 {
		return headed(wire.RespQueryNotFound, "can not find message, maybe time range not correct",
			text("indexLastUpdateTimestamp", "0"), text("indexLastUpdatePhyoffset", "0"))
	}
	slices.Reverse(found)
	a := headed(wire.RespSuccess, "",
		number("indexLastUpdateTimestamp", last.StoreMillis), number("indexLastUpdatePhyoffset", last.LogOffset))
	a.Parts = found[:min(len(found), max(limit, 1))]
	return a
}
