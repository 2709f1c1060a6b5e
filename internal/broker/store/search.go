package store

import (
	"errors"
	"sort"

	"github.com/cockroachdb/pebble/v2"
)

// StoreMillis returns when the message at offset was stored; false when it is not there.
func (s *Store) StoreMillis(topic string, queueID int32, offset int64) (int64, bool, error) {
	number, b, ok := s.readable(topic, queueID)
	if !ok || offset < b.first || offset >= b.next {
		return 0, false, nil
	}
	var k entryKey
	err := s.view(func(db *pebble.DB) (err error) {
		k, _, ok, err = s.entry(db, number, offset, keyAlone)
		return err
	})
	return k.millis, ok && err == nil, err
}

// readable returns a queue's number and the bounds of what can be read.
func (s *Store) readable(topic string, queueID int32) (uint32, bounds, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(topic, queueID)
	if q == nil {
		return 0, bounds{}, false
	}
	return q.number, bounds{q.first, q.visible}, true
}

// Search returns the first offset whose message was stored at millis or later (the next offset to be written if none
// was), or with upper the last one stored at millis or before (remoting-protocol.md 2.7). 0 for an unknown queue.
func (s *Store) Search(topic string, queueID int32, millis int64, upper bool) (int64, error) {
	number, b, ok := s.readable(topic, queueID)
	if !ok {
		return 0, nil
	}
	limit := millis
	if upper {
		limit++
	}
	offset, err := s.find(number, b, func(k entryKey, _ []byte) bool { return k.millis >= limit }, false)
	switch {
	case err != nil || !upper:
		return offset, err
	case offset == b.first:
		return 0, nil
	}
	return offset - 1, nil
}

// find returns the first offset within bounds whose message is true to is, which must be monotonic.
func (s *Store) find(number uint32, b bounds, is func(k entryKey, v []byte) bool, value bool) (offset int64, err error) {
	err = s.view(func(db *pebble.DB) (err error) {
		it, err := messages(db, number, b.first, b.next)
		if err != nil {
			return err
		}
		defer func() { err = ended(it, err) }()
		n := sort.Search(int(b.next-b.first), func(i int) bool {
			if err != nil || !it.SeekGE(appendMessagePrefix(nil, number, b.first+int64(i))) {
				return true
			}
			var v []byte
			if value {
				if v, err = it.ValueAndErr(); err != nil {
					return true
				}
			}
			return is(readMessageKey(it.Key()), v)
		})
		offset = b.first + int64(n)
		return errors.Join(err, it.Error())
	})
	return offset, err
}

// Lookup returns the message at a log offset; false when none starts there, or it is no longer part of its queue. Any
// offset may be asked for: a reader's word is not trusted.
func (s *Store) Lookup(logOffset int64) (raw []byte, found bool, err error) {
	if logOffset < 0 {
		return nil, false, nil
	}
	err = s.view(func(db *pebble.DB) error {
		_, r, ok, err := runAt(db, logOffset)
		if err != nil || !ok {
			return err
		}
		raw, found, err = s.inRun(db, r, logOffset)
		return err
	})
	return raw, found, err
}

// runAt returns the run that begins at or before a log offset, and where it begins.
func runAt(db *pebble.DB, logOffset int64) (base int64, r run, ok bool, err error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixLog}, UpperBound: after(logKey(logOffset))})
	if err != nil {
		return 0, run{}, false, err
	}
	defer func() { err = ended(it, err) }()
	if !it.Last() {
		return 0, run{}, false, it.Error()
	}
	v, err := it.ValueAndErr()
	if err != nil {
		return 0, run{}, false, err
	}
	r, ok = readRun(v)
	return int64(order.Uint64(it.Key()[1:])), r, ok, nil
}

func (s *Store) inRun(db *pebble.DB, r run, logOffset int64) (raw []byte, found bool, err error) {
	s.mu.Lock()
	q := s.numbers[r.queue]
	if q == nil {
		s.mu.Unlock()
		return nil, false, nil
	}
	first, end := max(r.offset, q.first), min(r.offset+int64(r.count), q.visible)
	s.mu.Unlock()
	err = walk(db, messageRange(r.queue, first, max(first, end)), func(it *pebble.Iterator) (bool, error) {
		v, err := it.ValueAndErr()
		if err != nil || logOffsetIn(v) != logOffset {
			return true, err
		}
		raw, err = s.segments.copy(v)
		found = err == nil
		return false, err
	})
	return raw, found, err
}
