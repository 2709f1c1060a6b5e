package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// callLimit bounds one question to a broker.
const callLimit = 5 * time.Second

// The pauses after failed calls: exponential with jitter.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
	flowPause  = 20 * time.Millisecond // 215, as Java's client (consumer-semantics.md 3.4)
)

func pause(failures int) time.Duration {
	d := firstPause
	for range min(failures, 10) {
		d *= 2
	}
	return min(d, longPause)
}

// started is the answer to lookUpStart.
type started struct {
	asked  int
	action StartAction
	offset int64
	err    error
}

func (w *Worker) lookUpStart() {
	w.looking = true
	w.asked++
	asked := w.asked
	from := w.cfg.Settings().From
	w.call(w.callCtx, func(ctx context.Context) event {
		ctx, cancel := context.WithTimeout(ctx, 4*callLimit)
		defer cancel()
		s := started{asked: asked}
		s.action, s.offset, s.err = w.askStart(ctx, from)
		return s
	})
}

func (w *Worker) askStart(ctx context.Context, from From) (StartAction, int64, error) {
	q, b := w.cfg.Queue, w.cfg.Broker
	f := StartFacts{Retry: w.cfg.Retry, From: from, Own: w.cfg.Own}
	var err error
	if f.Stored, f.HasStored, err = b.Committed(ctx, w.cfg.Group, q); err != nil {
		return 0, 0, fmt.Errorf("asking for the committed offset of %s: %w", q, err)
	}
	if !f.HasStored && !f.Retry {
		if f.OthersHaveOffsets, err = w.cfg.Newness.OthersHaveOffsets(ctx, q); err != nil {
			return 0, 0, fmt.Errorf("asking for the group's offsets of %s: %w", q.Topic, err)
		}
		if f.Min, err = b.MinOffset(ctx, q); err != nil {
			return 0, 0, fmt.Errorf("asking for the first offset of %s: %w", q, err)
		}
	}
	action, offset := DecideStart(f)
	switch action {
	case StartAtMax:
		action = StartFresh
		offset, err = b.MaxOffset(ctx, q)
	case StartAtTime:
		action = StartFresh
		offset, err = b.OffsetAt(ctx, q, from.At)
	default:
	}
	if err != nil {
		return 0, 0, fmt.Errorf("asking for the start position of %s: %w", q, err)
	}
	return action, offset, nil
}

func (s started) apply(w *Worker) {
	if w.phase != PhaseStarting || s.asked != w.asked {
		return // a reset, a drain or the loss of the lock came first
	}
	w.looking = false
	switch {
	case s.err != nil:
		w.failed(HoldStartUnknown, s.err)
	case s.action == StartHold:
		w.setPhase(PhaseHeld)
		w.setHold(Hold{Kind: HoldOffsetsLost, Text: fmt.Sprintf("group %s has no offset for %s but has some for other queues of the topic, and the queue's first messages are gone: "+
			"choose a position with streamd group release %s --at min|max|OFFSET|TIME, or by a reset of the group there, such as mqadmin resetOffsetByTime, which moves the topic's other queues too "+
			"and which a broker before 5.2 refuses for a group without an offset of every queue", w.cfg.Group, w.cfg.Queue, w.cfg.Group)})
	case s.action == StartAt:
		w.committed = s.offset
		w.lastCommit = w.cfg.Now()
		w.adopt(s.offset)
		w.publishCommitted()
		w.setPhase(PhaseRunning)
	default:
		if s.action == StartLate {
			w.cfg.Logger.Error("messages expired before they were read", "queue", w.cfg.Queue.String(), "min", s.offset, "expired", s.offset)
			w.count(func(n *Counters) { n.Expired += uint64(s.offset) }) //nolint:gosec // an offset of a broker
		}
		w.adopt(s.offset)
		w.force = true
		w.setPhase(PhaseConfirming)
	}
}

// choose tells people how to choose a position.
func (c *Config) choose() string {
	if c.Own {
		return "stop this member, move its offset file and the backup away, choose a start_from, and start it (docs/broadcasting.md)"
	}
	return fmt.Sprintf("choose a position with streamd group release %s --at min|max|OFFSET|TIME, or by a reset of the group there, such as mqadmin resetOffsetByTime", c.Group)
}

// failed notes a failed call and sets the pause before the next.
func (w *Worker) failed(kind HoldKind, err error) {
	kind, text := explain(kind, err, w.cfg.Group)
	w.failures++
	d := w.cfg.jitter(pause(w.failures))
	var refused *rocketmq.ResponseError
	if errors.As(err, &refused) && refused.Code == wire.RespFlowControl {
		d = flowPause
	}
	w.notBefore = w.cfg.Now().Add(d)
	w.setHold(Hold{Kind: kind, Text: text})
	switch {
	case w.failures != 1 && w.failures%10 != 0:
	case kind == HoldGroupDisabled:
		w.cfg.Logger.Info("queue is paused: the group's consumption is switched off", "queue", w.cfg.Queue.String(), "broker", w.cfg.Queue.Broker)
	default:
		w.cfg.Logger.Warn("queue waits for its broker", "queue", w.cfg.Queue.String(), "error", err.Error(), "failures", w.failures)
	}
}

// commitDone is the answer to a commit.
type commitDone struct {
	offset int64
	epoch  uint64
	reset  bool
	err    error
}

func (w *Worker) commit(offset int64) {
	w.committing, w.commitNow = true, false
	epoch := w.epoch
	w.call(w.callCtx, func(ctx context.Context) event {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		c := commitDone{offset: offset, epoch: epoch}
		c.reset, c.err = w.cfg.Broker.Commit(ctx, w.cfg.Group, w.cfg.Queue, offset)
		return c
	})
}

func (c commitDone) apply(w *Worker) {
	w.committing = false
	now := w.cfg.Now()
	w.lastCommit = now
	if c.epoch != w.epoch {
		return // a reset came meanwhile; its own commit is owed
	}
	if c.err != nil {
		w.commitRefused(c.err, now)
		return
	}
	w.commitFails, w.commitFailed, w.commitAfter = 0, nil, time.Time{}
	switch w.hold().Kind {
	case HoldCommit, HoldAccess, HoldGroupMissing:
		w.setHold(Hold{})
	default:
	}
	if c.reset {
		w.meetReset(now)
		return
	}
	w.force, w.resetTo = false, nil
	w.committed = c.offset
	w.publishCommitted()
	w.count(func(n *Counters) { n.Commits++ })
	if w.phase == PhaseConfirming {
		w.setPhase(PhaseRunning)
	}
}

func (w *Worker) commitRefused(err error, now time.Time) {
	w.commitFails++
	w.commitFailed = fmt.Errorf("committing %s: %w", w.cfg.Queue, err)
	w.commitAfter = now.Add(w.cfg.jitter(pause(w.commitFails)))
	w.count(func(n *Counters) { n.CommitErrors++ })
	if w.phase == PhaseConfirming || w.commitFails > 2 && !w.refused() {
		kind, text := explain(HoldCommit, w.commitFailed, w.cfg.Group)
		w.setHold(Hold{Kind: kind, Text: text})
	}
	if w.commitFails == 1 || w.commitFails%10 == 0 {
		w.cfg.Logger.Warn("commit not confirmed, it is tried again", "queue", w.cfg.Queue.String(), "error", err.Error())
	}
}

// refused tells that the queue's hold says already that its broker does not serve it.
func (w *Worker) refused() bool {
	switch w.hold().Kind {
	case HoldBroker, HoldAccess, HoldGroupMissing, HoldGroupDisabled:
		return true
	default:
		return false
	}
}

// meetReset: the broker ignored the commit because a reset waits to be picked up (consumer-semantics.md 7.2). A running
// queue meets it at its next pull, which is sent at once, whatever the window holds; one that has no position yet, or is held until
// somebody chooses one, asks again, and gets the reset's; a draining one leaves it to the next owner.
func (w *Worker) meetReset(now time.Time) {
	switch w.phase {
	case PhaseConfirming, PhaseHeld:
		w.looking = false
		w.remember()
		w.own.fence()
		w.cfg.Sink.Revoke(w.own, true)
		w.epoch++
		w.force, w.resetTo = false, nil
		w.notBefore = now.Add(flowPause)
		w.setPhase(PhaseStarting)
	case PhaseDraining:
		w.leaveReset()
	default:
		w.resetWaits = true
		w.stopPull() // one that is held is not woken by a reset (vectors/README.md 5.13)
		w.commitAfter = now.Add(w.cfg.Settings().CommitEvery)
	}
}

// leaveReset leaves a reset to the next owner: nothing is committed over the position that the broker keeps.
func (w *Worker) leaveReset() {
	w.force, w.resetWaits = false, false
	w.committed = w.own.facts(false).safe
}

// lookForReset asks for the stored offset when a pull did not bring the reset that had waited for it: its answer was lost, or it
// went to a replica. The broker tells a reset once, but keeps its position while nothing is committed over it
// (ConsumerOffsetManager.assignResetOffset); so nothing is, from the refused commit until this is answered.
func (w *Worker) lookForReset() {
	w.looking, w.resetWaits = true, true
	epoch := w.epoch
	w.call(w.callCtx, func(ctx context.Context) event {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		r := resetKept{epoch: epoch}
		r.offset, r.stored, r.err = w.cfg.Broker.Committed(ctx, w.cfg.Group, w.cfg.Queue)
		return r
	})
}

// resetKept is the answer to lookForReset.
type resetKept struct {
	epoch  uint64
	offset int64
	stored bool
	err    error
}

func (r resetKept) apply(w *Worker) {
	if w.phase != PhaseRunning || r.epoch != w.epoch {
		return
	}
	w.looking = false
	if r.err != nil {
		w.failed(HoldBroker, fmt.Errorf("asking for the offset to which %s was reset: %w", w.cfg.Queue, r.err)) // the next pull asks again
		return
	}
	w.resetWaits = false
	if r.stored && r.offset != w.committed {
		w.cfg.Logger.Info("offset reset; the broker's word of it was lost", "queue", w.cfg.Queue.String(), "to", r.offset)
		w.reset(r.offset)
	}
}

func (w *Worker) publishCommitted() {
	w.mu.Lock()
	w.published.Committed = w.committed
	w.mu.Unlock()
}

// repaired is the answer to a look-up by store time.
type repaired struct {
	epoch  uint64
	offset int64
	err    error
}

func (r repaired) apply(w *Worker) {
	if w.phase != PhaseRunning || r.epoch != w.epoch {
		return
	}
	w.looking = false
	if r.err != nil {
		w.failed(HoldStartUnknown, r.err) // it is tried again: nobody has to choose
		return
	}
	// The time is that of what was settled last, which may stand behind a message that is not settled even now.
	w.rebase(min(r.offset, w.own.facts(false).safe))
}

// repair acts on code 21: consumer-semantics.md 3.4 OFFSET_ILLEGAL, with design.md 7's rules.
func (w *Worker) repair(requested int64, res *rocketmq.PullResult) {
	f := RepairFacts{Requested: requested, Next: res.Next, Min: res.Min, Max: res.Max, Reset: res.Reset, LastSettledMillis: w.remember()}
	action, offset, expired := DecideRepair(f)
	log := w.cfg.Logger.With("queue", w.cfg.Queue.String(), "offset", requested, "min", res.Min, "max", res.Max)
	switch action {
	case RepairReset:
		log.Info("offset reset", "to", offset)
		w.reset(offset)
	case RepairExpired:
		log.Error("messages expired before they were read", "expired", expired)
		w.count(func(n *Counters) { n.Expired += uint64(expired) })
		w.skipTo(offset) // what is at handlers goes on, and holds the offset
	case RepairByTime:
		log.Warn("offset lies above the queue's end: its tail was lost or it was made anew; reading again from the time of the last settled message")
		w.lostTail = true
		w.lostUntil = w.cfg.Now().Add(w.cfg.Settings().DrainLimit)
	case RepairHold:
		w.setPhase(PhaseHeld)
		w.setHold(Hold{Kind: HoldOutOfRange, Text: fmt.Sprintf("committed offset %d of %s lies above the queue's end %d and no store time is known: %s",
			requested, w.cfg.Queue, res.Max, w.cfg.choose())})
		log.Error("offset lies above the queue's end; the queue is held until a position is chosen")
	}
}

// lookUpTime asks where to go on after a lost tail. What is at handlers is waited for: it may exist nowhere else now,
// and a verdict that comes after the end of its epoch would be dropped.
func (w *Worker) lookUpTime() {
	at := time.UnixMilli(w.remember()).Add(-w.cfg.Settings().Margin)
	w.looking = true
	epoch := w.epoch
	w.call(w.callCtx, func(ctx context.Context) event {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		r := repaired{epoch: epoch}
		r.offset, r.err = w.cfg.Broker.OffsetAt(ctx, w.cfg.Queue, at)
		if r.err != nil {
			r.err = fmt.Errorf("asking for the offset of %s at %s: %w", w.cfg.Queue, at.UTC().Format(time.RFC3339), r.err)
		}
		return r
	})
}
