package queue

import (
	"time"

	"github.com/streamd/streamd/sdk"
)

// Phase is where a worker stands.
type Phase string

// The phases, in order; a lock that is lost leads back to PhaseLocking, PhaseConfirming and PhaseHeld return to PhaseRunning.
const (
	PhaseLocking    Phase = "locking"    // order: the broker's lock is asked for
	PhaseStarting   Phase = "starting"   // the start position is being looked up
	PhaseConfirming Phase = "confirming" // a new position is being committed before the first pull
	PhaseRunning    Phase = "running"
	PhaseHeld       Phase = "held" // the operator decides
	PhaseDraining   Phase = "draining"
	PhaseReleased   Phase = "released"
)

// Status is a reading of one owned queue.
type Status struct {
	Queue        sdk.Queue
	Epoch        uint64
	Phase        Phase
	Hold         Hold
	Committed    int64 // -1 = not known
	Safe         int64
	Next         int64
	Max          int64 // the queue's end as of the last pull; -1 = not known
	InFlight     int   // at handlers or being settled
	Messages     int   // in the window
	Bytes        int64
	Span         int64
	OldestStored time.Time // store time of the message that holds the offset; zero = none
	Holder       string    // its identity
	HolderOffset int64
	HolderSince  time.Time
	Acquired     time.Time
	LastPull     time.Time
	Lock         Lock      // of an ordered queue
	LastSettled  time.Time // to within a commit's pace
	Counters     Counters
}

// Counters count since the queue was acquired.
type Counters struct {
	Pulled, Filtered, Settled, Late uint64
	Pulls, PullErrors               uint64
	Commits, CommitErrors           uint64
	Expired                         uint64 // messages that the broker dropped before they were read
	Garbage                         uint64 // answers that did not decode
	Resets                          uint64
	LocksLost                       uint64 // times that an ordered queue's lock was lost while it was owned
}

// Add adds the counts of another queue, or of an earlier ownership.
func (c *Counters) Add(o Counters) {
	c.Pulled += o.Pulled
	c.Filtered += o.Filtered
	c.Settled += o.Settled
	c.Late += o.Late
	c.Pulls += o.Pulls
	c.PullErrors += o.PullErrors
	c.Commits += o.Commits
	c.CommitErrors += o.CommitErrors
	c.Expired += o.Expired
	c.Garbage += o.Garbage
	c.Resets += o.Resets
	c.LocksLost += o.LocksLost
}

// Status reads the worker's state; it may be called from any goroutine.
func (w *Worker) Status() Status {
	w.mu.Lock()
	own, s := w.own, w.published
	w.mu.Unlock()
	s.Queue = w.cfg.Queue
	s.Safe, s.Next = s.Committed, s.Committed
	if own != nil {
		w.readOwnership(own, &s)
	} else if s.Hold.Held() {
		s.Hold.For = w.cfg.Now().Sub(s.Hold.Since)
	}
	return s
}

func (w *Worker) readOwnership(own *Ownership, s *Status) {
	f := own.facts(true)
	s.Epoch = own.Epoch
	s.Safe, s.Next, s.Span, s.Bytes = f.safe, f.next, f.span, f.bytes
	s.Messages, s.InFlight = f.count, f.out
	s.Counters.Settled += f.settled
	s.Counters.Late += f.late
	if f.holder != "" {
		s.Holder, s.HolderOffset, s.HolderSince = f.holder, f.holderOffset, f.holderSince
		s.OldestStored = time.UnixMilli(f.holderStoreMillis)
	}
	if s.Hold.Kind == HoldWindowSpan {
		s.Hold.Message = f.holder
	}
	now := w.cfg.Now()
	if s.Hold.Held() {
		if s.Hold.Message != "" {
			s.Hold.For = now.Sub(f.holderSince)
		} else {
			s.Hold.For = now.Sub(s.Hold.Since)
		}
	}
}
