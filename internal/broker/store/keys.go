package store

import "encoding/binary"

// The first byte of a key says what it is:
//
//	m queue(4) offset(8) millis(8) tag hash(4)   → the stored message, or log offset(8) bytes(4) checksum(4) of one in a segment
//	q topic 0 queue id(4)                        → the queue's number, first offset and next offset
//	l log offset(8)                              → a run of messages: queue, first offset, count, bytes, millis
//	i hour(4) hash(8) log offset(8)              → queue, offset; the hash is of topic and key
//	s due millis(8) log offset(8)                → queue, offset
//	h log offset(8)                              → queue, offset
//	g log offset(8)                              → nothing: a segment begins there
//	t table 0 key                                → a value
//	c                                            → the next queue number
//	v                                            → the format's version
//
// Numbers are big endian. A queue's number is new each time its topic is made, so what a deleted topic left behind can
// never be taken for what its successor has.
const (
	prefixMessage  = 'm'
	prefixQueue    = 'q'
	prefixLog      = 'l'
	prefixIndex    = 'i'
	prefixSchedule = 's'
	prefixHalf     = 'h'
	prefixSegment  = 'g'
	prefixTable    = 't'
	prefixCounter  = 'c'
	prefixVersion  = 'v'
)

const (
	messageKeySize = 1 + 4 + 8 + 8 + 4
	indexKeySize   = 1 + 4 + 8 + 8
	hourMillis     = 3600_000
)

var order = binary.BigEndian //nolint:gochecknoglobals // a value without state

func appendMessagePrefix(k []byte, queue uint32, offset int64) []byte {
	k = append(k, prefixMessage)
	k = order.AppendUint32(k, queue)
	return order.AppendUint64(k, uint64(offset))
}

func putMessageKey(k []byte, queue uint32, offset, millis int64, hash int32) {
	k[0] = prefixMessage
	order.PutUint32(k[1:], queue)
	order.PutUint64(k[5:], uint64(offset))
	order.PutUint64(k[13:], uint64(millis))
	order.PutUint32(k[21:], uint32(hash))
}

// entryKey is what a message's key says of it.
type entryKey struct {
	queue   uint32
	offset  int64
	millis  int64
	tagHash int32
}

func readMessageKey(k []byte) entryKey {
	return entryKey{
		queue: order.Uint32(k[1:]), offset: int64(order.Uint64(k[5:])), millis: int64(order.Uint64(k[13:])),
		tagHash: int32(order.Uint32(k[21:])),
	}
}

func queueKey(topic string, id int32) []byte {
	k := append([]byte{prefixQueue}, topic...)
	k = append(k, 0)
	return order.AppendUint32(k, uint32(id))
}

func logKey(offset int64) []byte { return order.AppendUint64([]byte{prefixLog}, uint64(offset)) }

func halfKey(offset int64) []byte { return order.AppendUint64([]byte{prefixHalf}, uint64(offset)) }

func segmentKey(first int64) []byte { return order.AppendUint64([]byte{prefixSegment}, uint64(first)) }

func scheduleKey(due, logOffset int64) []byte {
	return order.AppendUint64(order.AppendUint64([]byte{prefixSchedule}, uint64(due)), uint64(logOffset))
}

func tableKey(table, key string) []byte {
	k := append([]byte{prefixTable}, table...)
	k = append(k, 0)
	return append(k, key...)
}

// indexPrefix is the part of an index key that a search for one key within one hour shares.
func indexPrefix(hour uint32, hash uint64) []byte {
	return order.AppendUint64(order.AppendUint32([]byte{prefixIndex}, hour), hash)
}

func putIndexKey(k []byte, hash uint64, p Position) {
	k[0] = prefixIndex
	order.PutUint32(k[1:], hourOf(p.StoreMillis))
	order.PutUint64(k[5:], hash)
	order.PutUint64(k[13:], uint64(p.LogOffset))
}

func hourOf(millis int64) uint32 {
	return uint32(min(max(millis, 0)/hourMillis, 1<<32-1)) //nolint:gosec // bounded
}

// hashOf is FNV-1a of the topic, a zero and the key. Written out, because hash/fnv takes three allocations for it.
func hashOf(topic, key string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(topic) {
		h = (h ^ uint64(topic[i])) * fnvPrime
	}
	h *= fnvPrime // the zero
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * fnvPrime
	}
	return h
}

const fnvPrime = 1099511628211

// place is where a message is: its queue's number and its offset.
type place struct {
	queue  uint32
	offset int64
}

const placeSize = 4 + 8

func (p place) put(v []byte) {
	order.PutUint32(v, p.queue)
	order.PutUint64(v[4:], uint64(p.offset))
}

func (p place) append(v []byte) []byte {
	return order.AppendUint64(order.AppendUint32(v, p.queue), uint64(p.offset))
}

func readPlace(v []byte) (place, bool) {
	if len(v) < placeSize {
		return place{}, false
	}
	return place{order.Uint32(v), int64(order.Uint64(v[4:]))}, true
}

// run is a value of the log: messages that were stored together behind each other in one queue.
type run struct {
	place
	count  uint32
	bytes  uint32
	millis int64
}

func (r run) append(v []byte) []byte {
	v = order.AppendUint32(order.AppendUint32(r.place.append(v), r.count), r.bytes)
	return order.AppendUint64(v, uint64(r.millis))
}

func readRun(v []byte) (run, bool) {
	p, ok := readPlace(v)
	if !ok || len(v) < placeSize+16 {
		return run{}, false
	}
	v = v[placeSize:]
	return run{p, order.Uint32(v), order.Uint32(v[4:]), int64(order.Uint64(v[8:]))}, true
}

// after is the smallest key behind all that begin with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
