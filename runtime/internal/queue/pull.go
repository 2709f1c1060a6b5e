package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
)

// pulled is the answer to a pull.
type pulled struct {
	own       *Ownership
	requested int64
	reserved  int64
	took      time.Duration
	res       *rocketmq.PullResult
	err       error
}

// pull sends the next pull. It waits for memory first, on the call's goroutine: in line with all other queues.
func (w *Worker) pull() {
	s := w.cfg.Settings()
	p := &pulled{own: w.own, requested: w.own.facts(false).next, reserved: w.estimate}
	req := &rocketmq.PullRequest{
		Group: w.cfg.Group, Queue: w.cfg.Queue, Offset: p.requested,
		MaxMessages: s.PullMessages, MaxBytes: s.PullBytes, Subscription: s.Subscription, Hold: s.PullHold,
	}
	if w.failures > 0 { // held for long, it would not tell that the broker takes it again
		req.Hold = min(req.Hold, probeHold)
	}
	w.pulling = true
	if w.startPull(req, p) {
		return
	}
	ctx, stop := context.WithCancel(w.callCtx)
	w.pullStop = stop
	w.call(ctx, func(ctx context.Context) event {
		if p.err = w.cfg.Budget.Acquire(ctx, p.reserved); p.err != nil {
			p.reserved = 0
			return p
		}
		began := w.cfg.Now()
		p.res, p.err = w.cfg.Broker.Pull(ctx, req)
		p.took = w.cfg.Now().Sub(began)
		return p
	})
}

// probeHold is the hold of a pull that follows a failure.
const probeHold = time.Second

// stopPull gives up the pull in flight. Its answer still comes, and the next pull waits for it: a queue never has two.
func (w *Worker) stopPull() {
	if w.pulling {
		w.pullGivenUp = true
		w.pullStop()
	}
}

// discard gives back what an answer holds that nobody wants.
func (p *pulled) discard(w *Worker) {
	w.cfg.Budget.Give(p.reserved)
	if p.res != nil {
		p.res.Release()
	}
}

func (p *pulled) apply(w *Worker) {
	stopped := w.pullGivenUp
	w.pulling, w.pullGivenUp, w.pullStarted = false, false, false
	w.pullStop()
	w.count(func(n *Counters) { n.Pulls++ })
	switch {
	case p.own == w.own && p.res != nil && p.res.Reset && (w.phase == PhaseRunning || w.phase == PhaseDraining):
		w.notePull(p.res)
		w.repair(p.requested, p.res) // also when it was given up: the broker tells it once
		p.discard(w)
	case stopped, p.own != w.own, w.phase != PhaseRunning:
		p.discard(w)
	case errors.Is(p.err, rocketmq.ErrPullAgain):
		p.discard(w)
		w.pullWaits = true
	case p.err != nil:
		p.discard(w)
		if !IsGroupDisabled(p.err) { // that is a pause
			w.count(func(n *Counters) { n.PullErrors++ })
		}
		w.failed(HoldBroker, p.err) // the client says from where it pulled
	default:
		missed := w.resetWaits
		w.notePull(p.res)
		w.take(p)
		if missed && w.own == p.own && w.phase == PhaseRunning {
			w.lookForReset()
		}
	}
}

func (w *Worker) notePull(res *rocketmq.PullResult) {
	w.failures, w.notBefore, w.resetWaits = 0, time.Time{}, false
	switch w.hold().Kind {
	case HoldBroker, HoldAccess, HoldOutOfRange, HoldStartUnknown, HoldGroupMissing, HoldGroupDisabled:
		w.setHold(Hold{})
	default:
	}
	w.mu.Lock()
	w.published.LastPull = w.cfg.Now()
	w.published.Max = res.Max
	w.mu.Unlock()
}

// replicaAlone tells of a replica's answer that only a master's word would make true, what is gone and where the queue ends: a
// replica that was set up late begins later, and one that lags ends sooner. It answers 20 with its own start, or 21 where
// offsetCheckInSlave is on (PullMessageProcessor).
func replicaAlone(p *pulled) bool {
	if p.res.Status == rocketmq.PullOffsetIllegal {
		return !p.res.Reset
	}
	return p.res.Min > p.requested
}

// take acts on an answer (consumer-semantics.md 3.4).
func (w *Worker) take(p *pulled) {
	if p.res.Broker.ID != 0 && replicaAlone(p) {
		p.discard(w)
		w.failed(HoldBroker, fmt.Errorf("pulling from %s: replica %s has %d to %d and says nothing of offset %d; the master is asked", w.cfg.Queue, p.res.Broker.Addr, p.res.Min, p.res.Max, p.requested))
		return
	}
	switch p.res.Status {
	case rocketmq.PullFound:
		w.admit(p)
		return
	case rocketmq.PullNoNew, rocketmq.PullNoMatch:
		w.estimate = 0
		w.skipTo(p.res.Next)
	case rocketmq.PullOffsetIllegal:
		w.repair(p.requested, p.res)
	default:
		w.failed(HoldBroker, fmt.Errorf("pulling from %s: the answer has an unknown status %d", w.cfg.Queue, p.res.Status))
	}
	p.discard(w)
}

// skipTo goes on from next when nothing was found below it. An answer that goes back is not followed.
func (w *Worker) skipTo(next int64) {
	w.own.mu.Lock()
	w.own.window.Admit(&Chunk{}, next, time.Time{})
	w.own.mu.Unlock()
}

// admit unpacks an answer into the window and offers it to the dispatcher.
func (w *Worker) admit(p *pulled) {
	own, res := w.own, p.res
	own.mu.Lock()
	c := own.pool.get()
	own.mu.Unlock()
	c.release = res.Release
	u := unpacker{w: w, c: c, expected: p.requested, tags: w.cfg.Settings().Tags}
	u.run(res.Body)
	next := max(res.Next, u.floor)
	if u.err != nil {
		next = u.expected
	}
	c.bytes = int64(len(res.Body)) + u.extra
	w.estimate = 0
	if res.Max > next { // more is there: the next pull brings about as much
		w.estimate = min(c.bytes, int64(w.cfg.Settings().PullBytes))
	}
	found := len(c.Deliveries)
	own.mu.Lock()
	own.window.Admit(c, next, w.cfg.Now())
	if found == 0 {
		c.bytes = 0
		c.free()
	}
	own.mu.Unlock()
	if found == 0 {
		w.cfg.Budget.Give(p.reserved)
	} else {
		w.cfg.Budget.Correct(c.bytes - p.reserved)
		w.cfg.Sink.Offer(own, c.Deliveries)
	}
	w.count(func(n *Counters) { n.Pulled += uint64(found); n.Filtered += uint64(u.filtered) })
	if w.cfg.Pulled != nil {
		w.cfg.Pulled(found, p.took)
	}
	w.noteGarbage(u.expected, u.err)
}

// noteGarbage holds the queue at a message that does not decode: it is fetched again, first soon, since a wire may
// garble once, then rarely, since a disk garbles for good. It is never skipped: the operator resets past it.
func (w *Worker) noteGarbage(at int64, err error) {
	if err == nil {
		w.garbageAt, w.garbageSeen = -1, 0
		if w.hold().Kind == HoldGarbage {
			w.setHold(Hold{})
		}
		return
	}
	if w.garbageAt != at {
		w.garbageAt, w.garbageSeen = at, 0
	}
	w.garbageSeen++
	w.count(func(n *Counters) { n.Garbage++ })
	d := w.cfg.jitter(pause(w.garbageSeen))
	if w.garbageSeen >= GarbageTries {
		d = GarbagePause
		w.setHold(Hold{Kind: HoldGarbage, Text: fmt.Sprintf("the message at offset %d of %s does not decode (%v): it is fetched again every %s; to pass it, reset the group to %d there",
			at, w.cfg.Queue, err, GarbagePause, at+1)})
	}
	w.notBefore = w.cfg.Now().Add(d)
	w.cfg.Logger.Warn("stored message does not decode, fetching it again", "queue", w.cfg.Queue.String(), "offset", at, "tries", w.garbageSeen, "error", err.Error())
}
