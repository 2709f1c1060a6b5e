package serve

import (
	"sync"
	"sync/atomic"

	"github.com/streamd/streamd/sdk"
)

// queue holds the records of a lane that wait for a worker. Records without a strand are taken with one atomic addition;
// locks are taken per batch and, where there are strands, per turn of a strand.
type queue struct {
	mode    sdk.Mode
	current atomic.Pointer[batch] // whose records are being taken one by one

	mu      sync.Mutex
	batches []*batch           // wait behind current; in batch mode each is handed over whole
	strands map[uint32]*strand // with records in hand or waiting
	ready   []*strand          // have records waiting and nobody at work
	ordered bool               // batch mode: a batch with strands is in hand, so the next waits
}

// strand is the records of one strand that wait for their turn. While a worker has some of them in hand, no other gets more.
// It is in the map while it is ready or in somebody's hands, but for number 0: such a record is bound to no other.
type strand struct {
	number uint32
	tasks  []*task
}

// unit is what a worker takes: one record, the turn of a strand, or (batch mode) a whole batch.
type unit struct {
	task   *task
	strand *strand
	tasks  []*task // of the strand
	batch  *batch
}

func (q *queue) init(mode sdk.Mode) {
	q.mode = mode
	q.strands = make(map[uint32]*strand)
}

func (q *queue) put(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mode == sdk.ModeBatch || !b.ordered() {
		q.batches = append(q.batches, b)
		return
	}
	for i := range b.tasks {
		number := b.Records.Strand[i]
		s := q.strands[number]
		if s == nil {
			s = &strand{number: number}
			if number != 0 { // bound to none: on its own
				q.strands[number] = s
			}
			q.ready = append(q.ready, s)
		}
		s.tasks = append(s.tasks, &b.tasks[i])
	}
}

// next takes what comes next; ok is false when nothing waits.
func (q *queue) next() (u unit, ok bool) {
	for {
		b := q.current.Load()
		if b != nil {
			if i := b.next.Add(1) - 1; int(i) < len(b.tasks) {
				return unit{task: &b.tasks[i]}, true
			}
		}
		q.mu.Lock()
		if q.current.Load() != b { // another worker has gone on to the next batch
			q.mu.Unlock()
			continue
		}
		u, ok, again := q.advance()
		q.mu.Unlock()
		if !again {
			return u, ok
		}
	}
}

// advance goes to the next strand or batch; mu is held.
func (q *queue) advance() (u unit, ok, again bool) {
	if len(q.ready) > 0 {
		s := q.ready[0]
		q.ready = q.ready[1:]
		u = unit{strand: s, tasks: s.tasks}
		s.tasks = nil
		if q.mode == sdk.ModeAsync { // its worker does not wait for the verdict, so it gets one at a time
			u.tasks, s.tasks = u.tasks[:1], u.tasks[1:]
		}
		return u, true, false
	}
	q.current.Store(nil)
	if len(q.batches) == 0 {
		return unit{}, false, false
	}
	b := q.batches[0]
	if q.mode == sdk.ModeBatch {
		if b.ordered() && q.ordered {
			return unit{}, false, false
		}
		q.ordered = q.ordered || b.ordered()
		q.batches = q.batches[1:]
		return unit{batch: b}, true, false
	}
	q.batches = q.batches[1:]
	q.current.Store(b)
	return unit{}, false, true
}

// giveBack ends the turn of a strand. After a failure the records that wait in it are returned: they must not overtake.
func (q *queue) giveBack(s *strand, failed bool) (rest []*task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if failed {
		rest, s.tasks = s.tasks, nil
	}
	if len(s.tasks) > 0 {
		q.ready = append(q.ready, s)
	} else {
		delete(q.strands, s.number)
	}
	return rest
}

// batchDone ends the turn of a batch in batch mode.
func (q *queue) batchDone(b *batch) {
	if !b.ordered() {
		return
	}
	q.mu.Lock()
	q.ordered = false
	q.mu.Unlock()
}

// more tells whether another worker would find something to do.
func (q *queue) more() bool {
	if b := q.current.Load(); b != nil && int(b.next.Load()) < len(b.tasks) {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ready) > 0 || (len(q.batches) > 0 && (!q.ordered || !q.batches[0].ordered()))
}

// clear takes everything that nobody has in hand.
func (q *queue) clear() (tasks []*task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest := q.batches
	q.batches = nil
	if b := q.current.Load(); b != nil {
		rest = append(rest, b)
	}
	for _, b := range rest {
		waiting := b.takeRest()
		for i := range waiting {
			tasks = append(tasks, &waiting[i])
		}
	}
	for _, s := range q.ready {
		tasks = append(tasks, s.tasks...)
		s.tasks = nil
		delete(q.strands, s.number)
	}
	q.ready = nil
	for _, s := range q.strands { // in somebody's hands
		tasks = append(tasks, s.tasks...)
		s.tasks = nil
	}
	return tasks
}
