package broker

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/streamd/streamd/internal/broker/memstore"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// draft is a message on its way into the store.
type draft struct {
	topic      string
	queue      int32
	flag       int32
	sysFlag    int32
	born       int64
	bornHost   netip.AddrPort
	reconsumed int32
	prepared   int64
	body       []byte
	properties properties
	size       int // of the stored form, once it was made
}

// put stores one message, or schedules it when it asks for a delay, and wakes the pulls that wait for it.
func (b *Broker) put(d *draft) (memstore.Position, error) {
	d.delay(len(b.config.DelayLevels))
	due, waits := d.toTimer()
	raw, hash, err := b.encode(d, d.properties.text())
	if err != nil {
		return memstore.Position{}, err
	}
	d.size = len(raw)
	positions, err := b.append(d.topic, d.queue, memstore.Record{Raw: raw, TagHash: hash})
	if err != nil {
		return memstore.Position{}, err
	}
	if waits {
		stored := b.store.Messages(d.topic, d.queue, positions[0].QueueOffset, 1)
		b.timers.add(due, stored[0])
	}
	return positions[0], nil
}

// append stores messages of one queue and tells those who wait for them.
func (b *Broker) append(topic string, queue int32, records ...memstore.Record) ([]memstore.Position, error) {
	positions, err := b.store.Append(topic, queue, records...)
	if err != nil {
		return nil, err
	}
	defer b.changes.happened()
	if topic == wire.ScheduleTopic {
		b.delays.arrived(int(queue))
		return positions, nil
	}
	b.arrived(topic, queue, records)
	return positions, nil
}

// encode makes the stored form; the store fills in place and time.
func (b *Broker) encode(d *draft, properties []byte) (raw []byte, hash int32, err error) {
	m := wire.Message{
		BodyCRC: wire.BodyCRC(d.body), Flag: d.flag, SysFlag: d.sysFlag, BornMillis: d.born, BornHost: d.bornHost,
		StoreHost: b.storeHost(), ReconsumeTimes: d.reconsumed, PreparedTransactionOffset: d.prepared,
		Body: d.body, Topic: []byte(d.topic), Properties: properties,
	}
	m.SysFlag &^= wire.SysFlagBornV6 | wire.SysFlagStoreV6
	if !m.BornHost.Addr().Is4() {
		m.SysFlag |= wire.SysFlagBornV6
	}
	if !m.StoreHost.Addr().Is4() {
		m.SysFlag |= wire.SysFlagStoreV6
	}
	raw, err = m.Append(make([]byte, 0, m.Size()))
	if err != nil {
		return nil, 0, fmt.Errorf("encoding a message of %s: %w", d.topic, err)
	}
	return raw, tagHash(properties), nil
}

// delay sends a message with a delay level by way of the schedule topic (consumer-semantics.md 8.3).
func (d *draft) delay(levels int) {
	level, err := strconv.Atoi(d.properties.get(wire.PropDelayLevel))
	if err != nil || level <= 0 || d.topic == wire.ScheduleTopic {
		return
	}
	level = min(level, levels)
	d.properties.set(wire.PropDelayLevel, strconv.Itoa(level))
	d.properties.set(wire.PropRealTopic, d.topic)
	d.properties.set(wire.PropRealQueueID, strconv.Itoa(int(d.queue)))
	for _, timer := range []string{wire.PropTimerDelaySeconds, wire.PropTimerDelayMillis, wire.PropTimerDeliver} {
		d.properties.remove(timer)
	}
	d.topic, d.queue = wire.ScheduleTopic, int32(level-1)
}

// draftOf is a copy of a stored message, to be stored again.
func draftOf(m *wire.Message) *draft {
	return &draft{
		topic: string(m.Topic), queue: m.QueueID, flag: m.Flag, sysFlag: m.SysFlag, born: m.BornMillis, bornHost: m.BornHost,
		reconsumed: m.ReconsumeTimes, prepared: m.PreparedTransactionOffset, body: m.Body,
		properties: parseProperties(m.Properties),
	}
}

// lookup reads a stored message by its log offset.
func (b *Broker) lookup(logOffset int64) (*wire.Message, bool) {
	raw, ok := b.store.Lookup(logOffset)
	if !ok {
		return nil, false
	}
	m := new(wire.Message)
	if _, err := m.Decode(raw); err != nil {
		return nil, false
	}
	return m, true
}
