package queue

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamd/streamd/sdk"
)

// Ownership is one epoch of one queue: from its start position to its release or reset. The dispatcher and the settler
// settle into it; once it is fenced, what they bring is late and changes nothing but the memory it gives back.
type Ownership struct {
	Queue sdk.Queue
	Epoch uint64
	Order Order // set before the first message

	mu      sync.Mutex // held for memory work only, never over a call
	window  *Window
	fenced  bool
	closing atomic.Bool
	lease   atomic.Pointer[time.Time] // until when the broker's lock is known to hold; nil = there is none
	lapsed  atomic.Bool               // somebody was told that the lease is over
	late    uint64
	wake    uint64 // settled count that the worker waits for
	out     int    // at handlers or being settled
	ghosts  int    // given up here, and not answered by their handlers

	budget *Budget
	kick   chan struct{} // tells the worker that something was settled
	pool   *chunkPool
}

// NewOwnership begins an epoch at start. kick, with room for one, is told when the settled count reaches what the worker
// waits for.
func NewOwnership(q sdk.Queue, epoch uint64, start int64, budget *Budget, kick chan struct{}) *Ownership {
	return &Ownership{Queue: q, Epoch: epoch, window: NewWindow(start), budget: budget, kick: kick, pool: &chunkPool{}}
}

// Admit takes messages that no pull's buffer holds; next is the offset to pull next.
func (o *Ownership) Admit(ds []Delivery, next int64, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range ds {
		ds[i].Own = o
	}
	o.window.Admit(&Chunk{Deliveries: ds}, next, now)
}

// Safe is the offset that may be committed.
func (o *Ownership) Safe() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.window.Safe()
}

// Active is the number of messages that somebody still works on.
func (o *Ownership) Active() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.window.Active()
}

// Sent counts n messages handed to a handler.
func (o *Ownership) Sent(n int) {
	o.mu.Lock()
	o.out += n
	o.mu.Unlock()
}

// Returned counts n messages that came back unanswered.
func (o *Ownership) Returned(n int) { o.Sent(-n) }

// Ghost counts a message that is given up although its handler may still run it, and with -1 its handler's late answer or end.
// Nobody else may have the queue before that (see leaveLock).
func (o *Ownership) Ghost(n int) {
	o.mu.Lock()
	o.ghosts += n
	o.mu.Unlock()
	o.give(0, n < 0)
}

// haunted tells that a handler may still have a message of an epoch: one that was given up, or, when the epoch is over, one
// that was not given back yet.
func (o *Ownership) haunted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ghosts > 0 || o.fenced && (o.out > 0 || o.window.Bytes() > 0)
}

// Settle settles messages of this ownership and reports how many of them came late: after the end of the epoch.
// The deliveries must not be used afterwards.
func (o *Ownership) Settle(ds []*Delivery) (late int) {
	var freed int64
	o.mu.Lock()
	o.out -= len(ds)
	for _, d := range ds {
		if o.fenced {
			freed += o.window.unref(d)
			continue
		}
		freed += o.window.Settle(d)
	}
	if o.fenced {
		late = len(ds)
		o.late += uint64(late)
	}
	kick := o.fenced || o.window.Settled() >= o.wake
	o.mu.Unlock()
	o.give(freed, kick)
	return late
}

// Drop lets go of messages unsettled: nobody works on them any more. wasOut tells that they had been handed to a
// handler. They hold the offset until the ownership ends.
func (o *Ownership) Drop(ds []*Delivery, wasOut bool) {
	var freed int64
	o.mu.Lock()
	if wasOut {
		o.out -= len(ds)
	}
	for _, d := range ds {
		if !o.fenced {
			o.window.Drop(d)
			continue
		}
		freed += o.window.unref(d)
	}
	o.mu.Unlock()
	o.give(freed, true)
}

// wakeAt sets the settled count at which the worker wants to be told; 0 = at the next one after seen, which is what the worker
// knows of. It is told at once of what came meanwhile.
func (o *Ownership) wakeAt(settled, seen uint64) {
	o.mu.Lock()
	o.wake = settled
	n := o.window.Settled()
	o.mu.Unlock()
	o.give(0, n > seen && n >= settled)
}

func (o *Ownership) give(freed int64, kick bool) {
	if freed > 0 {
		o.budget.Give(freed)
	}
	if !kick {
		return
	}
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// Closing tells that the queue goes: nothing of it is sent to a handler any more.
func (o *Ownership) Closing() bool { return o.closing.Load() }

// Live tells whether the epoch still counts.
func (o *Ownership) Live() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.fenced
}

// fence ends the epoch and gives the memory accounting of messages that nobody holds back to the budget.
// It returns the safe offset and the number of messages that somebody still works on; what was never sent is not counted.
func (o *Ownership) fence() (safe int64, left int) {
	o.mu.Lock()
	if o.fenced {
		o.mu.Unlock()
		return o.window.Safe(), o.window.Active()
	}
	o.fenced = true
	o.closing.Store(true)
	safe, left = o.window.Safe(), o.window.Active()
	freed := o.window.End()
	o.mu.Unlock()
	o.budget.Give(freed)
	return safe, left
}

// facts is a consistent reading of an ownership.
type facts struct {
	next, safe, span, bytes int64
	count, active, out      int
	settled, late           uint64
	lastSettledMillis       int64
	holder                  string
	holderOffset            int64
	holderStoreMillis       int64
	holderSince             time.Time
}

func (o *Ownership) facts(withHolder bool) facts {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.window
	f := facts{
		next: w.Next(), safe: w.Safe(), span: w.Span(), bytes: w.Bytes(), count: w.Count(), active: w.Active(), out: o.out,
		settled: w.Settled(), late: o.late, lastSettledMillis: w.LastSettledMillis(),
	}
	if d := w.Holder(); d != nil && withHolder && !o.fenced { // afterwards its memory may be used again
		f.holder, f.holderOffset = string(d.AppendIdentity(nil)), d.Offset
		f.holderStoreMillis, f.holderSince = d.StoreMillis, d.chunk.admitted
	}
	return f
}
