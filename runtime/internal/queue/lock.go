package queue

import (
	"slices"
	"time"

	"github.com/streamd/streamd/sdk"
)

// Locks keeps the brokers' locks of ordered queues (consumer-semantics.md 6.1); runtime/internal/lease fills it.
type Locks interface {
	// Want asks for the lock of a queue and keeps it until Leave. tell hears of each change, on any goroutine; it does not block.
	Want(q sdk.Queue, tell func(Lock))
	// Leave gives the lock back when unlock is set, else lets it run out at the broker. It returns when the broker has said
	// so, after some seconds at most.
	Leave(q sdk.Queue, unlock bool)
}

// Lock is what is known of a queue's lock.
type Lock struct {
	Held  bool
	At    time.Time // Held: when it was last asked for with success
	Until time.Time // Held: nothing may start afterwards
	Text  string    // not held: why
	Taken bool      // not held: another client has it, and may have moved the queue's position
	// Member is the client id of the member that holds it; empty: it is not known.
	Member string
}

// tellLock is the worker's ear for its lock.
func (w *Worker) tellLock(l Lock) {
	w.mu.Lock()
	w.locks = append(w.locks, l)
	w.mu.Unlock()
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// readLocks acts on what was told of the lock, in order: one that was lost in between is another lock.
func (w *Worker) readLocks() {
	w.mu.Lock()
	told := w.locks
	w.locks = nil
	w.mu.Unlock()
	for i := range told {
		w.lock = told[i]
		w.mu.Lock()
		w.published.Lock = told[i]
		w.mu.Unlock()
		switch {
		case told[i].Held:
			w.locked()
		case w.phase == PhaseLocking:
			w.setHold(w.lockHold())
		default:
			w.unlocked()
		}
	}
}

func (w *Worker) lockHold() Hold {
	return Hold{Kind: HoldLock, Text: w.lock.Text, Member: w.lock.Member}
}

// locked begins, or goes on. The position is read anew after each time that the lock was not ours: somebody else may have
// had the queue meanwhile (consumer-semantics.md 3.2, check 8).
func (w *Worker) locked() {
	if w.phase != PhaseLocking {
		if w.own != nil && w.own.Extend(w.lock.Until) {
			w.cfg.Sink.Offer(w.own, nil)
		}
		return
	}
	w.setHold(Hold{})
	w.notBefore, w.failures = time.Time{}, 0
	w.disown() // should the queue go before its position is read, nothing of the earlier lock's is committed
	w.setPhase(PhaseStarting)
	if to := w.resetTo; to != nil {
		w.rebase(*to)
	}
}

// unlocked ends the epoch at once: handlers are canceled, and what they answer from now on changes nothing. The queue waits
// for its lock. One that drains is cut off. A reset that no broker has confirmed yet is done again under the next lock, unless
// another member had the queue meanwhile.
func (w *Worker) unlocked() {
	if w.phase == PhaseDraining {
		w.drainUntil = w.cfg.Now()
		w.taken = w.taken || w.lock.Taken
		return
	}
	if w.lock.Taken {
		w.resetTo = nil
	}
	w.cfg.Logger.Warn("the queue's lock is lost, its handlers are canceled", "queue", w.cfg.Queue.String(), "epoch", w.epoch, "why", w.lock.Text)
	w.stopPull()
	w.looking, w.lostTail, w.resetWaits, w.force, w.commitNow = false, false, false, false, false
	w.asked++ // what is being looked up is nobody's concern any more
	w.remember()
	if w.own != nil {
		w.own.fence()
		w.cfg.Sink.Revoke(w.own, true)
		w.epoch++
	}
	w.count(func(n *Counters) { n.LocksLost++ })
	w.setPhase(PhaseLocking)
	w.setHold(w.lockHold())
}

// disown forgets the ownership that ended with the lock: nothing of it is to be drained or committed.
func (w *Worker) disown() {
	w.outlive()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepCounts()
	w.own = nil
}

// outlive remembers the ownership that ends while handlers may have messages of it.
func (w *Worker) outlive() {
	w.past = slices.DeleteFunc(w.past, func(o *Ownership) bool { return !o.haunted() })
	if w.own != nil && w.own.Ordered() {
		w.past = append(w.past, w.own)
	}
}

// haunted tells that a handler may still have a message of the queue, of this epoch or an earlier one, that was given up.
func (w *Worker) haunted() bool {
	w.past = slices.DeleteFunc(w.past, func(o *Ownership) bool { return !o.haunted() })
	return len(w.past) > 0 || w.own != nil && w.own.Ordered() && w.own.haunted()
}

// leaveLock gives the lock back. While handlers may still have messages of the queue, those included that a reset, a deadline or a
// lost lock took from them, it runs out instead, so that nobody else starts before they are done: a handler's time ends
// before the broker's lock does.
func (w *Worker) leaveLock() {
	if w.cfg.Locks != nil {
		w.cfg.Locks.Leave(w.cfg.Queue, w.left == 0 && !w.haunted())
	}
}
