package store

import (
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// retain expires what is too old or too much. Messages go in the order in which they were stored, whatever their queue, as
// RocketMQ's do; those that wait for their time or for the end of their transaction stay, and what was stored behind them
// in the same queue.
func (s *Store) retain() {
	if err := s.expire(s.clock.now()); err != nil && s.Err() == nil {
		s.options.Logger.Error("expiring messages", "folder", s.options.Dir, "error", err.Error())
	}
}

func (s *Store) expire(now int64) error {
	cut, err := s.cut(now)
	if err != nil || cut.log <= 0 {
		return err
	}
	kept, err := s.keptFrom()
	if err != nil {
		return err
	}
	s.mu.Lock()
	var old []*queue
	for _, q := range s.numbers {
		if q.oldest < cut.log && q.first < q.visible {
			old = append(old, q)
		}
	}
	s.mu.Unlock()
	for _, q := range old {
		if err := s.expireQueue(q, cut.log, kept); err != nil {
			return err
		}
	}
	return s.dropIndexes(cut, kept)
}

// cut is where the log shall begin.
type cut struct {
	log    int64
	millis int64 // of the first message that stays
}

// cut finds the first run of the log that is young enough and within the size.
func (s *Store) cut(now int64) (c cut, err error) {
	s.mu.Lock()
	end := s.nextLog
	s.mu.Unlock()
	oldest := int64(math.MinInt64)
	if s.options.RetainAge > 0 {
		oldest = now - s.options.RetainAge.Milliseconds()
	}
	lowest := int64(0)
	if s.options.RetainBytes > 0 {
		lowest = max(end-s.options.RetainBytes, 0)
	}
	err = s.view(func(db *pebble.DB) (err error) {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixLog}, UpperBound: []byte{prefixLog + 1}})
		if err != nil {
			return err
		}
		defer func() { err = ended(it, err) }()
		if it.Last() {
			// All of it, if none is young enough. What is on its way into the log now is not: its log offsets are given
			// already, and by the time the queues are cut it may have arrived.
			if r, ok := readRun(it.Value()); ok {
				c = cut{int64(order.Uint64(it.Key()[1:])) + int64(r.bytes), now}
			}
		}
		for ok := it.SeekGE(logKey(lowest)); ok; ok = it.Next() {
			v, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			if r, ok := readRun(v); ok && r.millis >= oldest {
				c = cut{int64(order.Uint64(it.Key()[1:])), r.millis}
				break
			}
		}
		return it.Error()
	})
	return c, err
}

// keptFrom returns the lowest offset by queue, and the lowest log offset under queue 0, of what must stay.
func (s *Store) keptFrom() (map[uint32]int64, error) {
	kept := map[uint32]int64{0: math.MaxInt64}
	keep := func(logOffset int64, v []byte) {
		kept[0] = min(kept[0], logOffset)
		if p, ok := readPlace(v); ok {
			if lowest, ok := kept[p.queue]; !ok || p.offset < lowest {
				kept[p.queue] = p.offset
			}
		}
	}
	err := s.view(func(db *pebble.DB) error {
		err := scan(db, []byte{prefixSchedule}, func(k, v []byte) error {
			keep(int64(order.Uint64(k[9:])), v)
			return nil
		})
		if err != nil {
			return err
		}
		return scan(db, []byte{prefixHalf}, func(k, v []byte) error {
			keep(int64(order.Uint64(k[1:])), v)
			return nil
		})
	})
	return kept, err
}

func (s *Store) expireQueue(q *queue, log int64, kept map[uint32]int64) error {
	s.mu.Lock()
	b, number := bounds{q.first, q.visible}, q.number
	s.mu.Unlock()
	first, err := s.find(number, b, func(_ entryKey, raw []byte) bool { return logOffsetOf(raw) >= log }, true)
	if err != nil {
		return err
	}
	if lowest, ok := kept[number]; ok {
		first = min(first, lowest)
	}
	s.Expire(q.topic, q.id, first, func(error) {}) // What could not be done now is done the next time.
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := kept[number]; !ok && q.first >= first {
		q.oldest = log
	}
	return nil
}

// dropIndexes removes the indexes of what is gone. The last run of the log stays: it says where the log ends.
func (s *Store) dropIndexes(c cut, kept map[uint32]int64) error {
	var base int64
	err := s.view(func(db *pebble.DB) (err error) {
		base, _, _, err = runAt(db, min(c.log, kept[0]))
		return err
	})
	hour := hourOf(c.millis)
	if err != nil || base <= s.dropped.log && hour <= s.dropped.hour {
		return err
	}
	result := make(chan error, 1)
	s.edit(func(err error) { result <- err }, func(g *group) {
		g.removeFrom(logKey(0), logKey(base))
		g.removeFrom(indexPrefix(0, 0), indexPrefix(hour, 0))
	})
	if err := <-result; err != nil {
		return err
	}
	s.dropped.log, s.dropped.hour = base, hour
	// What is gone leaves the disk when Pebble has written down that it is, which on an idle broker would be never.
	return s.view(func(db *pebble.DB) error {
		_, err := db.AsyncFlush()
		return err
	})
}
