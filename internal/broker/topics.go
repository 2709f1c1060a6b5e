package broker

import (
	"maps"
	"slices"
	"sync"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

func newTopic(name string, queues, perm int32) wire.TopicConfig {
	return wire.TopicConfig{
		Attributes: map[string]string{}, Perm: perm, ReadQueues: queues, FilterType: "SINGLE_TAG", Name: name, WriteQueues: queues,
	}
}

// permText is how RocketMQ prints a permission.
func permText(perm int32) string {
	text := []byte("---")
	for i, bit := range []int32{wire.PermRead, wire.PermWrite, wire.PermInherit} {
		if perm&bit != 0 {
			text[i] = "RWX"[i]
		}
	}
	return string(text)
}

// maxTopics bounds the topics, which a client makes by sending to them.
const maxTopics = 100_000

// topicTable is the topics of a broker.
type topicTable struct {
	save        saver
	saveVersion func(int64)

	builtin map[string]wire.TopicConfig // those that every broker has, unless they were changed

	mu      sync.Mutex
	topics  map[string]wire.TopicConfig
	version int64
}

func newTopicTable(c Config) *topicTable {
	t := &topicTable{topics: make(map[string]wire.TopicConfig)}
	inherit := permUsual | wire.PermInherit
	if c.NoTopicCreation {
		inherit = permUsual
	}
	for _, topic := range []wire.TopicConfig{
		newTopic(wire.DefaultTopic, c.DefaultQueues, inherit),
		newTopic(wire.ScheduleTopic, int32(len(c.DelayLevels)), permUsual),
		newTopic(wire.TimerTopic, 1, permUsual),
		newTopic(wire.HalfTopic, 1, permUsual),
		newTopic(wire.HalfOpTopic, 1, permUsual),
		newTopic(wire.TransCheckMaxTopic, 1, permUsual),
		newTopic(wire.TraceTopic, 1, permUsual),
		newTopic(wire.SelfTestTopic, 1, permUsual),
		newTopic(wire.OffsetMovedTopic, 1, permUsual),
		newTopic(wire.BenchmarkTopic, 1024, permUsual),
		newTopic(c.Cluster, 16, permUsual|wire.PermInherit),
		newTopic(c.Name, 1, permUsual|wire.PermInherit),
		newTopic(c.Cluster+"_REPLY_TOPIC", 1, permUsual),
	} {
		t.topics[topic.Name] = topic
	}
	t.builtin = maps.Clone(t.topics)
	return t
}

func (t *topicTable) get(name string) (wire.TopicConfig, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.topics[name]
	return c, ok
}

// full tells whether one more topic is too many.
func (t *topicTable) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.topics) >= maxTopics
}

func (t *topicTable) put(c wire.TopicConfig) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.putLocked(c)
}

func (t *topicTable) putLocked(c wire.TopicConfig) {
	t.topics[c.Name] = c
	t.save(c.Name, encoded(c))
	t.version++
	t.saveVersion(t.version)
}

// load takes over what the store has. A topic that is not stored is forgotten: it would be gone after the next restart, with
// messages in it.
func (t *topicTable) load(stored map[string][]byte, version int64) error {
	topics, err := decodeAll[wire.TopicConfig](stored)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.topics = maps.Clone(t.builtin)
	maps.Copy(t.topics, topics)
	t.version = version
	return nil
}

// ensure returns the topic, made with the given queues if it is not there.
func (t *topicTable) ensure(name string, queues int32) wire.TopicConfig {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.topics[name]; ok {
		return c
	}
	c := newTopic(name, queues, permUsual)
	t.putLocked(c)
	return c
}

// forSend returns the topic of a send, made after the template if need be (createTopicInSendMessageMethod).
func (t *topicTable) forSend(name, template string, queues int32) (wire.TopicConfig, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.topics[name]; ok {
		return c, true
	}
	from, ok := t.topics[template]
	if !ok || len(t.topics) >= maxTopics || from.Perm&wire.PermInherit == 0 {
		return wire.TopicConfig{}, false
	}
	c := newTopic(name, max(min(queues, from.WriteQueues), 0), from.Perm&^wire.PermInherit)
	c.TopicSysFlag, c.FilterType = from.TopicSysFlag, from.FilterType
	t.putLocked(c)
	return c, true
}

func (t *topicTable) remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.topics, name)
	t.save(name, nil)
	t.version++
	t.saveVersion(t.version)
}

// names returns the topics in order.
func (t *topicTable) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.topics))
}

// snapshot is the body of 21.
func (t *topicTable) snapshot() wire.TopicConfigTable {
	t.mu.Lock()
	defer t.mu.Unlock()
	return wire.TopicConfigTable{DataVersion: wire.DataVersion{Counter: t.version}, Topics: maps.Clone(t.topics)}
}
