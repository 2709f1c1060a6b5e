package broker

import (
	"strconv"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/broker/memstore"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// schedule delivers what waits in the schedule topic. Each level is a queue of its own, in order of time because all its
// messages wait equally long; so one timer per level, for its first message, is enough.
type schedule struct {
	delays  []time.Duration
	store   *memstore.Store
	deliver func(raw []byte)

	mu      sync.Mutex
	running bool
	levels  []levelState
}

type levelState struct {
	next  int64 // offset of the first message that was not delivered
	timer *time.Timer
}

func newSchedule(delays []time.Duration, store *memstore.Store, deliver func([]byte)) *schedule {
	return &schedule{delays: delays, store: store, deliver: deliver, levels: make([]levelState, len(delays))}
}

// start delivers what became due while the broker was down, and waits for the rest.
func (s *schedule) start() {
	s.mu.Lock()
	s.running = true
	s.mu.Unlock()
	for level := range s.levels {
		s.arrived(level)
	}
}

func (s *schedule) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
	for i := range s.levels {
		if t := s.levels[i].timer; t != nil {
			t.Stop()
			s.levels[i].timer = nil
		}
	}
}

// arrived is told that a level has a new message; level counts from 0.
func (s *schedule) arrived(level int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armLocked(level)
}

// armLocked sets the timer of a level for its first message, unless it is set.
func (s *schedule) armLocked(level int) {
	l := &s.levels[level]
	if !s.running || l.timer != nil {
		return
	}
	stored, ok := s.store.StoreMillis(wire.ScheduleTopic, int32(level), l.next)
	if !ok {
		return
	}
	due := time.UnixMilli(stored).Add(s.delays[level])
	l.timer = time.AfterFunc(time.Until(due), func() { s.run(level) })
}

// run delivers what is due on a level. Only the level's one timer calls it, so a level is never run twice at once.
func (s *schedule) run(level int) {
	for {
		raw, ok := s.takeDue(level)
		if !ok {
			return
		}
		s.deliver(raw)
	}
}

// takeDue returns the first message of a level if it is due, and moves on; otherwise it sets the timer again.
func (s *schedule) takeDue(level int) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.levels[level]
	id := int32(level)
	if !s.running {
		return nil, false
	}
	stored, ok := s.store.StoreMillis(wire.ScheduleTopic, id, l.next)
	if !ok || time.Until(time.UnixMilli(stored).Add(s.delays[level])) > 0 {
		l.timer = nil
		s.armLocked(level)
		return nil, false
	}
	raw := s.store.Messages(wire.ScheduleTopic, id, l.next, 1)
	l.next++
	return raw[0], true
}

// deliver stores a message that waited in the topic it was meant for. Its properties stay as they are: consumers of
// RocketMQ see DELAY, REAL_TOPIC and REAL_QID.
func (b *Broker) deliver(raw []byte) {
	m := new(wire.Message)
	if _, err := m.Decode(raw); err != nil {
		b.config.Logger.Error("delivering a delayed message", "error", err.Error())
		return
	}
	d := draftOf(m)
	queue, err := strconv.ParseInt(d.properties.get(wire.PropRealQueueID), 10, 32)
	if err != nil {
		b.config.Logger.Error("delivering a delayed message", "error", err.Error())
		return
	}
	d.topic, d.queue = d.properties.get(wire.PropRealTopic), int32(queue)
	encoded, hash, err := b.encode(d, m.Properties)
	if err == nil {
		_, err = b.append(d.topic, d.queue, memstore.Record{Raw: encoded, TagHash: hash})
	}
	if err != nil {
		b.config.Logger.Error("delivering a delayed message", "topic", d.topic, "error", err.Error())
	}
}
