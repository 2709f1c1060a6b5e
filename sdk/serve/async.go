package serve

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/streamd/streamd/sdk"
)

// asyncTable holds the records that an AsyncHandler has taken and not answered.
type asyncTable struct {
	mu    sync.Mutex
	tasks map[*task]struct{}
	free  []int // slots of the shared page
	slots int
}

func (a *asyncTable) init(slots int) {
	a.tasks, a.slots = make(map[*task]struct{}), slots
	for i := slots - 1; i >= 0; i-- {
		a.free = append(a.free, i)
	}
}

func (a *asyncTable) add(t *task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tasks[t] = struct{}{}
	t.slot = a.slots // none left: the page counts it as running without a slot
	if n := len(a.free); n > 0 {
		t.slot, a.free = a.free[n-1], a.free[:n-1]
	}
}

func (a *asyncTable) remove(t *task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tasks, t)
	if t.slot < a.slots {
		a.free = append(a.free, t.slot)
	}
}

func (a *asyncTable) snapshot() []*task {
	a.mu.Lock()
	defer a.mu.Unlock()
	tasks := make([]*task, 0, len(a.tasks))
	for t := range a.tasks {
		tasks = append(tasks, t)
	}
	return tasks
}

// runAsync hands a record over; its strand's turn ends when the author calls done.
func (l *lane) runAsync(t *task, s *strand) {
	t.begun.Store(l.now())
	l.async.add(t) // first, as in runOne
	if l.unwanted(t) {
		l.async.remove(t)
		l.giveBack(t)
		l.touch()
		if s != nil {
			l.endTurn(s, true)
		}
		return
	}
	l.row.Mark(t.slot, t.batch.Seq, uint32(t.index), 1)
	var answered atomic.Bool
	done := func(err error) {
		if !answered.CompareAndSwap(false, true) {
			l.logger.ErrorContext(t, "done was called twice for one message; the first call counts", "msg_id", t.batch.messages[t.index].ID())
			return
		}
		l.row.Clear(t.slot, 1)
		l.async.remove(t)
		t.end(errAnswered)
		acked := l.settle(t, err)
		l.touch()
		if s != nil {
			l.endTurn(s, !acked || t.withdrawn.Load()) // as in runStrand
		}
	}
	if err := l.callAsync(t, done); err != nil && !answered.Load() {
		done(err)
	}
	if !answered.Load() && (l.draining.Load() || t.withdrawn.Load()) { // the Flush of that may have looked before it was buffered
		l.instance.work.Go(func() { l.flushAsync(l.ctx) })
	}
}

func (l *lane) callAsync(t *task, done func(error)) (err error) {
	defer l.recovered(t, &err)
	l.instance.asyncHandler.HandleAsync(t, &t.batch.messages[t.index], done)
	return nil
}

// flushAsync asks an AsyncHandler to answer what it has buffered.
func (l *lane) flushAsync(ctx context.Context) {
	if l.instance.asyncHandler == nil {
		return
	}
	err := func() (err error) {
		defer l.recovered(ctx, &err)
		return l.instance.asyncHandler.Flush(ctx)
	}()
	if err != nil {
		l.logger.ErrorContext(ctx, "flushing", "error", err)
	}
}

// matchQueues selects the records of some queues.
func matchQueues(queues []sdk.Queue) func(*task) bool {
	return func(t *task) bool {
		r, i := &t.batch.Records, int(t.index)
		return slices.Contains(queues, sdk.Queue{Topic: r.TopicOf(i), Broker: r.BrokerOf(i), ID: int32(r.QueueIDOf(i))})
	}
}

// callRevoked tells the author that queues are gone.
func (l *lane) callRevoked(ctx context.Context, queues []sdk.Queue) {
	l.flushAsync(ctx)
	if l.instance.revoker == nil {
		return
	}
	err := func() (err error) {
		defer l.recovered(ctx, &err)
		return l.instance.revoker.Revoked(ctx, queues)
	}()
	if err != nil {
		l.logger.ErrorContext(ctx, "giving up queues", "queues", fmt.Sprint(queues), "error", err)
	}
}
