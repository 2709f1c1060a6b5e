package broker

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// groupTopic is the key of consumer offsets: topic@group.
type groupTopic struct{ group, topic string }

type groupQueue struct {
	groupTopic
	queue int32
}

// offsetTable is the committed offsets, the offsets last pulled at, and the resets that wait to be picked up by a pull.
type offsetTable struct {
	save saver

	mu        sync.Mutex
	committed map[groupTopic]map[int32]int64
	pulled    map[groupQueue]int64
	resets    map[groupQueue]int64
}

func newOffsetTable() *offsetTable {
	return &offsetTable{
		committed: make(map[groupTopic]map[int32]int64), pulled: make(map[groupQueue]int64), resets: make(map[groupQueue]int64),
	}
}

func queueOf(group, topic string, queue int32) groupQueue {
	return groupQueue{groupTopic{group, topic}, queue}
}

// query returns what a member is told: a reset that waits counts before what was committed.
func (t *offsetTable) query(q groupQueue) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o, ok := t.resets[q]; ok {
		return o, true
	}
	o, ok := t.committed[q.groupTopic][q.queue]
	return o, ok
}

// commit stores an offset as it is, even a lower one. A member's commit while a reset waits is not stored: false.
func (t *offsetTable) commit(q groupQueue, offset int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, waiting := t.resets[q]; waiting {
		return false
	}
	t.storeLocked(q, offset)
	return true
}

// piggyback stores the offset that came with a pull, whatever waits (consumer-semantics.md 3.6 step 13).
func (t *offsetTable) piggyback(q groupQueue, offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.storeLocked(q, offset)
}

func (t *offsetTable) storeLocked(q groupQueue, offset int64) {
	queues := t.committed[q.groupTopic]
	if queues == nil {
		queues = make(map[int32]int64)
		t.committed[q.groupTopic] = queues
	}
	if was, ok := queues[q.queue]; !ok || was != offset {
		queues[q.queue] = offset
		t.save(offsetKey(q), binary.BigEndian.AppendUint64(nil, uint64(offset)))
	}
}

// load takes over what the store has.
func (t *offsetTable) load(stored map[string][]byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.committed)
	for key, value := range stored {
		q, ok := readOffsetKey(key)
		if !ok || len(value) != 8 {
			return fmt.Errorf("the entry %q is damaged: %q", key, value)
		}
		queues := t.committed[q.groupTopic]
		if queues == nil {
			queues = make(map[int32]int64)
			t.committed[q.groupTopic] = queues
		}
		queues[q.queue] = int64(binary.BigEndian.Uint64(value))
	}
	return nil
}

func offsetKey(q groupQueue) string {
	return joinKey(q.group, q.topic, strconv.Itoa(int(q.queue)))
}

func readOffsetKey(key string) (groupQueue, bool) {
	parts := strings.Split(key, "\x00")
	if len(parts) != 3 {
		return groupQueue{}, false
	}
	queue, err := strconv.ParseInt(parts[2], 10, 32)
	return queueOf(parts[0], parts[1], int32(queue)), err == nil
}

// reset stores an offset and leaves it for the next pull to pick up.
func (t *offsetTable) reset(q groupQueue, offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.storeLocked(q, offset)
	t.resets[q] = offset
}

// takeReset hands a waiting reset over, once.
func (t *offsetTable) takeReset(q groupQueue) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.resets[q]
	delete(t.resets, q)
	return o, ok
}

func (t *offsetTable) forgetResets() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.resets)
}

func (t *offsetTable) notePull(q groupQueue, offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pulled[q] = offset
}

func (t *offsetTable) lastPull(q groupQueue) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pulled[q]
}

// topics returns the topics that a group has offsets in.
func (t *offsetTable) topics(group string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var topics []string
	for k := range t.committed {
		if k.group == group {
			topics = append(topics, k.topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// all returns the committed offsets of a group in a topic.
func (t *offsetTable) all(k groupTopic) map[int32]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.committed[k])
}

// removeTopic forgets what groups committed for a topic.
func (t *offsetTable) removeTopic(topic string) {
	t.remove(func(k groupTopic) bool { return k.topic == topic })
}

// removeGroup forgets what a group committed.
func (t *offsetTable) removeGroup(group string) {
	t.remove(func(k groupTopic) bool { return k.group == group })
}

func (t *offsetTable) remove(match func(groupTopic) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.committed, func(k groupTopic, queues map[int32]int64) bool {
		if !match(k) {
			return false
		}
		for queue := range queues {
			t.save(offsetKey(groupQueue{k, queue}), nil)
		}
		return true
	})
	maps.DeleteFunc(t.resets, func(q groupQueue, _ int64) bool { return match(q.groupTopic) })
	maps.DeleteFunc(t.pulled, func(q groupQueue, _ int64) bool { return match(q.groupTopic) })
}
