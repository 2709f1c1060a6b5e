package dispatch

import "github.com/streamd/streamd/runtime/internal/queue"

// source is one owned queue as the dispatcher sees it: the messages that wait for a lane.
type source struct {
	own     *queue.Ownership
	ready   deque
	out     int // on lanes
	revoked bool
	listed  bool // among the sources that have something ready

	// Of an ordered queue; ready is empty then.
	keys     map[string]*strand // with messages waiting or out
	runnable []*strand          // in turn
}

// sendable tells that something of the source may be sent now.
func (s *source) sendable() bool { return s.ready.len() > 0 || len(s.runnable) > 0 }

// deque is a ring of deliveries that takes at both ends.
type deque struct {
	ring    []*queue.Delivery
	head, n int
}

func (q *deque) len() int { return q.n }

func (q *deque) grow() {
	if q.n < len(q.ring) {
		return
	}
	bigger := make([]*queue.Delivery, max(64, 2*len(q.ring)))
	for i := range q.n {
		bigger[i] = q.ring[(q.head+i)%len(q.ring)]
	}
	q.ring, q.head = bigger, 0
}

func (q *deque) pushBack(d *queue.Delivery) {
	q.grow()
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = d
	q.n++
}

func (q *deque) pushFront(d *queue.Delivery) {
	q.grow()
	q.head = (q.head - 1) & (len(q.ring) - 1)
	q.ring[q.head] = d
	q.n++
}

func (q *deque) front() *queue.Delivery { return q.ring[q.head] }

func (q *deque) popFront() *queue.Delivery {
	d := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return d
}
