package memstore

import (
	"encoding/binary"
	"sort"
)

// entry is one message of a queue's index.
type entry struct {
	raw         []byte
	storeMillis int64
	tagHash     int32
}

// queue is the index of one queue: entries[i] has offset min+i.
type queue struct {
	min     int64
	entries []entry
}

func (q *queue) max() int64 { return q.min + int64(len(q.entries)) }

// Bounds returns the first readable offset of a queue and the next one to be written; false when nothing was ever
// written to it.
func (s *Store) Bounds(topic string, queueID int32) (first, next int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(topic, queueID)
	if q == nil || q.max() == 0 {
		return 0, 0, false
	}
	return q.min, q.max(), true
}

// StoreMillis returns when the message at offset was stored; false when it is not there.
func (s *Store) StoreMillis(topic string, queueID int32, offset int64) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(topic, queueID)
	if q == nil || offset < q.min || offset >= q.max() {
		return 0, false
	}
	return q.entries[offset-q.min].storeMillis, true
}

// Search returns the first offset whose message was stored at millis or later (the next offset to be written if none
// was), or with upper the last one stored at millis or before (remoting-protocol.md 2.7). 0 for an unknown queue.
func (s *Store) Search(topic string, queueID int32, millis int64, upper bool) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(topic, queueID)
	if q == nil {
		return 0
	}
	if !upper {
		return q.min + int64(sort.Search(len(q.entries), func(i int) bool { return q.entries[i].storeMillis >= millis }))
	}
	after := sort.Search(len(q.entries), func(i int) bool { return q.entries[i].storeMillis > millis })
	if after == 0 {
		return 0
	}
	return q.min + int64(after) - 1
}

// Lookup returns the message at a log offset; false when none starts there, or it is no longer part of its queue.
func (s *Store) Lookup(logOffset int64) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw, ok := s.log.at(logOffset)
	if !ok {
		return nil, false
	}
	topic, ok := topicOf(raw)
	if !ok {
		return nil, false
	}
	offset := int64(binary.BigEndian.Uint64(raw[atQueueOffset:]))
	q := s.findLocked(topic, int32(binary.BigEndian.Uint32(raw[atQueueID:])))
	if q == nil || offset < q.min || offset >= q.max() || &q.entries[offset-q.min].raw[0] != &raw[0] {
		return nil, false
	}
	return raw, true
}

// Messages returns the readable messages of a queue from an offset on, at most limit of them (0 = all).
func (s *Store) Messages(topic string, queueID int32, from int64, limit int) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(topic, queueID)
	if q == nil || from >= q.max() {
		return nil
	}
	entries := q.entries[max(from-q.min, 0):]
	if limit > 0 && len(entries) > limit {
		entries = entries[:limit]
	}
	raws := make([][]byte, 0, len(entries))
	for _, e := range entries {
		raws = append(raws, e.raw)
	}
	return raws
}

// Log returns the log offset of the oldest part of the log that is still there, and the one where the next message goes.
func (s *Store) Log() (first, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first, next = s.log.next, s.log.next; len(s.log.chunks) > 0 {
		first = s.log.chunks[0].base
	}
	return first, next
}

// Queues returns how many queues of a topic were written to, or lie below one that was.
func (s *Store) Queues(topic string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.topics[topic])
}

// Expire removes what lies below first and makes it the first readable offset, at most the end of the queue.
func (s *Store) Expire(topic string, queueID int32, first int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(topic, queueID)
	if q == nil || first <= q.min {
		return
	}
	n := int(min(first, q.max()) - q.min)
	s.releaseLocked(q.entries[:n])
	q.entries = append([]entry(nil), q.entries[n:]...)
	q.min += int64(n)
}

// Delete removes a topic with its messages. Written to again, its queues start at 0.
func (s *Store) Delete(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.topics[topic] {
		s.releaseLocked(q.entries)
	}
	delete(s.topics, topic)
}

func (s *Store) releaseLocked(entries []entry) {
	for _, e := range entries {
		s.log.release(logOffsetOf(e.raw))
	}
}

// Truncate removes what lies at offset next and after, as a broker does that lost the end of its log in a crash.
func (s *Store) Truncate(topic string, queueID int32, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(topic, queueID)
	if q == nil || next >= q.max() {
		return
	}
	n := int(max(next, q.min) - q.min)
	s.releaseLocked(q.entries[n:])
	q.entries = append([]entry(nil), q.entries[:n]...)
}
