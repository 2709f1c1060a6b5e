package remoting

import (
	"context"
	"sync"
	"time"
)

// waiter is one outstanding request. It takes exactly one outcome: result has room for it, or done is called.
type waiter struct {
	result chan outcome
	done   func(outcome)
	frame  *outFrame
	start  time.Duration
	until  time.Duration // with done: when its time is up
	held   bool
}

type outcome struct {
	reply *Reply
	err   error
}

func (w *waiter) end(o outcome) {
	if w.done != nil {
		w.done(o)
		return
	}
	w.result <- o
}

// table correlates answers with requests by their opaque number. Numbers are only unique within one connection and one
// direction (remoting-protocol.md 1.2), so each connection has its own.
type table struct {
	slots chan struct{} // one token for each outstanding request that is not held

	mu        sync.Mutex
	waiters   map[int32]*waiter
	next      int32
	busySince time.Duration // when the table last became non-empty
	err       error         // set once shut
}

func newTable(limit int) *table {
	return &table{slots: make(chan struct{}, limit), waiters: map[int32]*waiter{}}
}

// acquire waits for a slot under ctx or until done is closed.
func (t *table) acquire(ctx context.Context, done <-chan struct{}) error {
	select {
	case t.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.slots <- struct{}{}:
		return nil
	case <-done:
		return errEnded
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// add enters w under a number that no outstanding request has.
func (t *table) add(w *waiter) (int32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return 0, t.err
	}
	t.advance()
	if len(t.waiters) == 0 {
		t.busySince = w.start
	}
	t.waiters[t.next] = w
	return t.next, nil
}

// number returns a number that no outstanding request has, for a request that gets no answer.
func (t *table) number() (int32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return 0, t.err
	}
	t.advance()
	return t.next, nil
}

// advance moves next to a free number. The caller holds mu.
func (t *table) advance() {
	for {
		t.next++
		if _, taken := t.waiters[t.next]; !taken {
			return
		}
	}
}

// take removes the request; nil when it is not outstanding (any more).
func (t *table) take(opaque int32) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.waiters[opaque]
	if w == nil {
		return nil
	}
	delete(t.waiters, opaque)
	if !w.held {
		<-t.slots
	}
	return w
}

// shut fails all requests with err, now and from now on. It returns true the first time.
func (t *table) shut(err error) bool {
	t.mu.Lock()
	if t.err != nil {
		t.mu.Unlock()
		return false
	}
	t.err = err
	waiters := t.waiters
	t.waiters = map[int32]*waiter{}
	t.mu.Unlock()
	for _, w := range waiters {
		if !w.held {
			<-t.slots
		}
		w.end(outcome{err: err})
	}
	return true
}

// overdue takes out the requests whose time is up and that nobody waits for.
func (t *table) overdue(now time.Duration) (late []*waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for opaque, w := range t.waiters {
		if w.done != nil && now >= w.until {
			delete(t.waiters, opaque)
			late = append(late, w)
		}
	}
	return late
}

func (t *table) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiters)
}

// waiting tells since when answers are owed without a break; ok is false when none is.
func (t *table) waiting() (since time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busySince, len(t.waiters) > 0
}
