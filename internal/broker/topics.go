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

// topicTable is the topics of a broker.
type topicTable struct {
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
	return t
}

func (t *topicTable) get(name string) (wire.TopicConfig, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.topics[name]
	return c, ok
}

func (t *topicTable) put(c wire.TopicConfig) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.topics[c.Name] = c
	t.version++
}

// ensure returns the topic, made with the given queues if it is not there.
func (t *topicTable) ensure(name string, queues int32) wire.TopicConfig {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.topics[name]; ok {
		return c
	}
	c := newTopic(name, queues, permUsual)
	t.topics[name] = c
	t.version++
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
	if !ok || from.Perm&wire.PermInherit == 0 {
		return wire.TopicConfig{}, false
	}
	c := newTopic(name, max(min(queues, from.WriteQueues), 0), from.Perm&^wire.PermInherit)
	c.TopicSysFlag, c.FilterType = from.TopicSysFlag, from.FilterType
	t.topics[name] = c
	t.version++
	return c, true
}

func (t *topicTable) remove(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.topics, name)
	t.version++
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
