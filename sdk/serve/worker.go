package serve

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/streamd/streamd/sdk"
)

// startedAfter is how long a record runs before the host hears of it.
const startedAfter = time.Second

// wakeOne has one more worker look for something to do. Only one is on its way at a time: it wakes the next when it finds
// work, so a handler that blocks gets all workers soon, and one that does not keeps them asleep.
func (l *lane) wakeOne() {
	if !l.waking.Load() && l.waking.CompareAndSwap(false, true) {
		kick(l.wake)
	}
}

// worker calls the author until the lane is over. slot is its place in the shared page.
func (l *lane) worker(slot int) {
	for {
		u, ok := l.queue.next()
		if !ok {
			if l.dirty.Load() {
				l.flush() // nobody will add to it soon
			}
			select {
			case <-l.over:
				return
			case <-l.wake:
				l.waking.Store(false)
			}
			continue
		}
		l.remind() // of the record before: this one may take long
		if !l.waking.Load() && l.queue.more() {
			l.wakeOne()
		}
		switch {
		case u.batch != nil:
			l.runBatch(slot, u.batch)
		case u.strand != nil && l.instance.spec.Mode == sdk.ModeAsync:
			l.runAsync(u.tasks[0], u.strand)
		case u.strand != nil:
			l.runStrand(slot, u.strand, u.tasks)
		case l.instance.spec.Mode == sdk.ModeAsync:
			l.runAsync(u.task, nil)
		default:
			l.runOne(slot, u.task)
		}
	}
}

// runOne handles one record and tells whether it was acknowledged.
func (l *lane) runOne(slot int, t *task) bool {
	// First in the table, then the question: a withdrawal marks first and then looks into the table, so that one of the two
	// sees the other.
	t.begun.Store(l.now())
	l.running[slot].Store(t)
	if l.unwanted(t) {
		l.running[slot].Store(nil)
		l.giveBack(t)
		l.note()
		return false
	}
	l.row.Mark(slot, t.batch.Seq, uint32(t.index), 1)
	err := l.handle(t)
	l.row.Clear(slot, 1)
	l.running[slot].Store(nil)
	t.end(errAnswered)
	acked := l.settle(t, err)
	l.note()
	return acked
}

// unwanted tells whether a record must not start any more.
func (l *lane) unwanted(t *task) bool { return t.withdrawn.Load() || l.draining.Load() || l.ended() }

func (l *lane) ended() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// handle calls the author; a panic becomes a verdict.
func (l *lane) handle(t *task) (err error) {
	defer l.recovered(t, &err)
	return l.instance.handler.Handle(t, &t.batch.messages[t.index])
}

// recovered is deferred around the author's code.
func (l *lane) recovered(ctx context.Context, err *error) {
	if p := recover(); p != nil {
		l.logger.ErrorContext(ctx, "the handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		*err = sdk.WithClass(sdk.ClassPanic, fmt.Errorf("panic: %v", p))
	}
}

// runStrand handles records in order. After the first that is not acknowledged the rest is given back untouched, also what
// has arrived meanwhile: it must not overtake. One that the host has given up counts as not acknowledged, whatever the
// author says of it: it comes again.
func (l *lane) runStrand(slot int, s *strand, tasks []*task) {
	failed := false
	for i, t := range tasks {
		l.remind()
		if failed = !l.runOne(slot, t) || t.withdrawn.Load(); failed {
			l.giveBack(tasks[i+1:]...)
			break
		}
	}
	l.endTurn(s, failed)
}

// endTurn gives a strand back to the queue.
func (l *lane) endTurn(s *strand, failed bool) {
	l.giveBack(l.queue.giveBack(s, failed)...)
	l.touch() // an async handler's answer comes from any goroutine
	l.wakeOne()
}

// group is a batch in the hands of a BatchHandler. Its context is a task without a record.
type group struct {
	task
	tasks []*task
}

// runBatch hands a whole batch to the author.
func (l *lane) runBatch(slot int, b *batch) {
	defer l.queue.batchDone(b)
	g := &group{task: task{lane: l, batch: b, index: noRecord}}
	g.tasks = make([]*task, 0, len(b.tasks))
	messages := make([]*sdk.Message, 0, len(b.tasks))
	back := map[uint32]bool{}
	for i := range b.tasks {
		t := &b.tasks[i]
		strand := b.strand(t.index)
		if l.unwanted(t) || back[strand] { // what follows one that is given back must not overtake it
			l.giveBack(t)
			back[strand] = strand != 0
			continue
		}
		g.tasks = append(g.tasks, t)
		messages = append(messages, &b.messages[i])
	}
	if len(messages) > 0 {
		l.callBatch(slot, g, sdk.NewBatch(messages))
	}
	l.note()
}

func (l *lane) callBatch(slot int, g *group, batch *sdk.Batch) {
	now, n := l.now(), uint32(len(g.batch.tasks))
	g.begun.Store(now)
	for _, t := range g.tasks {
		t.begun.Store(now)
	}
	l.groups[slot].Store(g)
	l.endIfWithdrawn(g)
	if l.ended() {
		g.end(errLaneEnded)
	}
	l.row.Mark(slot, g.batch.Seq, 0, n)
	err := l.handleBatch(g, batch)
	l.row.Clear(slot, n)
	l.groups[slot].Store(nil)
	g.end(errAnswered)
	failed := map[uint32]bool{}
	for i, t := range g.tasks {
		strand := g.batch.strand(t.index)
		if failed[strand] {
			l.giveBack(t) // whatever the author says of it was out of order: it comes again after the one that failed
			continue
		}
		if !l.settle(t, batch.Result(i, err)) || t.withdrawn.Load() {
			failed[strand] = strand != 0
		}
	}
}

func (l *lane) handleBatch(g *group, batch *sdk.Batch) (err error) {
	defer l.recovered(g, &err)
	return l.instance.batchHandler.HandleBatch(g, batch)
}

// monitor ends contexts at their deadline and tells the host of records that run long. It sleeps while nothing is out.
func (l *lane) monitor() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if l.outstanding.Load() == 0 {
			select {
			case <-l.over:
				return
			case <-l.busy:
			}
		}
		timer.Reset(l.tick())
		select {
		case <-l.over:
			return
		case <-timer.C:
			l.watch(l.now())
		}
	}
}

// tick is how exact deadlines are kept: a fiftieth of the shortest one, between 2 and 100 ms.
func (l *lane) tick() time.Duration {
	l.tableMu.Lock()
	defer l.tableMu.Unlock()
	tick := 100 * time.Millisecond
	for _, b := range l.table {
		if b.Budget > 0 {
			tick = min(tick, max(b.Budget/50, 2*time.Millisecond))
		}
	}
	return tick
}

func (l *lane) watch(now int64) {
	for i := range l.running {
		if t := l.running[i].Load(); t != nil {
			l.watchTask(t, t, now)
		}
		if g := l.groups[i].Load(); g != nil {
			l.watchTask(&g.task, nil, now)
			for _, t := range g.tasks {
				l.watchTask(nil, t, now)
			}
		}
	}
	for _, t := range l.async.snapshot() {
		l.watchTask(t, t, now)
	}
}

// watchTask ends ctx when its time is up, and announces t when it runs for long.
func (l *lane) watchTask(ctx, t *task, now int64) {
	if ctx != nil && ctx.batch.Budget > 0 && now-ctx.begun.Load() > int64(ctx.batch.Budget) {
		ctx.end(context.DeadlineExceeded)
	}
	if t != nil && !t.announced && now-t.begun.Load() > int64(startedAfter) {
		t.announced = true
		l.sendMu.Lock()
		l.sendStarted(t)
		l.sendMu.Unlock()
	}
}

// withdraw takes records back that match. What has not started is answered untouched when its turn comes; the context of
// what runs ends. A batch in the hands of a BatchHandler ends when all its records are withdrawn.
func (l *lane) withdraw(match func(*task) bool) {
	for _, t := range l.recall(match) {
		if t.begun.Load() > 0 {
			t.end(errWithdrawn)
		}
	}
	for i := range l.groups {
		if g := l.groups[i].Load(); g != nil {
			l.endIfWithdrawn(g)
		}
	}
}

// recall marks records that match, so that none of them starts any more; what runs goes on. All are marked before a
// context can end: the worker that is freed by it must not start the next of them.
func (l *lane) recall(match func(*task) bool) (matched []*task) {
	l.tableMu.Lock()
	table := slices.Clone(l.table)
	l.tableMu.Unlock()
	for _, b := range table {
		for i := range b.tasks {
			if t := &b.tasks[i]; match(t) {
				t.withdrawn.Store(true)
				matched = append(matched, t)
			}
		}
	}
	return matched
}

func (*lane) endIfWithdrawn(g *group) {
	if !slices.ContainsFunc(g.tasks, func(t *task) bool { return !t.withdrawn.Load() }) {
		g.end(errWithdrawn)
	}
}

// withdrawAll ends every context because the lane is over.
func (l *lane) withdrawAll(cause error) {
	for i := range l.running {
		if t := l.running[i].Load(); t != nil {
			t.end(cause)
		}
		if g := l.groups[i].Load(); g != nil {
			g.end(cause)
		}
	}
	for _, t := range l.async.snapshot() {
		t.end(cause)
	}
}

// inHand counts the records that the author has.
func (l *lane) inHand() (n int) {
	for i := range l.running {
		if l.running[i].Load() != nil {
			n++
		}
		if g := l.groups[i].Load(); g != nil {
			n += len(g.tasks)
		}
	}
	return n + len(l.async.snapshot())
}
