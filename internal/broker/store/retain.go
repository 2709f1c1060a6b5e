package store

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// retain expires what is too old or too much. Messages go in the order in which they were stored, whatever their queue, as
// RocketMQ's do; those that wait for their time or for the end of their transaction stay, and what was stored behind them
// in the same queue.
func (s *Store) retain() {
	since := s.Mark()
	if since.failed {
		return
	}
	if since != s.dropped.since {
		s.dropped = newDropped(since) // What was gone may be there again.
	}
	var err error
	if s.options.RetainAge > 0 || s.options.RetainBytes > 0 {
		err = s.expire(since, s.clock.now())
	}
	if err == nil {
		err = s.dropSegments(since)
	}
	if err != nil && s.Err() == nil && !errors.Is(err, ErrFailed) {
		s.options.Logger.Error("expiring messages", "folder", s.options.Dir, "error", err.Error())
	}
}

// dropped is what retention has removed, as far as it is known since a Mark.
type dropped struct {
	since Mark
	log   int64
	hour  uint32
	used  map[int64]int64 // by where a segment begins: below, nothing in it is used
}

func newDropped(since Mark) dropped { return dropped{since: since, used: make(map[int64]int64)} }

func (s *Store) expire(since Mark, now int64) error {
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
	results := make(chan error, len(old))
	for _, q := range old {
		if err := s.expireQueue(since, q, cut.log, kept, func(err error) { results <- err }); err != nil {
			return err
		}
	}
	for range old {
		if err := <-results; err != nil {
			return err // It is done the next time. Until then it must be found by its index, or its segment would go.
		}
	}
	return s.dropIndexes(since, cut, kept)
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

func (s *Store) expireQueue(since Mark, q *queue, log int64, kept map[uint32]int64, done func(error)) error {
	s.mu.Lock()
	b, number := bounds{q.first, q.visible}, q.number
	s.mu.Unlock()
	first, err := s.find(number, b, func(_ entryKey, v []byte) bool { return logOffsetIn(v) >= log }, true)
	if err != nil {
		return err
	}
	if lowest, ok := kept[number]; ok {
		first = min(first, lowest)
	}
	s.editSince(since, done, func(g *group) { s.expireLocked(g, q.topic, q.id, first) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := kept[number]; !ok && q.first >= first {
		q.oldest = log
	}
	return nil
}

// dropIndexes removes the indexes of what is gone. The last run of the log stays: it says where the log ends.
func (s *Store) dropIndexes(since Mark, c cut, kept map[uint32]int64) error {
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
	s.editSince(since, func(err error) { result <- err }, func(g *group) {
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

// dropSegments removes the segments in which no message is any more: expired, or of a topic that was deleted.
func (s *Store) dropSegments(since Mark) error {
	empty, err := s.emptySegments()
	if err != nil || len(empty) == 0 {
		return err
	}
	result := make(chan error, 1)
	s.editSince(since, func(err error) { result <- err }, func(g *group) {
		for _, segment := range empty {
			g.remove(segmentKey(segment.first))
		}
	})
	if err := <-result; err != nil {
		return err
	}
	if err := s.settleDropped(); err != nil {
		return err
	}
	for _, segment := range empty {
		delete(s.dropped.used, segment.first)
	}
	return s.segments.drop(empty)
}

// settleDropped sees to it that the disk has what was stored before, and that SYNCED says so, or is not there: where a log points to
// a segment that is not there, it would be cut.
func (s *Store) settleDropped() error {
	if s.options.Flush == FlushAsync {
		if err := cmp.Or(s.disk.syncLogs(true), s.Err()); err != nil {
			return err
		}
	}
	return syncFolder(s.options.FS, s.options.Dir)
}

// emptySegments returns the segments that no message is in, and that none will be written to.
func (s *Store) emptySegments() (empty []span, err error) {
	end, err := s.storedEnd()
	if err != nil {
		return nil, err
	}
	for _, segment := range s.segments.spans(end) {
		used, err := s.usedFrom(max(segment.first, s.dropped.used[segment.first]), segment)
		if err != nil {
			return nil, err
		}
		s.dropped.used[segment.first] = used
		if used == segment.end && (segment.end < end || s.leaveSegment(segment)) {
			empty = append(empty, segment)
		}
	}
	return empty, nil
}

// storedEnd is where the log ends by what is stored. What is on its way into it has log offsets behind that already.
func (s *Store) storedEnd() (end int64, err error) {
	err = s.view(func(db *pebble.DB) error {
		base, r, _, err := runAt(db, math.MaxInt64)
		end = base + int64(r.bytes)
		return err
	})
	return end, err
}

// leaveSegment has the next message that goes into a segment begin one, so that nothing is written to the last one any more; false:
// something that may go there is not stored yet. The group that gathers now would still take more.
func (s *Store) leaveSegment(last span) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.groups); s.segment == last.first && (n == 0 || s.groups[n-1].log == nil) {
		s.segment, s.left = -1, s.nextLog
	}
	return s.segment != last.first && s.left <= last.end
}

// usedFrom returns the first log offset, from one on, at which there is a run with a message in a segment, or the segment's end when
// there is none. Messages go and do not come back, so that the next search begins there.
func (s *Store) usedFrom(from int64, segment span) (used int64, err error) {
	for more := true; more; from = used {
		if err := s.ctx.Err(); err != nil {
			return 0, err
		}
		if used, more, err = s.usedNear(from, segment); err != nil {
			return 0, err
		}
	}
	return used, nil
}

// lookAtOnce is how many runs of the log are looked at before the store is let go. Behind the last segment there may be all that
// FlushSync has stored since with its keys; whoever closes the store, or opens it again, waits for who uses it.
const lookAtOnce = 10_000

// usedNear is usedFrom as far as it looks at once; more: that is not the answer yet, but where to go on.
func (s *Store) usedNear(from int64, segment span) (used int64, more bool, err error) {
	err = s.view(func(db *pebble.DB) error {
		used, more = segment.end, false
		left := lookAtOnce
		return walk(db, &pebble.IterOptions{LowerBound: logKey(from), UpperBound: logKey(segment.end)}, func(it *pebble.Iterator) (bool, error) {
			v, err := it.ValueAndErr()
			if err != nil {
				return false, err
			}
			r, ok := readRun(v)
			if !ok {
				return false, fmt.Errorf("%w: the entry %q of the log is %q", ErrDamaged, it.Key(), v)
			}
			some, err := hasPointer(db, r, segment)
			if left--; err == nil && !some && left > 0 {
				return true, nil
			}
			used, more = int64(order.Uint64(it.Key()[1:])), !some
			return false, err
		})
	})
	return used, more, err
}

// hasPointer tells whether any message of a run is in a segment.
func hasPointer(db *pebble.DB, r run, segment span) (some bool, err error) {
	err = walk(db, messageRange(r.queue, r.offset, r.offset+int64(r.count)), func(it *pebble.Iterator) (bool, error) {
		if lazy := it.LazyValue(); lazy.Len() != pointerSize {
			return true, nil // The message itself, which may be in a blob, is not read.
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return false, err
		}
		p, out := readPointer(v)
		some = out && segment.has(p.log)
		return !some, nil
	})
	return some, err
}
