package queue

import (
	"errors"
	"fmt"
	"time"
)

// advance starts whatever may start now. It is the worker's transition table.
func (w *Worker) advance(now time.Time) {
	switch w.phase {
	case PhaseLocking:
	case PhaseStarting:
		if !w.looking && !now.Before(w.notBefore) {
			w.lookUpStart()
		}
	case PhaseConfirming:
		w.commitIfDue(now)
	case PhaseRunning:
		w.commitIfDue(now)
		w.pullIfRoom(now)
	case PhaseHeld:
		w.commitIfDue(now)
		w.lookForRelease(now)
	case PhaseDraining:
		w.advanceDrain(now)
	case PhaseReleased:
	}
}

func (w *Worker) pullIfRoom(now time.Time) {
	if w.pulling || w.looking || now.Before(w.notBefore) {
		return
	}
	if w.lostTail {
		if w.own.facts(false).active == 0 || !now.Before(w.lostUntil) {
			w.lookUpTime()
		}
		return
	}
	w.own.mu.Lock()
	h := w.own.window.Full(w.cfg.Settings().Limits)
	w.own.mu.Unlock()
	if h.Held() && !w.resetWaits {
		w.setHold(h)
		return
	}
	switch w.hold().Kind {
	case HoldWindowBytes, HoldWindowCount, HoldWindowSpan:
		w.setHold(Hold{})
	default:
	}
	w.pull()
}

// commitIfDue sends a commit when one is owed and none is on its way.
func (w *Worker) commitIfDue(now time.Time) {
	if w.committing || w.own == nil || w.resetWaits || now.Before(w.commitAfter) {
		return
	}
	s := w.cfg.Settings()
	f := w.own.facts(false)
	w.noteSettled(f.settled, now)
	owed := f.safe > w.committed || w.force
	due := w.force || w.commitNow || f.settled-w.settledAt >= s.CommitCount || now.Sub(w.lastCommit) >= w.commitPace()
	again := now.Sub(w.lastCommit) >= recommit && w.committed >= 0 && w.phase != PhaseHeld // not over what an operator stored
	if !owed && w.commitNow {
		w.commitNow = false
	}
	if owed && due || again {
		w.settledAt = f.settled
		w.commit(f.safe)
	}
}

// noteSettled keeps when something was settled last, for tools that look for queues that are stuck.
func (w *Worker) noteSettled(settled uint64, now time.Time) {
	if settled == w.settledSeen {
		return
	}
	w.settledSeen = settled
	w.mu.Lock()
	w.published.LastSettled = now
	w.mu.Unlock()
}

// recommit is how often an unchanged offset is stored again: a broker that restarts may have forgotten the last one.
const recommit = 30 * time.Second

// advanceDrain waits for what is at handlers, and for the pull that was given up, which may bring a reset; then for the last
// commit, then releases.
func (w *Worker) advanceDrain(now time.Time) {
	if w.own == nil {
		w.setPhase(PhaseReleased)
		return
	}
	f := w.own.facts(false)
	drained := f.active == 0 && !w.haunted() || !now.Before(w.drainUntil)
	if !w.final && drained && (!w.pulling || !now.Before(w.drainUntil.Add(givenUpLimit))) {
		w.final = true
		w.cutOff()
		w.commitUntil = now.Add(lastCommitLimit)
	}
	switch {
	case w.committing:
	case !w.final:
		w.commitIfDue(now)
	case w.resetWaits:
		w.leaveReset()
		w.setPhase(PhaseReleased)
	case w.taken && (f.safe != w.committed || w.force):
		w.commitFailed = fmt.Errorf("committing %s: %w", w.cfg.Queue, errTaken)
		w.setPhase(PhaseReleased)
	case f.safe == w.committed && !w.force: // stored once; that storing it again was refused leaves nothing undone
		w.setPhase(PhaseReleased)
	case !now.Before(w.commitUntil):
		w.setPhase(PhaseReleased)
	case !now.Before(w.commitAfter):
		w.commit(f.safe)
	}
}

// givenUpLimit is how long a drain that is over waits for the pull that was given up, which ends at once.
const givenUpLimit = time.Second

// errTaken ends a drain without its last commit.
var errTaken = errors.New("another client has got the queue's lock and may have moved its position; what was settled last is delivered again")

// lastCommitLimit is how long a release waits for a broker that does not confirm the last commit. What is not
// confirmed is reported, and delivered again to the next owner.
const lastCommitLimit = 10 * time.Second

// arm sets the timer to the next moment at which advance, which has looked at what was due by now, has something to do. What
// came due since is not passed over, nor what was settled since: seen was the settled count before.
func (w *Worker) arm(now time.Time, seen uint64) {
	next := now.Add(time.Hour)
	at := func(t time.Time) {
		if t.After(now) && t.Before(next) {
			next = t
		}
	}
	if !w.pulling && !w.looking {
		at(w.notBefore)
	}
	if w.lostTail {
		at(w.lostUntil)
	}
	at(w.drainUntil)
	at(w.drainUntil.Add(givenUpLimit))
	at(w.commitUntil)
	at(w.commitAfter)
	if w.own != nil {
		at(w.nextCommit())
		w.own.wakeAt(w.wake(), seen)
	}
	w.timer.Reset(next.Sub(w.cfg.Now()))
}

// settled is the present ownership's settled count.
func (w *Worker) settled() uint64 {
	if w.own == nil {
		return 0
	}
	return w.own.facts(false).settled
}

// wake is the settled count at which the loop must look again: at once when it waits for room, for the last answers or
// for something to commit, else when a commit by count is due.
func (w *Worker) wake() (settled uint64) {
	if w.phase != PhaseRunning || w.lostTail || !w.pulling || w.own.facts(false).safe == w.committed {
		return 0
	}
	return w.settledAt + w.cfg.Settings().CommitCount
}

// The pace of commits while messages are settled: what was settled since the last one is delivered again after a crash, so
// they go out often: all queues of a stream together send some 200 a second, and each at least what CommitEvery asks for.
const (
	quickCommit = 50 * time.Millisecond
	commitShare = 5 * time.Millisecond // for each queue that is owned
)

func (w *Worker) commitPace() time.Duration {
	owned := 1
	if w.cfg.Owned != nil {
		owned = w.cfg.Owned()
	}
	return min(w.cfg.Settings().CommitEvery, max(quickCommit, time.Duration(owned)*commitShare))
}

// nextCommit is when the next commit may be due: soon while something is owed.
func (w *Worker) nextCommit() time.Time {
	if w.own.facts(false).safe > w.committed {
		return w.lastCommit.Add(w.commitPace())
	}
	return w.lastCommit.Add(recommit)
}
