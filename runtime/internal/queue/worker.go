package queue

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Worker owns one queue from its acquisition to its release. Start it with Run; tell it what to do with Commit, Drain,
// Reset and Refresh, which never block and may be called from any goroutine.
type Worker struct {
	cfg     Config
	cmds    chan command
	kick    chan struct{}
	deaf    chan struct{} // closed when cmds is not read any more
	done    chan struct{}
	calls   sync.WaitGroup
	events  chan event
	answers chan *pulled // of pulls that no goroutine waits for; has room for the one there can be

	mu        sync.Mutex // guards own and published for readers; only the loop writes them
	own       *Ownership
	published Status
	locks     []Lock // told and not read yet

	// Below: the loop's alone.
	phase       Phase
	epoch       uint64
	callCtx     context.Context //nolint:containedctx // the life of the calls that the loop sends out, ended by the loop
	endCalls    context.CancelFunc
	pullStop    context.CancelFunc
	pulling     bool
	pullGivenUp bool // its answer will be thrown away
	pullStarted bool // its answer comes to answers
	pullWaits   bool // the next one goes the long way
	lostUntil   time.Time
	lostTail    bool // above the queue's end: what is at handlers is waited for, then the position is looked up by time
	looking     bool // a start position or a repair is being looked up
	asked       int  // start positions asked for
	lock        Lock
	resetTo     *int64 // a reset that no broker has confirmed yet
	taken       bool   // another client got the lock while the queue drained: it is not committed over
	resetWaits  bool   // the broker carries a reset: it is fetched by a pull, however full the window is
	committing  bool
	timer       *time.Timer

	notBefore   time.Time // of the next pull or look-up
	failures    int
	estimate    int64
	garbageAt   int64
	garbageSeen int
	lastRetry   string // RETRY_TOPIC of the last one,
	lastTopic   string // and the same without its namespace
	lastHost    *netip.AddrPort
	inflater    *wire.Inflater // made at the first compressed body

	committed    int64 // confirmed by the broker; -1 = none
	force        bool  // commit even if not higher
	commitNow    bool
	commitAfter  time.Time // not before: after a refusal
	lastCommit   time.Time
	settledAt    uint64 // settled count at the last commit
	settledSeen  uint64 // settled count when LastSettled was noted
	commitFails  int
	lastStore    int64 // greatest store time settled, over epochs
	drainUntil   time.Time
	commitUntil  time.Time
	past         []*Ownership // ordered epochs that ended while handlers had messages of them
	final        bool         // draining is over, the last commit is on its way
	left         int
	holder       string // of what is left: the message at the safe offset
	commitFailed error
}

type command struct {
	kind   commandKind
	offset int64
	cut    bool
}

type commandKind uint8

const (
	commandCommit commandKind = iota + 1
	commandDrain
	commandReset
	commandRefresh
	commandTryNow
)

// event is the end of a call that the loop sent out.
type event interface{ apply(w *Worker) }

// NewWorker makes a worker that does nothing until Run.
func NewWorker(cfg Config) *Worker {
	estimate := int64(firstEstimate)
	if cfg.Retry {
		estimate = 0 // mostly idle
	}
	return &Worker{
		cfg: cfg, cmds: make(chan command, 8), kick: make(chan struct{}, 1), deaf: make(chan struct{}), done: make(chan struct{}), events: make(chan event), answers: make(chan *pulled, 1),
		phase: PhaseStarting, epoch: cfg.Epoch, committed: -1, estimate: estimate, garbageAt: -1,
		published: Status{Phase: PhaseStarting, Epoch: cfg.Epoch, Committed: -1, Max: -1, Acquired: cfg.Now()},
	}
}

// firstEstimate is what the first pull of a queue reserves of the memory budgets. Later ones reserve the size of the last
// while more is known to be there, else nothing, so that many held pulls do not use up a budget. What really came is counted when it comes.
const firstEstimate = 16 << 10

// Commit asks for a commit now: the first half of a hand-over.
func (w *Worker) Commit() { w.send(command{kind: commandCommit}) }

// Drain ends the ownership: no more pulls, what is at handlers is waited for, the offset is committed and confirmed,
// then Released is called. With cut nothing is waited for but the commit.
func (w *Worker) Drain(cut bool) { w.send(command{kind: commandDrain, cut: cut}) }

// Reset begins a new epoch at offset: the window is dropped and the offset committed even if it is lower.
func (w *Worker) Reset(offset int64) { w.send(command{kind: commandReset, offset: offset}) }

// Refresh makes changed Settings felt at once.
func (w *Worker) Refresh() { w.send(command{kind: commandRefresh}) }

// TryNow ends the pauses after failures: what was refused or not answered is asked again at once.
func (w *Worker) TryNow() { w.send(command{kind: commandTryNow}) }

// Queue is the worker's queue.
func (w *Worker) Queue() sdk.Queue { return w.cfg.Queue }

// Done is closed when the worker has ended.
func (w *Worker) Done() <-chan struct{} { return w.done }

func (w *Worker) send(c command) {
	select {
	case w.cmds <- c:
	case <-w.deaf:
	}
}

// Run works until the queue is released or ctx ends. When ctx ends nothing more is committed: the second stage of a stop.
func (w *Worker) Run(ctx context.Context) {
	w.callCtx, w.endCalls = context.WithCancel(ctx)
	w.timer = time.NewTimer(time.Hour)
	if w.cfg.Locks != nil {
		w.setPhase(PhaseLocking)
		w.setHold(Hold{Kind: HoldLock, Text: "asks its broker for the queue's lock"})
		w.cfg.Locks.Want(w.cfg.Queue, w.tellLock)
	}
	for w.phase != PhaseReleased {
		w.readLocks()
		now, seen := w.cfg.Now(), w.settled()
		w.advance(now) //nolint:contextcheck // callCtx hangs below ctx
		if w.phase == PhaseReleased {
			break
		}
		w.arm(now, seen)
		select {
		case <-ctx.Done():
			w.abandon(ctx.Err())
		case c := <-w.cmds:
			w.command(c)
		case e := <-w.events:
			e.apply(w)
		case p := <-w.answers:
			p.apply(w)
		case <-w.kick:
		case <-w.timer.C:
		}
	}
	w.finish()
}

func (w *Worker) finish() {
	close(w.deaf) // nobody waits for what follows: the queue's broker may take its time to say that the lock is free
	w.timer.Stop()
	w.endCalls()
	w.endPull()
	go func() { // late answers of calls that were given up
		w.calls.Wait()
		close(w.events)
	}()
	for e := range w.events {
		if p, ok := e.(*pulled); ok {
			p.discard(w)
		}
	}
	w.leaveLock()
	w.setHold(Hold{})
	close(w.done)
	w.cfg.Released(w.report())
}

func (w *Worker) report() Report {
	r := Report{Queue: w.cfg.Queue, Epoch: w.epoch, Committed: w.committed, Safe: w.committed, Left: w.left, Holder: w.holder, Err: w.commitFailed}
	if w.own != nil {
		r.Safe, _ = w.own.fence()
	}
	if r.Safe == r.Committed && !w.force { // whatever failed since, it had nothing new to store
		r.Err = nil
	}
	r.Confirmed = r.Err == nil
	return r
}

// call runs f on its own goroutine; what it returns comes back as an event.
func (w *Worker) call(ctx context.Context, f func(ctx context.Context) event) {
	w.calls.Go(func() { w.events <- f(ctx) })
}

// abandon ends everything at once.
func (w *Worker) abandon(cause error) {
	w.commitFailed = cause
	w.cutOff()
	w.setPhase(PhaseReleased)
}

// cutOff gives up what is at handlers.
func (w *Worker) cutOff() {
	if w.own == nil {
		return
	}
	w.holder = w.own.facts(true).holder
	_, w.left = w.own.fence()
	w.cfg.Sink.Revoke(w.own, true)
}

func (w *Worker) command(c command) {
	switch c.kind {
	case commandCommit:
		w.commitNow = true
	case commandDrain:
		w.drain(c.cut)
	case commandReset:
		w.reset(c.offset)
	case commandRefresh:
		w.stopPull() // the next carries the new subscription
	case commandTryNow:
		w.tryNow()
	}
}

// tryNow ends pauses. A pull that waits for its connection goes on waiting: it is the first to get it.
func (w *Worker) tryNow() {
	if w.failures > 0 {
		w.failures, w.notBefore = 0, time.Time{}
	}
	if w.commitFails > 0 {
		w.commitFails, w.commitAfter = 0, time.Time{}
	}
}

func (w *Worker) drain(cut bool) {
	now := w.cfg.Now()
	if w.phase == PhaseLocking {
		w.disown()
	}
	if w.phase != PhaseDraining {
		w.setPhase(PhaseDraining)
		w.setHold(Hold{Kind: HoldDraining, Text: "drains for a hand-over", Since: now})
		w.stopPull()
		w.drainUntil = now.Add(w.cfg.Settings().DrainLimit)
		if w.own != nil {
			w.commitNow = true
			w.own.Close()
			w.cfg.Sink.Revoke(w.own, false)
		}
	}
	if cut {
		w.drainUntil = now
	}
}

// reset begins anew at offset. A queue that drains goes on draining: the new position is its last commit, for whoever
// takes the queue.
func (w *Worker) reset(offset int64) {
	w.count(func(n *Counters) { n.Resets++ })
	if w.phase == PhaseLocking {
		w.resetTo = &offset
		return
	}
	draining, hold := w.phase == PhaseDraining, w.hold()
	w.rebase(offset)
	if draining {
		w.own.Close()
		w.commitFails, w.commitFailed, w.commitAfter = 0, nil, time.Time{}
		w.setPhase(PhaseDraining)
		w.setHold(hold)
	}
}

// rebase begins a new epoch at offset. It is committed and confirmed before the next pull.
func (w *Worker) rebase(offset int64) {
	w.stopPull()
	w.looking, w.lostTail, w.resetWaits = false, false, false
	w.remember()
	if w.own != nil {
		w.own.fence()
		w.cfg.Sink.Revoke(w.own, true)
		w.epoch++
	}
	w.adopt(offset)
	w.force, w.resetTo = true, &offset
	w.setPhase(PhaseConfirming)
}

// adopt begins an epoch at offset.
func (w *Worker) adopt(offset int64) {
	own := NewOwnership(w.cfg.Queue, w.epoch, offset, w.cfg.Budget, w.kick)
	if own.Order = w.cfg.Order; w.cfg.Locks != nil {
		own.Extend(w.lock.Until)
	}
	w.outlive()
	w.mu.Lock()
	w.keepCounts()
	w.own = own
	w.mu.Unlock()
	w.settledAt, w.settledSeen, w.garbageAt, w.garbageSeen = 0, 0, -1, 0
	w.notBefore, w.failures = time.Time{}, 0
	w.setHold(Hold{})
}

// keepCounts keeps the counts of an ownership that ends; mu is held.
func (w *Worker) keepCounts() {
	if w.own != nil {
		f := w.own.facts(false)
		w.published.Counters.Settled += f.settled
		w.published.Counters.Late += f.late
	}
}

// remember keeps the store time of what was settled over the end of an epoch.
func (w *Worker) remember() int64 {
	if w.own != nil {
		w.lastStore = max(w.lastStore, w.own.facts(false).lastSettledMillis)
	}
	return w.lastStore
}

func (w *Worker) setPhase(p Phase) {
	w.phase = p
	w.mu.Lock()
	w.published.Phase = p
	w.mu.Unlock()
}

func (w *Worker) setHold(h Hold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.Kind == w.published.Hold.Kind {
		h.Since = w.published.Hold.Since
	} else if h.Held() && h.Since.IsZero() {
		h.Since = w.cfg.Now()
	}
	w.published.Hold = h
}

func (w *Worker) hold() Hold {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.published.Hold
}

func (w *Worker) count(f func(*Counters)) {
	w.mu.Lock()
	f(&w.published.Counters)
	w.mu.Unlock()
}
