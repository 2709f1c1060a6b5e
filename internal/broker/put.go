package broker

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/streamd/streamd/internal/broker/store"
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

// put stores one message, or schedules it when it asks for a delay. Its position is known at once; that it is stored,
// settled tells.
func (b *Broker) put(d *draft) (store.Position, error) { return b.putIn(b.newWrite(), d) }

// putIn is put by a change that does more.
func (b *Broker) putIn(w *write, d *draft) (store.Position, error) {
	due := d.delay(b.config.DelayLevels, b.storage.now())
	if at, waits := d.toTimer(b.storage.now()); waits {
		due = at
	}
	r, err := b.record(d, d.properties.text())
	if err != nil {
		return store.Position{}, err
	}
	d.size, r.Due, r.Half = len(r.Raw), due, d.topic == wire.HalfTopic
	w.add(d.topic, d.queue, r)
	if err := w.submit(); err != nil {
		return store.Position{}, err
	}
	return w.change.Appends[len(w.change.Appends)-1].Positions[0], nil
}

// record makes what the store takes of a message.
func (b *Broker) record(d *draft, properties []byte) (store.Record, error) {
	m := b.message(d, properties)
	return encode(make([]byte, 0, m.Size()), &m)
}

// encode appends the stored form to dst, and makes what the store takes of it.
func encode(dst []byte, m *wire.Message) (store.Record, error) {
	raw, err := m.Append(dst)
	if err != nil {
		return store.Record{}, fmt.Errorf("encoding a message of %s: %w", m.Topic, err)
	}
	return store.Record{Raw: raw[len(dst):len(raw):len(raw)], TagHash: tagHash(m.Properties), Keys: indexKeys(m.Properties)}, nil
}

// indexKeys is what a message is found by: its unique key and its keys.
func indexKeys(properties []byte) []string {
	m := wire.Message{Properties: properties}
	keys := m.Keys()
	if unique := m.UniqueKey(); unique != "" && !slices.Contains(keys, unique) {
		keys = append(keys, unique)
	}
	return keys
}

// message is what is stored of a draft; the store fills in place and time.
func (b *Broker) message(d *draft, properties []byte) wire.Message {
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
	return m
}

// delay sends a message with a delay level by way of the schedule topic (consumer-semantics.md 8.3).
func (d *draft) delay(levels []time.Duration, now int64) (due int64) {
	level, err := strconv.Atoi(d.properties.get(wire.PropDelayLevel))
	if err != nil || level <= 0 || d.topic == wire.ScheduleTopic {
		return 0
	}
	level = min(level, len(levels))
	d.properties.set(wire.PropDelayLevel, strconv.Itoa(level))
	d.properties.set(wire.PropRealTopic, d.topic)
	d.properties.set(wire.PropRealQueueID, strconv.Itoa(int(d.queue)))
	for _, timer := range []string{wire.PropTimerDelaySeconds, wire.PropTimerDelayMillis, wire.PropTimerDeliver} {
		d.properties.remove(timer)
	}
	d.topic, d.queue = wire.ScheduleTopic, int32(level-1)
	return now + levels[level-1].Milliseconds()
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
	raw, ok := b.storage.Lookup(logOffset)
	if !ok {
		return nil, false
	}
	m := new(wire.Message)
	if _, err := m.Decode(raw); err != nil {
		return nil, false
	}
	return m, true
}
