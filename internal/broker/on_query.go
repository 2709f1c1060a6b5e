package broker

import (
	"cmp"
	"fmt"
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

// The most messages that one query by key returns, and of what size: what the store's index looks at, and a frame.
const (
	maxQueried      = 64
	usualQueried    = 32
	maxQueriedBytes = maxFrame / 2
)

// onQueryMessage is 12: messages by UNIQ_KEY or one of their KEYS and by time of storing: the newest, but in the order in
// which they were stored.
func (b *Broker) onQueryMessage(r *remote.Request) *remote.Answer {
	f := fieldsOf(r)
	topic, key, limit := f.text("topic"), f.text("key"), int(f.int32("maxNum"))
	begin, end := f.int64("beginTimestamp"), f.int64("endTimestamp")
	if bad := f.bad(); bad != nil {
		return bad
	}
	if f.flag("_UNIQUE_KEY_QUERY", false) {
		limit = usualQueried
	}
	found := b.findByKey(topic, key, begin, end, min(limit, maxQueried))
	var last wire.Message
	if len(found) > 0 {
		if _, err := last.Decode(found[0]); err != nil {
			return plain(wire.RespSystemError, "reading a stored message: "+err.Error())
		}
	}
	size := 0
	for i, raw := range found {
		if size += len(raw); size > maxQueriedBytes && i > 0 {
			found = found[:i]
			break
		}
	}
	if len(found) == 0 {
		return headed(wire.RespQueryNotFound, "can not find message, maybe time range not correct",
			text("indexLastUpdateTimestamp", "0"), text("indexLastUpdatePhyoffset", "0"))
	}
	slices.Reverse(found)
	a := headed(wire.RespSuccess, "",
		number("indexLastUpdateTimestamp", last.StoreMillis), number("indexLastUpdatePhyoffset", last.LogOffset))
	a.Parts = found
	return a
}

// findByKey returns the messages of a topic with a key that were stored in [begin, end] milliseconds, the newest first.
func (b *Broker) findByKey(topic, key string, begin, end int64, limit int) [][]byte {
	type entry struct {
		raw       []byte
		logOffset int64
	}
	var all []entry
	for queue := range int32(b.storage.Queues(topic)) {
		for _, raw := range b.storage.Messages(topic, queue, 0, 0) {
			var m wire.Message
			if _, err := m.Decode(raw); err != nil || m.StoreMillis < begin || m.StoreMillis > end {
				continue
			}
			if hasKey(&m, key) {
				all = append(all, entry{raw, m.LogOffset})
			}
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(b.logOffset, a.logOffset) })
	found := make([][]byte, 0, max(min(limit, len(all)), 0))
	for _, e := range all[:max(min(limit, len(all)), 0)] {
		found = append(found, e.raw)
	}
	return found
}

// hasKey tells whether a message is found by a key: its unique key or one of its own.
func hasKey(m *wire.Message, key string) bool {
	return m.UniqueKey() == key || slices.Contains(m.Keys(), key)
}
