package store

import (
	"github.com/cockroachdb/pebble/v2"
)

// Status is what a read found, by the names of RocketMQ's GetMessageStatus.
type Status string

// The statuses. A queue that was never written to is NoMessageInQueue.
const (
	Found            Status = "FOUND"
	NoMatchedMessage Status = "NO_MATCHED_MESSAGE"
	NoMessageInQueue Status = "NO_MESSAGE_IN_QUEUE"
	OffsetTooSmall   Status = "OFFSET_TOO_SMALL"
	OverflowOne      Status = "OFFSET_OVERFLOW_ONE"
	OverflowBadly    Status = "OFFSET_OVERFLOW_BADLY"
)

// Limits bound one read. The first message always fits.
type Limits struct {
	Messages int
	Bytes    int
	Scan     int // entries looked at while filtering
	// Buffer is where the messages are copied to while there is room in it, so that a caller who is done with them can lend
	// it again. nil = to memory of their own.
	Buffer []byte
}

// Result is the answer to a read.
type Result struct {
	Status    Status
	Next      int64    // where to go on
	Min, Max  int64    // first readable offset, next to be written
	Messages  [][]byte // Found only
	TotalSize int      // of Messages, bytes
}

// Match is a filter. What Tag refuses is not read; Message sees the stored message, which is valid during the call.
// Both nil = everything passes.
type Match struct {
	Tag     func(tagHash int32) bool
	Message func(raw []byte) bool
}

// Read takes the messages from offset on that match lets pass.
func (s *Store) Read(topic string, queueID int32, offset int64, limits Limits, match Match) (Result, error) {
	s.mu.Lock()
	q := s.findLocked(topic, queueID)
	if q == nil || q.visible == 0 {
		s.mu.Unlock()
		return Result{Status: NoMessageInQueue}, nil
	}
	number, r := q.number, Result{Min: q.first, Max: q.visible}
	s.mu.Unlock()
	switch {
	case offset < r.Min:
		r.Status, r.Next = OffsetTooSmall, r.Min
	case offset == r.Max:
		r.Status, r.Next = OverflowOne, offset
	case offset > r.Max:
		r.Status, r.Next = OverflowBadly, r.Max
	default:
		err := s.view(func(db *pebble.DB) error { return take(db, s.segments, number, &r, offset, limits, match) })
		return r, err
	}
	return r, nil
}

// usualPull is for how many messages room is made at first.
const usualPull = 32

// take reads from offset on. What is expired meanwhile is passed over.
func take(db *pebble.DB, m *segments, number uint32, r *Result, offset int64, limits Limits, match Match) (err error) {
	it, err := messages(db, number, offset, r.Max)
	if err != nil {
		return err
	}
	defer func() { err = ended(it, err) }()
	scan, next := max(limits.Scan, limits.Messages, 1), offset
	picked := picked{arena: arena{limits.Buffer[:cap(limits.Buffer)]}, limits: limits}
	for ok := it.First(); ok && scan > 0; ok = it.Next() {
		scan--
		k := readMessageKey(it.Key())
		if match.Tag != nil && !match.Tag(k.tagHash) {
			next = k.offset + 1
			continue
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if match.Message != nil {
			if v, err = picked.whole(m, v); err != nil {
				return err
			}
		}
		if match.Message == nil || match.Message(v) {
			if !picked.add(v) {
				break
			}
			if len(picked.messages) == limits.Messages && match.Tag == nil && match.Message == nil {
				next = k.offset + 1
				break // Without a filter the next one cannot be taken.
			}
		}
		next = k.offset + 1
	}
	if err := picked.read(m, r); err != nil {
		return err
	}
	r.Next, r.Status = max(next, offset), Found
	if len(r.Messages) == 0 {
		r.Status = NoMatchedMessage
		if r.Next == offset && it.Error() == nil {
			r.Next = r.Max // All of it was expired since the bounds were read.
		}
	}
	return it.Error()
}

// messages iterates over the entries of a queue from one offset up to another.
func messages(db *pebble.DB, number uint32, from, to int64) (*pebble.Iterator, error) {
	return db.NewIter(messageRange(number, from, to))
}

func messageRange(number uint32, from, to int64) *pebble.IterOptions {
	bounds := make([]byte, 0, 2*messageKeySize)
	bounds = appendMessagePrefix(bounds, number, from)
	n := len(bounds)
	bounds = appendMessagePrefix(bounds, number, to)
	return &pebble.IterOptions{LowerBound: bounds[:n:n], UpperBound: bounds[n:]}
}

// keyAlone asks entry for the key of whatever message is there.
const keyAlone = -1

// entry reads the message at an offset of its queue and one of the log; false when that is not there, or another one is.
func (s *Store) entry(db *pebble.DB, number uint32, offset, logOffset int64) (k entryKey, raw []byte, found bool, err error) {
	it, err := messages(db, number, offset, offset+1)
	if err != nil {
		return k, nil, false, err
	}
	defer func() { err = ended(it, err) }()
	if !it.First() {
		return k, nil, false, it.Error()
	}
	k = readMessageKey(it.Key())
	if logOffset == keyAlone {
		return k, nil, true, nil
	}
	v, err := it.ValueAndErr()
	if err != nil || logOffsetIn(v) != logOffset {
		return k, nil, false, err
	}
	raw, err = s.segments.copy(v)
	return k, raw, err == nil, err
}

// Messages returns the readable messages of a queue from an offset on, at most limit of them (0 = all).
func (s *Store) Messages(topic string, queueID int32, from int64, limit int) ([][]byte, error) {
	s.mu.Lock()
	q := s.findLocked(topic, queueID)
	if q == nil || from >= q.visible {
		s.mu.Unlock()
		return nil, nil
	}
	number, first, end := q.number, max(from, q.first), q.visible
	s.mu.Unlock()
	if limit > 0 {
		end = min(end, first+int64(limit))
	}
	var raws [][]byte
	err := s.view(func(db *pebble.DB) error {
		raws = nil
		return walk(db, messageRange(number, first, end), func(it *pebble.Iterator) (bool, error) {
			v, err := it.ValueAndErr()
			if err != nil {
				return false, err
			}
			raw, err := s.segments.copy(v)
			raws = append(raws, raw)
			return true, err
		})
	})
	return raws, err
}
