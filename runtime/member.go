package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/allocate"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/group"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/sdk"
)

// Queue is the one queue type.
type Queue = sdk.Queue

// member is this process as a member of a stream's group: it carries out what the group's core decides.
type member struct {
	s       *stream
	inputs  chan group.Input
	reloads chan struct{} // room for one: pending has changed
	stops   chan struct{}
	opened  chan struct{} // the strategy was opened, or could not be
	ended   chan struct{} // the loop reads inputs no more
	done    chan struct{}
	newness *newness
	views   *views
	manners *manners
	calls   sync.WaitGroup
	stopped sync.Once

	// The loop's alone.
	core    *group.Core
	absence *absence
	stopNow bool
	cancel  context.CancelFunc
	watched map[string]func() // stops of route watches, by topic

	round *round // of the round's goroutine: never two at once
	// The same goroutine's, and the poll's, of which there are never two either.
	absentTold map[string]string // by topic: what was last logged of members that do not subscribe to it
	seenViews  string            // what of the other members' subscriptions a round was asked for

	owned   atomic.Int64 // len(workers)
	unasked atomic.Bool  // told that access control forbids asking members

	mu        sync.Mutex // guards the rest; held for memory work only
	workers   map[Queue]*queue.Worker
	queues    []group.QueueState // as of the last step
	topics    map[string]Hold
	counts    group.Counters
	joined    bool
	waiting   Hold // why the group is not joined yet
	pending   change
	past      queue.Counters
	left      []queue.Report      // releases that were not clean
	ids       map[string][]string // of the group's members, as last listed for a topic
	digests   map[string]allocate.Digest
	assign    map[string]Assignment
	leaving   error
	overlaps  overlaps
	returning returning
	unlike    []Unlike
}

type change struct{ subscriptions, strategy, order bool }

func newMember(s *stream) *member {
	m := &member{
		s: s, inputs: make(chan group.Input, 16), reloads: make(chan struct{}, 1), stops: make(chan struct{}), opened: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{}),
		workers: map[Queue]*queue.Worker{}, topics: map[string]Hold{}, digests: map[string]allocate.Digest{}, assign: map[string]Assignment{}, ids: map[string][]string{},
		watched: map[string]func(){},
	}
	m.overlaps.told = map[Queue]uint64{}
	m.newness = &newness{s: s, fresh: map[Queue]time.Time{}}
	m.views, m.absentTold = newViews(), map[string]string{}
	m.manners = newManners(s.rt.Now)
	m.round = newRound(m)
	m.absence = newAbsence(m)
	return m
}

// stop begins to give up everything; done is closed at the end.
func (m *member) stop() { m.stopped.Do(func() { close(m.stops) }) }

// changed tells of a reload. It never blocks: the loop may not run yet, for as long as the group cannot be joined.
func (m *member) changed(subscriptions, strategy bool) {
	m.mu.Lock()
	m.pending.subscriptions = m.pending.subscriptions || subscriptions
	m.pending.strategy = m.pending.strategy || strategy
	m.mu.Unlock()
	select {
	case m.reloads <- struct{}{}:
	default:
	}
}

func (m *member) takePending() change {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.pending
	m.pending = change{}
	return c
}

// send gives the loop an input; after its end nobody cares. The member waits for those who send before it is done, so
// they must not wait for that.
func (m *member) send(in group.Input) {
	select {
	case m.inputs <- in:
	case <-m.ended:
	case <-m.done:
	}
}

// The pauses between tries to join.
const (
	firstJoinPause = 200 * time.Millisecond
	longJoinPause  = 5 * time.Second
	joinLimit      = 15 * time.Second
	leaveLimit     = 5 * time.Second
	// strategyFirst is how long joining waits for the strategy's process: from the moment a group knows a new member the
	// others let go of its share, and nobody handles that before the member can compute it.
	strategyFirst = 2 * time.Second
)

// run is the member's goroutine. The first outcome of joining goes to joined: nil also when it goes on trying.
func (m *member) run(ctx context.Context, joined chan<- error) {
	defer close(m.done)
	ctx, m.cancel = context.WithCancel(ctx)
	defer m.cancel()
	m.openStrategy(ctx)
	if !m.join(ctx, joined) {
		m.cancel()
		m.calls.Wait()
		m.round.close()
		return
	}
	m.loop(ctx)
	close(m.ended)
	m.unwatch(nil)
	m.cancel()
	m.calls.Wait()
	m.leave()       //nolint:contextcheck // also after the second stage of a stop
	m.round.close() // after the leave: the others wait for the queues, nobody for the strategy's process
}

// openStrategy begins to open the strategy and waits for it, but not for long: the first round goes on waiting.
func (m *member) openStrategy(ctx context.Context) {
	if m.s.config().Broadcasting {
		close(m.opened) // nothing is divided
		return
	}
	m.calls.Go(func() {
		defer close(m.opened)
		m.round.open(ctx)
	})
	limit := time.NewTimer(strategyFirst)
	defer limit.Stop()
	select {
	case <-m.opened:
	case <-limit.C:
	case <-m.stops:
	case <-ctx.Done():
	}
}

// join tries until the group is joined, a stop comes, or no waiting can mend what is wrong.
func (m *member) join(ctx context.Context, joined chan<- error) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-m.stops:
			cancel()
		case <-ctx.Done():
		}
	}()
	for failures := 0; ; failures++ {
		err := m.tryJoin(ctx)
		if err == nil || failures == 0 {
			_, refused := rocketmq.AccessRefused(err) // a grant or a corrected account may come at any time
			if rocketmq.IsFatal(err) && !refused || errors.Is(err, rocketmq.ErrDuplicateGroup) {
				joined <- err
				return false
			}
			joined <- nil
		}
		m.mu.Lock()
		m.joined, m.waiting = err == nil, Hold{}
		if err != nil {
			m.waiting = Hold{Kind: joinHold(err), Text: err.Error(), Since: m.s.rt.Now()}
		}
		m.mu.Unlock()
		if err == nil {
			return true
		}
		if failures%10 == 0 {
			m.s.log.Warn("the group is not joined yet, trying again", "error", err.Error())
		}
		if !m.pause(ctx, failures) {
			return false
		}
	}
}

func (m *member) tryJoin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	c := m.s.config()
	if err := m.s.checkFilters(ctx, c); err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	m.lookAtRegistered(ctx, c)
	if err := m.s.broker.Join(ctx, m.spec()); err != nil {
		return fmt.Errorf("joining: %w", err)
	}
	return nil
}

// joinHold is the kind of what keeps a member out of its group.
func joinHold(err error) HoldKind {
	if _, refused := errors.AsType[*rocketmq.FilterError](err); refused {
		return queue.HoldFilter
	}
	if _, denied := rocketmq.AccessRefused(err); denied {
		return queue.HoldAccess
	}
	return queue.HoldBroker
}

func (m *member) pause(ctx context.Context, failures int) bool {
	d := firstJoinPause
	for range min(failures, 10) {
		d *= 2
	}
	d = min(d, longJoinPause)
	t := time.NewTimer(d/2 + time.Duration(m.s.rt.Rand()*float64(d)/2))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (m *member) leave() {
	if err := m.tellLeave(context.Background()); err != nil {
		m.s.log.Warn("brokers were not told that the member leaves", "error", err.Error())
		m.mu.Lock()
		m.leaving = err
		m.mu.Unlock()
	}
}

func (m *member) loop(ctx context.Context) {
	m.core = group.NewCore(m.s.rt.Now(), m.s.rt.Rand, 0)
	m.watch()
	timer := time.NewTimer(0)
	defer timer.Stop()
	stops := m.stops
	in := group.Input{}
	for {
		m.step(ctx, in)
		if (m.stopNow || ctx.Err() != nil) && m.core.Empty() {
			return
		}
		if !m.stopNow {
			if in = m.absence.look(ctx); in.Kind != group.InTick {
				continue
			}
		}
		timer.Reset(m.sleep())
		in = group.Input{}
		select {
		case in = <-m.inputs:
		case err := <-m.absence.calls:
			in = m.absence.came(err)
		case <-m.reloads:
			in = m.change(ctx, m.takePending())
		case <-stops:
			stops, m.stopNow = nil, true
			m.mu.Lock()
			m.left = nil // The log said it then; the stop answers for what it brings to its end.
			m.mu.Unlock()
			in.Kind = group.InStop
		case <-ctx.Done():
			m.drainCut(ctx)
			return
		case <-timer.C:
		}
	}
}

// sleep is how long nothing has to be done unless something happens.
func (m *member) sleep() time.Duration {
	now := m.s.rt.Now()
	next := m.core.Next()
	if next.IsZero() {
		next = now.Add(time.Hour)
	}
	if at := m.absence.next; !m.stopNow && at.Before(next) && (m.absence.phase == present || m.absence.phase == away) {
		next = at
	}
	return max(0, next.Sub(now))
}

// drainCut waits for workers that end because their context did, and takes their reports.
func (m *member) drainCut(ctx context.Context) {
	m.step(ctx, group.Input{Kind: group.InStop})
	for !m.core.Empty() {
		m.step(ctx, <-m.inputs)
	}
}

func (m *member) step(ctx context.Context, in group.Input) {
	actions := m.core.Step(m.s.rt.Now(), in)
	m.publish()
	for i := range actions {
		m.do(ctx, actions[i])
	}
}

// publish makes the state readable for status and for other members, before anything is done about it.
func (m *member) publish() {
	queues, holds, counts := m.core.Queues(), m.core.Holds(), m.core.Counters()
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.s.rt.Now()
	for topic, h := range holds {
		if old, ok := m.topics[topic]; ok && old.Kind == h.Kind {
			h.Since = old.Since
		} else {
			h.Since = now
		}
		holds[topic] = h
	}
	m.queues, m.topics, m.counts = queues, holds, counts
}

func (m *member) do(ctx context.Context, a group.Action) {
	switch a.Kind {
	case group.ActRound:
		m.calls.Go(func() {
			<-m.opened // ends with the limit of opening
			part := func(topics []group.Topic) { m.send(group.Input{Kind: group.InPart, Topics: topics}) }
			m.send(group.Input{Kind: group.InRound, Topics: m.round.run(ctx, part)})
			m.round.poll(ctx)
		})
	case group.ActHurry:
		m.round.sooner()
	case group.ActAskPeers:
		qs := slices.Clone(a.Queues)
		m.calls.Go(func() { m.send(group.Input{Kind: group.InPeers, Holders: m.holders(ctx, qs)}) })
	case group.ActAcquire:
		m.acquire(ctx, a.Queue, a.Epoch)
	case group.ActDrain:
		if w := m.worker(a.Queue); w != nil {
			m.s.log.Info("queue revoked, draining", "queue", a.Queue.String(), "epoch", a.Epoch)
			w.Drain(false)
		}
	case group.ActCommit:
		for _, w := range m.allWorkers() {
			w.Commit()
		}
	}
}

func (m *member) worker(q Queue) *queue.Worker {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.workers[q]
}

func (m *member) allWorkers() []*queue.Worker {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.workers))
}

func (m *member) acquire(ctx context.Context, q Queue, epoch uint64) {
	m.s.log.Info("queue assigned", "queue", q.String(), "epoch", epoch)
	var w *queue.Worker
	w = queue.NewWorker(m.s.queueConfig(q, epoch, func(r queue.Report) { m.released(w, r) }))
	m.mu.Lock()
	m.workers[q] = w
	m.owned.Store(int64(len(m.workers)))
	m.mu.Unlock()
	m.calls.Go(func() { w.Run(ctx) })
}

// released runs on the worker's goroutine, as its last act.
func (m *member) released(w *queue.Worker, r queue.Report) {
	counts := w.Status().Counters
	m.mu.Lock()
	m.past.Add(counts)
	delete(m.workers, r.Queue)
	m.owned.Store(int64(len(m.workers)))
	if r.Left > 0 || !r.Confirmed {
		m.left = append(m.left, r)
	}
	m.mu.Unlock()
	if r.Confirmed {
		m.s.log.Info("queue released", "queue", r.Queue.String(), "epoch", r.Epoch, "committed", r.Committed, "left", r.Left)
	} else {
		m.s.log.Warn("queue released without a confirmed commit; its last messages will come again", "queue", r.Queue.String(), "safe", r.Safe, "committed", r.Committed, "left", r.Left, "error", r.Err.Error())
	}
	m.inputs <- group.Input{Kind: group.InReleased, Queue: r.Queue} // the loop runs until every queue is released
}

// reset begins a queue anew at offset; false when it is not owned here.
func (m *member) reset(q Queue, offset int64) bool {
	w := m.worker(q)
	if w != nil {
		w.Reset(offset)
	}
	return w != nil
}

// change acts on a reload: membership stays.
func (m *member) change(ctx context.Context, c change) group.Input {
	if c.strategy {
		m.round.replaceStrategy()
	}
	if c.subscriptions {
		m.watch()
		m.calls.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, joinLimit)
			defer cancel()
			if err := m.s.broker.Heartbeat(ctx); err != nil {
				m.s.log.Warn("brokers were not told of the changed subscriptions; the next heartbeat tells them", "error", err.Error())
			}
		})
	}
	for _, w := range m.allWorkers() {
		w.Refresh()
	}
	if c.order {
		return group.Input{Kind: group.InRestart}
	}
	if c.subscriptions || c.strategy {
		return group.Input{Kind: group.InReload}
	}
	return group.Input{}
}

// watch follows the routes of the present topics.
func (m *member) watch() {
	wanted := map[string]bool{}
	c := m.s.config()
	for _, sub := range c.Subscriptions {
		wanted[sub.Topic] = true
	}
	if !c.Broadcasting {
		wanted[wire.RetryTopic(c.Group)] = true
	}
	m.unwatch(wanted)
	for topic := range wanted {
		if m.watched[topic] == nil {
			m.watched[topic] = m.s.broker.RouteChanged(topic, func() { m.send(group.Input{Kind: group.InChange}) })
		}
	}
}

func (m *member) unwatch(wanted map[string]bool) {
	for topic, stop := range m.watched {
		if !wanted[topic] {
			stop()
			delete(m.watched, topic)
		}
	}
}

// leftover is what a stop could not bring to its end.
func (m *member) leftover() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, r := range m.left {
		if r.Left > 0 {
			errs = append(errs, fmt.Errorf("%s of group %s: %d messages were not settled in time by handler %s and will be delivered again from offset %d, message %s",
				r.Queue, m.s.config().Group, r.Left, m.s.config().Handler, r.Safe, r.Holder))
		}
		if !r.Confirmed {
			errs = append(errs, fmt.Errorf("%s: offset %d is not confirmed by the broker, which has %d: %w", r.Queue, r.Safe, r.Committed, r.Err))
		}
	}
	return errors.Join(errs...)
}
