package memstore

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

// Store is the messages of one broker.
type Store struct {
	mu     sync.Mutex
	log    log
	topics map[string][]*queue
}

// New makes an empty store.
func New() *Store { return &Store{topics: make(map[string][]*queue)} }

// Record is one message to append.
type Record struct {
	// Raw is the encoded stored message (remoting-protocol.md 4.1). Its queue id, queue offset, log offset and store time
	// are whatever they are: the store writes its own.
	Raw     []byte
	TagHash int32 // 0 = no tags
}

// Position is where an appended message lies.
type Position struct {
	QueueOffset int64
	LogOffset   int64
	StoreMillis int64
}

// Append adds records to one queue, in order and without another message between them. Queue ids have no upper limit
// here: topics and their queue counts are the broker's. The result has one position per record.
func (s *Store) Append(topic string, queueID int32, records ...Record) ([]Position, error) {
	for _, r := range records {
		if len(r.Raw) < minMessage || int(binary.BigEndian.Uint32(r.Raw)) != len(r.Raw) {
			return nil, fmt.Errorf("appending to %s/%d: %d bytes are not one stored message", topic, queueID, len(r.Raw))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.makeLocked(topic, queueID)
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixMilli()
	positions := make([]Position, 0, len(records))
	for _, r := range records {
		raw, offset := s.log.append(r.Raw)
		p := Position{QueueOffset: q.max(), LogOffset: offset, StoreMillis: now}
		stamp(raw, queueID, p)
		q.entries = append(q.entries, entry{raw: raw, tagHash: r.TagHash, storeMillis: now})
		positions = append(positions, p)
	}
	return positions, nil
}

func stamp(raw []byte, queueID int32, p Position) {
	order := binary.BigEndian
	order.PutUint32(raw[atQueueID:], uint32(queueID))
	order.PutUint64(raw[atQueueOffset:], uint64(p.QueueOffset))
	order.PutUint64(raw[atLogOffset:], uint64(p.LogOffset))
	host := hostSize(order.Uint32(raw[atSysFlag:])&sysBornIPv6 != 0)
	order.PutUint64(raw[atBornHost+host:], uint64(p.StoreMillis))
}

// maxQueues bounds the queue ids, so that a wild one costs no memory.
const maxQueues = 1 << 16

func (s *Store) makeLocked(topic string, queueID int32) (*queue, error) {
	if queueID < 0 || queueID >= maxQueues {
		return nil, fmt.Errorf("appending to %s/%d: the queue id is outside 0..%d", topic, queueID, maxQueues-1)
	}
	queues := s.topics[topic]
	for int(queueID) >= len(queues) {
		queues = append(queues, &queue{})
	}
	s.topics[topic] = queues
	return queues[queueID], nil
}

func (s *Store) findLocked(topic string, queueID int32) *queue {
	queues := s.topics[topic]
	if queueID < 0 || int(queueID) >= len(queues) {
		return nil
	}
	return queues[queueID]
}
