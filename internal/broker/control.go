package broker

import (
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/broker/store"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// Faults injects faults into the broker's listener, name server codes included.
func (b *Broker) Faults() *Faults { return b.faults }

// Restart is Stop and Start: clients are cut off and members forgotten, what is stored stays.
func (b *Broker) Restart() error {
	if err := b.Stop(); err != nil {
		return err
	}
	return b.Start()
}

// Silence takes requests without carrying any out or answering, until the returned injection is lifted: a broker that
// accepts but hangs.
func (b *Broker) Silence() *Injection { return b.faults.Inject(Fault{Do: DropRequest()}) }

// DropConnections cuts every connection and goes on listening. Members are forgotten with their connections.
func (b *Broker) DropConnections() { b.server.DropConnections() }

// ForgetMembers drops the members of a group without telling anybody, their connections stay.
func (b *Broker) ForgetMembers(group string) {
	b.members.mu.Lock()
	defer b.members.mu.Unlock()
	b.members.leaveLocked(group, func(member) bool { return true })
}

// CreateTopic makes a topic with as many queues to read and to write, or changes one.
func (b *Broker) CreateTopic(name string, queues int32) {
	b.topics.put(newTopic(name, queues, permUsual))
}

// PutTopic makes or changes a topic.
func (b *Broker) PutTopic(c wire.TopicConfig) { b.topics.put(c) }

// PutGroup makes or changes a group.
func (b *Broker) PutGroup(c wire.SubscriptionGroup) { b.groups.put(c) }

// NewGroup returns the settings of a new group, to be changed and given to PutGroup.
func (b *Broker) NewGroup(name string) wire.SubscriptionGroup {
	return newGroup(name, b.config.MaxRetries)
}

// DeleteTopic removes a topic with its messages and what groups committed for it.
func (b *Broker) DeleteTopic(name string) {
	b.topics.remove(name)
	b.offsets.removeTopic(name)
	b.edit("deleting a topic", func(s *store.Store, done func(error)) { s.Delete(name, done) })
}

// Expire removes the messages below first from a queue and raises its first readable offset.
func (b *Broker) Expire(topic string, queue int32, first int64) {
	b.edit("expiring messages", func(s *store.Store, done func(error)) { s.Expire(topic, queue, first, done) })
}

// edit changes queues and waits for it. What could not be done is logged.
func (b *Broker) edit(what string, do func(*store.Store, func(error))) {
	if err := b.storage.edit(do); err != nil {
		b.config.Logger.Error("changing queues", "change", what, "error", err.Error())
	}
}

// Truncate removes the messages from next on from a queue, as a broker does that lost the end of its log.
func (b *Broker) Truncate(topic string, queue int32, next int64) {
	b.edit("truncating a queue", func(s *store.Store, done func(error)) { s.Truncate(topic, queue, next, done) })
}

// Reset does what 222 does with an offset for one queue: the next pull of the group is answered with it.
func (b *Broker) Reset(group, topic string, queue int32, offset int64) {
	b.offsets.reset(queueOf(group, topic, queue), offset)
}

// Message is a message to store directly.
type Message struct {
	Topic      string // made with one queue, or with as many as Queue needs, if it is not there
	Queue      int32
	Body       []byte
	Tag        string
	Keys       string // blank separated
	Properties map[string]string
}

// Put stores messages without a client, in order, as sends would. It returns an error for what cannot be encoded; the
// messages before it are stored.
func (b *Broker) Put(messages ...Message) error {
	began := b.storage.mark()
	for i, m := range messages {
		d := b.direct(m)
		if _, err := b.put(d); err != nil {
			return fmt.Errorf("storing message %d of %d: %w", i+1, len(messages), err)
		}
	}
	if err := b.storage.settle(began); err != nil {
		return fmt.Errorf("storing %d messages: %w", len(messages), err)
	}
	return nil
}

func (b *Broker) direct(m Message) *draft {
	b.topics.ensure(m.Topic, m.Queue+1)
	d := &draft{topic: m.Topic, queue: m.Queue, born: time.Now().UnixMilli(), bornHost: b.storeHost(), body: m.Body}
	for name, value := range m.Properties {
		d.properties.set(name, value)
	}
	if m.Tag != "" {
		d.properties.set(wire.PropTags, m.Tag)
	}
	if m.Keys != "" {
		d.properties.set(wire.PropKeys, m.Keys)
	}
	b.mark(&d.properties)
	if d.properties.get(wire.PropUniqueKey) == "" {
		d.properties.set(wire.PropUniqueKey, b.newUniqueKey())
	}
	return d
}

// fillBatch is how many messages Fill stores at a time.
const fillBatch = 1024

// Fill stores n messages of size bytes of body, spread evenly over the queues of a topic: a load for benchmarks.
func (b *Broker) Fill(topic string, queues int32, n, size int) error {
	b.CreateTopic(topic, queues)
	body := make([]byte, size)
	for left, queue := n, int32(0); left > 0; queue = (queue + 1) % queues {
		count := min(left, fillBatch)
		left -= count
		records := make([]store.Record, 0, count)
		for range count {
			d := b.direct(Message{Topic: topic, Queue: queue, Body: body, Tag: "fill"})
			r, err := b.record(d, d.properties.text())
			if err != nil {
				return fmt.Errorf("filling %s: %w", topic, err)
			}
			records = append(records, r)
		}
		w := b.newWrite()
		w.add(topic, queue, records...)
		if err := w.wait(); err != nil {
			return fmt.Errorf("filling %s: %w", topic, err)
		}
	}
	return nil
}
