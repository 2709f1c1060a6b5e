package store

import (
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// Query returns the messages of a topic that have a key (Record.Keys), stored in [begin, end] milliseconds, the newest
// first, at most limit of them. Messages that only share the key's hash are told apart by has, which may be nil.
func (s *Store) Query(topic, key string, begin, end int64, limit int, has func(raw []byte) bool) (raws [][]byte, err error) {
	hash := hashOf(topic, key)
	err = s.view(func(db *pebble.DB) (err error) {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixIndex}, UpperBound: []byte{prefixIndex + 1}})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, it.Close()) }()
		for ok := it.Last(); ok && len(raws) < limit; {
			hour := min(order.Uint32(it.Key()[1:]), hourOf(end))
			if hour < hourOf(begin) {
				break
			}
			if err := s.queryHour(db, it, indexPrefix(hour, hash), topic, begin, end, func(raw []byte) bool {
				if has == nil || has(raw) {
					raws = append(raws, raw)
				}
				return len(raws) < limit
			}); err != nil {
				return err
			}
			ok = it.SeekLT(order.AppendUint32([]byte{prefixIndex}, hour)) // The hour before that has any entry.
		}
		return it.Error()
	})
	return raws, err
}

// queryHour hands out the messages of one hour, the newest first, until it is told to stop.
func (s *Store) queryHour(
	db *pebble.DB, it *pebble.Iterator, prefix []byte, topic string, begin, end int64, each func(raw []byte) bool,
) error {
	last := order.AppendUint64(append([]byte(nil), prefix...), uint64(min(max(end, -1), math.MaxInt64-1)+1)) //nolint:gosec // not negative
	for ok := it.SeekLT(last); ok; ok = it.Prev() {
		k := it.Key()
		if len(k) != indexKeySize || string(k[:len(prefix)]) != string(prefix) {
			break
		}
		if int64(order.Uint64(k[13:])) < begin {
			break
		}
		p, ok := readPlace(k[21:])
		if !ok || !s.isReadable(topic, p) {
			continue
		}
		_, raw, found, err := entry(db, p.queue, p.offset, true)
		if err != nil {
			return err
		}
		if found && !each(raw) {
			break
		}
	}
	return it.Error()
}

// isReadable tells whether a place is one of a topic's now.
func (s *Store) isReadable(topic string, p place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.numbers[p.queue]
	return q != nil && q.topic == topic && p.offset >= q.first && p.offset < q.visible
}
