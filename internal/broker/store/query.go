package store

import (
	"bytes"

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
		defer func() { err = ended(it, err) }()
		raws = nil
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
	for ok := it.SeekLT(after(prefix)); ok; ok = it.Prev() {
		k := it.Key()
		if len(k) != indexKeySize || !bytes.HasPrefix(k, prefix) {
			break
		}
		logOffset := int64(order.Uint64(k[13:]))
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		p, ok := readPlace(v)
		if !ok || !s.isReadable(topic, p) {
			continue
		}
		at, raw, found, err := s.entry(db, p.queue, p.offset, logOffset)
		switch {
		case err != nil:
			return err
		case !found || at.millis > end:
			continue // Another one has its offset since the queue was cut, or it is too young.
		case at.millis < begin || !each(raw):
			return nil
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
