package broker

import (
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
	found := b.storage.Query(topic, key, begin, end, min(limit, maxQueried), func(raw []byte) bool {
		var m wire.Message
		_, err := m.Decode(raw)
		return err == nil && hasKey(&m, key)
	})
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

// hasKey tells whether a message is found by a key: its unique key or one of its own.
func hasKey(m *wire.Message, key string) bool {
	return m.UniqueKey() == key || slices.Contains(m.Keys(), key)
}
