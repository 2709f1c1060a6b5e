package store

import (
	"github.com/cockroachdb/pebble/v2"
)

// bounds are a queue's first offset and its next one.
type bounds struct {
	first, next int64
}

const boundsSize = 8 + 8

func (b bounds) append(v []byte) []byte {
	return order.AppendUint64(order.AppendUint64(v, uint64(b.first)), uint64(b.next))
}

// queue is one queue. It is guarded by the Store's mutex.
type queue struct {
	topic   string
	id      int32
	number  uint32
	bounds        // as submitted
	visible int64 // the next offset of what is stored
	oldest  int64 // log offset of the first message, or less; retention's
	era     int   // how often its end was cut off
	told    int   // the era of what is stored
	cut     int64 // the lowest end since told
}

// extent is the bounds of a queue after a change, and in which era that was.
type extent struct {
	bounds
	era int
}

// stored makes what is stored visible. What was submitted before the queue's end was cut off, and lies behind that, is not:
// until the cut is stored too it would be read in the place of what comes after it.
func (q *queue) stored(x extent) {
	q.told = x.era
	if q.visible = x.next; x.era != q.era {
		q.visible = min(x.next, q.cut)
	}
}

// cutAt takes the end off at next.
func (q *queue) cutAt(next int64) {
	if q.told == q.era || next < q.cut {
		q.cut = next
	}
	q.era++
	q.next, q.visible = next, min(q.visible, next)
}

func (s *Store) findLocked(topic string, id int32) *queue {
	queues := s.topics[topic]
	if id < 0 || int(id) >= len(queues) {
		return nil
	}
	return queues[id]
}

// makeQueueLocked returns a queue, made with a number of its own if it is not there.
func (s *Store) makeQueueLocked(g *group, topic string, id int32) *queue {
	if q := s.findLocked(topic, id); q != nil {
		return q
	}
	s.lastNumber++
	q := &queue{topic: topic, id: id, number: s.lastNumber}
	g.set([]byte{prefixCounter}, order.AppendUint32(nil, s.lastNumber))
	s.placeLocked(q)
	return q
}

func (s *Store) placeLocked(q *queue) {
	queues := s.topics[q.topic]
	for int(q.id) >= len(queues) {
		queues = append(queues, nil)
	}
	queues[q.id] = q
	s.topics[q.topic] = queues
	s.numbers[q.number] = q
}

// Bounds returns the first readable offset of a queue and the next one to be written; false when nothing was ever
// written to it. What is not stored yet does not count.
func (s *Store) Bounds(topic string, queueID int32) (first, next int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.findLocked(topic, queueID)
	if q == nil || q.visible == 0 {
		return 0, 0, false
	}
	return q.first, q.visible, true
}

// Log returns the log offset of the oldest part of the log that is still there, and the one where the next message goes.
func (s *Store) Log() (first, next int64, err error) {
	s.mu.Lock()
	next = s.nextLog
	s.mu.Unlock()
	first = next
	err = s.view(func(db *pebble.DB) (err error) {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{prefixLog}, UpperBound: []byte{prefixLog + 1}})
		if err != nil {
			return err
		}
		defer func() { err = ended(it, err) }()
		if it.First() {
			first = int64(order.Uint64(it.Key()[1:]))
		}
		return it.Error()
	})
	return first, next, err
}

// Queues returns how many queues of a topic were written to, or lie below one that was.
func (s *Store) Queues(topic string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.topics[topic])
}

// Expire removes what lies below first and makes it the first readable offset, at most the end of the queue. done is that
// of Submit.
func (s *Store) Expire(topic string, queueID int32, first int64, done func(error)) {
	s.edit(done, func(g *group) { s.expireLocked(g, topic, queueID, first) })
}

func (s *Store) expireLocked(g *group, topic string, queueID int32, first int64) {
	q := s.findLocked(topic, queueID)
	if q == nil || first <= q.first {
		return
	}
	first = min(first, q.next)
	g.removeFrom(appendMessagePrefix(nil, q.number, q.first), appendMessagePrefix(nil, q.number, first))
	q.first = first
	g.touch(q)
}

// Truncate removes what lies at offset next and after, as a broker does that lost the end of its log in a crash. done is that
// of Submit.
func (s *Store) Truncate(topic string, queueID int32, next int64, done func(error)) {
	s.edit(done, func(g *group) {
		q := s.findLocked(topic, queueID)
		if q == nil || next >= q.next {
			return
		}
		next = max(next, q.first)
		g.removeFrom(appendMessagePrefix(nil, q.number, next), appendMessagePrefix(nil, q.number+1, 0))
		q.cutAt(next)
		g.touch(q)
	})
}

// Delete removes a topic with its messages. Written to again, its queues start at 0. done is that of Submit.
func (s *Store) Delete(topic string, done func(error)) {
	s.edit(done, func(g *group) {
		for _, q := range s.topics[topic] {
			if q == nil {
				continue
			}
			g.removeFrom(appendMessagePrefix(nil, q.number, 0), appendMessagePrefix(nil, q.number+1, 0))
			g.remove(queueKey(q.topic, q.id))
			delete(g.touched, q)
			delete(s.numbers, q.number)
		}
		delete(s.topics, topic)
	})
}

// edit puts a change of queues in line.
func (s *Store) edit(done func(error), do func(*group)) { s.editUnless(s.refusalLocked, done, do) }

// editSince is edit by what was read since then: it is refused when the store has failed meanwhile, after which that may not hold.
func (s *Store) editSince(since Mark, done func(error), do func(*group)) {
	s.editUnless(func() error { return s.refusalSinceLocked(since) }, done, do)
}

func (s *Store) editUnless(refusalLocked func() error, done func(error), do func(*group)) {
	s.mu.Lock()
	err := refusalLocked()
	if err == nil {
		g := s.groupLocked(0)
		do(g)
		g.done = append(g.done, done)
		s.wakeLocked()
	}
	s.mu.Unlock()
	if err != nil {
		done(err)
	}
}
