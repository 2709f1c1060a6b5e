package store

import (
	"github.com/cockroachdb/pebble/v2"
)

// Scheduled is a message that waits for its time.
type Scheduled struct {
	Due       int64 // milliseconds since 1970, by the store's clock
	LogOffset int64
	Raw       []byte
	// Topic and Keys are for the caller to fill in before a Change ends it: what Query found the message by.
	Topic string
	Keys  []string

	at    place
	entry entryKey
	alone bool // it is a run of the log of its own
}

// Scheduled returns the messages that are due at until or before, in order of time and then of arrival, from a due time on,
// at most limit of them and, but for the last, bytes; and when the next one behind them is due, 0 when there is none. They
// stay scheduled until a Change says otherwise. A schedule entry whose message is gone comes with nil Raw, to be removed
// likewise.
func (s *Store) Scheduled(from, until int64, limit, bytes int) (due []Scheduled, next int64, err error) {
	next, err = s.schedule(from, until, func(e Scheduled) bool {
		due, bytes = append(due, e), bytes-len(e.Raw)
		return len(due) < limit && bytes > 0
	})
	return due, next, err
}

// FindScheduled returns the first message due in [from, until] that is accepts; false when there is none.
func (s *Store) FindScheduled(from, until int64, is func(raw []byte) bool) (e Scheduled, found bool, err error) {
	_, err = s.schedule(from, until, func(one Scheduled) bool {
		if one.Raw != nil && is(one.Raw) {
			e, found = one, true
		}
		return !found
	})
	return e, found, err
}

// schedule hands out what is due in [from, until] until it is told to stop, and returns when the next one is due.
func (s *Store) schedule(from, until int64, more func(e Scheduled) bool) (next int64, err error) {
	err = s.view(func(db *pebble.DB) (err error) {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: scheduleKey(max(from, 0), 0), UpperBound: []byte{prefixSchedule + 1}})
		if err != nil {
			return err
		}
		defer func() { err = ended(it, err) }()
		for ok, on := it.First(), true; ok; ok = it.Next() {
			e := Scheduled{Due: int64(order.Uint64(it.Key()[1:])), LogOffset: int64(order.Uint64(it.Key()[9:]))}
			if e.Due > until || !on {
				next = e.Due
				break
			}
			v, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			if err := s.readScheduled(db, &e, v); err != nil {
				return err
			}
			on = more(e)
		}
		return it.Error()
	})
	return next, err
}

// readScheduled reads the message that an entry of the schedule is of; none when its topic was deleted or its queue cut.
func (s *Store) readScheduled(db *pebble.DB, e *Scheduled, value []byte) error {
	p, ok := readPlace(value)
	if !ok {
		return nil
	}
	k, raw, found, err := s.entry(db, p.queue, p.offset, e.LogOffset)
	if err != nil || !found {
		return err
	}
	e.Raw, e.at, e.entry = raw, p, k
	base, r, ok, err := runAt(db, e.LogOffset)
	e.alone = ok && base == e.LogOffset && r.count == 1
	return err
}

// CountScheduled is how many messages wait.
func (s *Store) CountScheduled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scheduled
}

// Halves returns the log offsets of the open transactions in the order in which they came.
func (s *Store) Halves() (open []int64, err error) {
	err = s.view(func(db *pebble.DB) error {
		return scan(db, []byte{prefixHalf}, func(k, _ []byte) error {
			open = append(open, int64(order.Uint64(k[1:])))
			return nil
		})
	})
	return open, err
}

// Table returns the values of a table by their keys.
func (s *Store) Table(name string) (map[string][]byte, error) {
	table := make(map[string][]byte)
	prefix := tableKey(name, "")
	err := s.view(func(db *pebble.DB) error {
		return scan(db, prefix, func(k, v []byte) error {
			table[string(k[len(prefix):])] = append([]byte{}, v...)
			return nil
		})
	})
	return table, err
}
