package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamd/streamd/internal/broker/store"
)

// model is what a store should hold, in the simplest form.
type model struct {
	topics    map[string][2]modelQueue
	scheduled []modelEntry
	halves    []int64
	table     map[string]string
	lastLog   int64
}

type modelQueue struct {
	first    int64
	messages []modelMessage
}

type modelMessage struct {
	body, key string
	hash      int32
	log       int64
	millis    int64
}

type modelEntry struct {
	due, log int64
	body     string
}

type modelTest struct {
	*testing.T
	random *rand.Rand
	fs     *vfs.MemFS
	store  *store.Store
	model  model
}

// TestModel compares a store with a model over random operations, among them closing it and opening it again.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			m := &modelTest{T: t, random: rand.New(rand.NewPCG(seed, 11)), fs: vfs.NewMem()}
			m.model = model{topics: map[string][2]modelQueue{}, table: map[string]string{}, lastLog: -1}
			m.reopen()
			for range 250 {
				m.step()
			}
			m.compare()
		})
	}
}

func (m *modelTest) step() {
	topic, queue := "T"+strconv.Itoa(m.random.IntN(3)), int32(m.random.IntN(2))
	switch m.random.IntN(20) {
	case 0:
		m.compare()
		m.reopen()
		m.compare()
	case 1:
		m.expire(topic, queue)
	case 2:
		m.truncate(topic, queue)
	case 3:
		if m.random.IntN(3) == 0 {
			m.remove(topic)
		}
	case 4, 5:
		m.end()
	case 6:
		key := strconv.Itoa(m.random.IntN(5))
		value := []byte(nil)
		delete(m.model.table, key)
		if m.random.IntN(3) > 0 {
			value = []byte(strconv.Itoa(m.random.IntN(1000)))
			m.model.table[key] = string(value)
		}
		m.store.Set(store.Value{Table: "t", Key: key, Value: value})
	case 7:
		m.compare()
	default:
		m.append(topic, queue)
	}
}

func (m *modelTest) reopen() {
	if m.store != nil {
		if err := m.store.Close(); err != nil {
			m.Fatal(err)
		}
	}
	m.store = open(m, store.Options{FS: m.fs, Flush: store.Flush(m.random.IntN(2)), MemTableBytes: 256 << 10, CacheBytes: 1 << 20, SegmentBytes: 8 << 10, MinApart: int64(1 + m.random.IntN(4000))})
}

func (m *modelTest) append(topic string, queue int32) {
	c := &store.Change{}
	var messages []modelMessage
	var records []store.Record
	for range 1 + m.random.IntN(4) {
		n := modelMessage{
			body: strconv.FormatUint(m.random.Uint64(), 36) + string(make([]byte, m.random.IntN(600))),
			key:  "k" + strconv.Itoa(m.random.IntN(6)), hash: int32(m.random.IntN(4)),
		}
		r := record(m, topic, n.body, n.hash)
		r.Keys = []string{n.key}
		if m.random.IntN(6) == 0 {
			r.Due = 1 + m.random.Int64N(100)
		}
		r.Half = m.random.IntN(8) == 0
		messages, records = append(messages, n), append(records, r)
	}
	c.Appends = []store.Append{{Topic: topic, Queue: queue, Records: records}}
	if err := m.store.Apply(c); err != nil {
		m.Fatal(err)
	}
	queues := m.model.topics[topic]
	q := &queues[queue]
	for i, p := range c.Appends[0].Positions {
		if want := q.first + int64(len(q.messages)); p.QueueOffset != want || p.LogOffset <= m.model.lastLog {
			m.Fatalf("message %d was given %+v, want offset %d, and beyond %d in the log", i, p, want, m.model.lastLog)
		}
		messages[i].log, messages[i].millis = p.LogOffset, p.StoreMillis
		m.model.lastLog = p.LogOffset
		q.messages = append(q.messages, messages[i])
		if records[i].Due > 0 {
			m.model.scheduled = append(m.model.scheduled, modelEntry{records[i].Due, p.LogOffset, messages[i].body})
		}
		if records[i].Half {
			m.model.halves = append(m.model.halves, p.LogOffset)
		}
	}
	m.model.topics[topic] = queues
}

// end ends a schedule entry and a transaction, if there are any, by one change with a message.
func (m *modelTest) end() {
	c := &store.Change{}
	if n := len(m.model.scheduled); n > 0 {
		i := m.random.IntN(n)
		e := m.model.scheduled[i]
		c.Unschedule = []store.Scheduled{{Due: e.due, LogOffset: e.log}}
		m.model.scheduled = slices.Delete(m.model.scheduled, i, i+1)
	}
	if n := len(m.model.halves); n > 0 {
		i := m.random.IntN(n)
		c.EndHalves = []int64{m.model.halves[i]}
		m.model.halves = slices.Delete(m.model.halves, i, i+1)
	}
	if err := m.store.Apply(c); err != nil {
		m.Fatal(err)
	}
}

func (m *modelTest) expire(topic string, queue int32) {
	queues := m.model.topics[topic]
	q := &queues[queue]
	n := min(m.random.IntN(5), len(q.messages))
	q.first, q.messages = q.first+int64(n), q.messages[n:]
	m.model.topics[topic] = queues
	done(m, func(f func(error)) { m.store.Expire(topic, queue, q.first, f) })
}

func (m *modelTest) truncate(topic string, queue int32) {
	queues := m.model.topics[topic]
	q := &queues[queue]
	n := max(len(q.messages)-m.random.IntN(4), 0)
	q.messages = q.messages[:n:n]
	m.model.topics[topic] = queues
	done(m, func(f func(error)) { m.store.Truncate(topic, queue, q.first+int64(n), f) })
}

func (m *modelTest) remove(topic string) {
	delete(m.model.topics, topic)
	done(m, func(f func(error)) { m.store.Delete(topic, f) })
}

// compare looks at everything that a store can be asked.
func (m *modelTest) compare() {
	m.Helper()
	if err := settled(m.store); err != nil {
		m.Fatal(err)
	}
	for _, topic := range []string{"T0", "T1", "T2"} {
		for queue := range int32(2) {
			m.compareQueue(topic, queue, m.model.topics[topic][queue])
		}
		for key := range 6 {
			m.compareKey(topic, "k"+strconv.Itoa(key))
		}
	}
	m.compareWaiting()
	table, err := m.store.Table("t")
	if err != nil {
		m.Fatal(err)
	}
	for key, value := range table {
		if m.model.table[key] != string(value) {
			m.Fatalf("value of %s is %q, want %q", key, value, m.model.table[key])
		}
	}
	if len(table) != len(m.model.table) {
		m.Fatalf("%d values, want %d", len(table), len(m.model.table))
	}
}

func (m *modelTest) compareQueue(topic string, queue int32, q modelQueue) {
	m.Helper()
	first, next, _ := m.store.Bounds(topic, queue)
	if end := q.first + int64(len(q.messages)); end > 0 && (first != q.first || next != end) {
		m.Fatalf("%s/%d has %d..%d, want %d..%d", topic, queue, first, next, q.first, end)
	}
	hash := int32(m.random.IntN(4))
	r, err := m.store.Read(topic, queue, q.first, store.Limits{Messages: 10_000, Bytes: 1 << 30, Scan: 10_000}, store.Match{Tag: func(h int32) bool { return h == hash }})
	if err != nil {
		m.Fatal(err)
	}
	var got, want []string
	for _, raw := range r.Messages {
		msg := decode(m, raw)
		got = append(got, fmt.Sprint(msg.QueueOffset, msg.LogOffset, string(msg.Body)))
	}
	for i, msg := range q.messages {
		if msg.hash == hash {
			want = append(want, fmt.Sprint(q.first+int64(i), msg.log, msg.body))
		}
		raw, ok := lookup(m, m.store, msg.log)
		if !ok || string(decode(m, raw).Body) != msg.body {
			m.Fatalf("%s/%d: message %d is not at %d in the log", topic, queue, i, msg.log)
		}
		if millis, ok, err := m.store.StoreMillis(topic, queue, q.first+int64(i)); err != nil || !ok || millis != msg.millis {
			m.Fatalf("%s/%d: message %d was stored at %d, want %d: %t, %v", topic, queue, i, millis, msg.millis, ok, err)
		}
	}
	if !slices.Equal(got, want) {
		m.Fatalf("%s/%d with tag %d: %d messages, want %d", topic, queue, hash, len(got), len(want))
	}
}

func (m *modelTest) compareKey(topic, key string) {
	m.Helper()
	var want []int64
	for _, q := range m.model.topics[topic] {
		for _, msg := range q.messages {
			if msg.key == key {
				want = append(want, msg.log)
			}
		}
	}
	raws, err := m.store.Query(topic, key, 0, 1<<60, 1<<30, nil)
	if err != nil {
		m.Fatal(err)
	}
	var got []int64
	for _, raw := range raws {
		got = append(got, decode(m, raw).LogOffset)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		m.Fatalf("%s has key %s in %v, want %v", topic, key, got, want)
	}
}

func (m *modelTest) compareWaiting() {
	m.Helper()
	slices.SortFunc(m.model.scheduled, func(a, b modelEntry) int {
		if a.due != b.due {
			return int(a.due - b.due)
		}
		return int(a.log - b.log)
	})
	until := m.random.Int64N(110)
	due, next, err := m.store.Scheduled(0, until, 1<<30, 1<<30)
	if err != nil {
		m.Fatal(err)
	}
	n := 0
	for _, e := range m.model.scheduled {
		if e.due > until {
			break
		}
		if n >= len(due) || due[n].Due != e.due || due[n].LogOffset != e.log {
			m.Fatalf("due until %d: %d entries, entry %d should be %d at %d", until, len(due), n, e.log, e.due)
		}
		if raw := due[n].Raw; raw != nil && string(decode(m, raw).Body) != e.body {
			m.Fatalf("the entry at %d has another message", e.log)
		}
		n++
	}
	if n != len(due) || m.store.CountScheduled() != len(m.model.scheduled) {
		m.Fatalf("%d entries are due and %d wait, want %d and %d", len(due), m.store.CountScheduled(), n, len(m.model.scheduled))
	}
	if n < len(m.model.scheduled) && next != m.model.scheduled[n].due {
		m.Fatalf("the next entry is due at %d, want %d", next, m.model.scheduled[n].due)
	}
	halves, err := m.store.Halves()
	if err != nil || !slices.Equal(halves, slices.Sorted(slices.Values(m.model.halves))) {
		m.Fatalf("transactions %v, want %v: %v", halves, m.model.halves, err)
	}
}
