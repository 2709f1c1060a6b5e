package memstore

import "encoding/binary"

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
}

// Result is the answer to a read.
type Result struct {
	Status    Status
	Next      int64    // where to go on
	Min, Max  int64    // first readable offset, next to be written
	Messages  [][]byte // Found only
	TotalSize int      // of Messages, bytes
}

// Read takes the messages from offset on that match accepts (nil = all).
func (s *Store) Read(topic string, queueID int32, offset int64, limits Limits, match func(tagHash int32) bool) Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(topic, queueID)
	if q == nil || q.max() == 0 {
		return Result{Status: NoMessageInQueue}
	}
	r := Result{Min: q.min, Max: q.max()}
	switch {
	case offset < r.Min:
		r.Status, r.Next = OffsetTooSmall, r.Min
	case offset == r.Max:
		r.Status, r.Next = OverflowOne, offset
	case offset > r.Max:
		r.Status, r.Next = OverflowBadly, r.Max
	default:
		q.take(&r, offset, limits, match)
	}
	return r
}

func (q *queue) take(r *Result, offset int64, limits Limits, match func(int32) bool) {
	entries := q.entries[offset-q.min:]
	if scan := max(limits.Scan, limits.Messages, 1); len(entries) > scan {
		entries = entries[:scan]
	}
	r.Messages = make([][]byte, 0, min(limits.Messages, len(entries)))
	taken := 0
	for _, e := range entries {
		if match == nil || match(e.tagHash) {
			full := len(r.Messages) >= limits.Messages || r.TotalSize+len(e.raw) > limits.Bytes
			if full && len(r.Messages) > 0 {
				break
			}
			r.Messages = append(r.Messages, e.raw)
			r.TotalSize += len(e.raw)
		}
		taken++
	}
	r.Next = offset + int64(taken)
	r.Status = Found
	if len(r.Messages) == 0 {
		r.Status = NoMatchedMessage
	}
}

func logOffsetOf(raw []byte) int64 { return int64(binary.BigEndian.Uint64(raw[atLogOffset:])) }
