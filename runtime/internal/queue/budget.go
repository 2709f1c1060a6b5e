package queue

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Budget bounds the memory of many windows: a broker's messages within a stream's, a stream's within the process's. Who waits is
// served in order, so that no queue starves (PQ-P01 of the fault list). What does not fit an empty budget passes anyway, and
// when nothing of a budget is in use, one of those that it let in passes the budgets above it: what is stuck in the others'
// memory (on a broker that is silent, say) never keeps it from going on.
type Budget struct {
	name   string
	parent *Budget

	mu      *sync.Mutex // the one of all budgets of a tree; held for arithmetic only
	limit   int64
	used    int64     // with what waits above
	held    int64     // without
	waiting []*ticket // to be let in here
	above   []*ticket // let in here, waiting above
}

// ticket is a reservation on its way up.
type ticket struct {
	n       int64
	leaf    *Budget
	next    *Budget // which it has to pass; nil: none, it is granted
	granted chan struct{}
}

// NewBudget returns a budget of limit bytes; name is for messages. parent may be nil.
func NewBudget(name string, limit int64, parent *Budget) *Budget {
	b := &Budget{name: name, limit: limit, parent: parent, mu: new(sync.Mutex)}
	if parent != nil {
		b.mu = parent.mu
	}
	return b
}

// Acquire reserves n bytes here and in the parents, waiting in line until they are free or ctx ends.
func (b *Budget) Acquire(ctx context.Context, n int64) error {
	if b == nil {
		return nil
	}
	t := &ticket{n: n, leaf: b, next: b}
	b.mu.Lock()
	t.climb()
	if t.next == nil {
		b.mu.Unlock()
		return nil
	}
	t.next.waiting = append(t.next.waiting, t)
	t.granted = make(chan struct{})
	b.mu.Unlock()
	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for memory of %s: %w", b.cancel(t), ctx.Err())
	}
}

// TryAcquire is Acquire for those who do not wait; false: it would have to, and nothing is reserved.
func (b *Budget) TryAcquire(n int64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &ticket{n: n, leaf: b, next: b}
	t.climb()
	if t.next == nil {
		return true
	}
	t.takeBack()
	return false
}

// climb lets a ticket in where there is room and nobody is before it, as far up as that goes. mu is held, as in all that follow.
func (t *ticket) climb() {
	for b := t.next; b != nil && len(b.waiting) == 0 && b.fits(t.n); b = t.next {
		t.enter()
	}
}

// enter lets a ticket into its next budget, and into all above it when nothing of that one is in use and nobody is before it:
// serve lets those pass that wait above already.
func (t *ticket) enter() {
	b := t.next
	b.used += t.n
	t.next = b.parent
	switch {
	case t.next == nil:
		t.grant()
	case b.held <= 0 && len(b.above) == 0:
		t.pass()
	default:
		b.above = append(b.above, t)
	}
}

// pass lets a ticket into all that it has not passed yet, whether it fits or not.
func (t *ticket) pass() {
	for ; t.next != nil; t.next = t.next.parent {
		t.next.used += t.n
	}
	t.grant()
}

func (t *ticket) grant() {
	for b := t.leaf; b != nil; b = b.parent {
		b.held += t.n
		b.above = without(b.above, t)
	}
	if t.granted != nil {
		close(t.granted)
	}
}

// takeBack undoes what a ticket reserved on its way to where it stands.
func (t *ticket) takeBack() {
	for b := t.leaf; b != t.next; b = b.parent {
		b.used -= t.n
		b.above = without(b.above, t)
	}
}

// without takes a ticket out of a line, at once where nearly all are: at its start, or, when it was only a try, at its end.
func without(line []*ticket, t *ticket) []*ticket {
	last := len(line) - 1
	switch {
	case last < 0:
		return line
	case line[0] == t:
		line[0] = nil
		return line[1:]
	case line[last] == t:
		line[last] = nil
		return line[:last]
	}
	if i := slices.Index(line, t); i >= 0 {
		return slices.Delete(line, i, i+1)
	}
	return line
}

func (b *Budget) fits(n int64) bool { return b.used <= 0 || n <= b.limit-b.used }

// cancel gives up a ticket and tells which budget it waited for.
func (b *Budget) cancel(t *ticket) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.next == nil { // granted while ctx ended
		b.give(t.n)
		return b.name
	}
	stood := t.next
	stood.waiting = without(stood.waiting, t)
	t.takeBack()
	b.serve()
	return stood.name
}

// Full tells whether somebody waits for this budget or a parent, and for which.
func (b *Budget) Full() (name string, full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; b != nil; b = b.parent {
		if len(b.waiting) > 0 {
			return b.name, true
		}
	}
	return "", false
}

// Used is the number of bytes reserved now.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Limit is the number of bytes that may be reserved.
func (b *Budget) Limit() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit
}

// SetLimit changes the limit; what is reserved stays.
func (b *Budget) SetLimit(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.limit = limit
	b.serve()
}

// Correct changes a reservation from an estimate to what it came to; n may be negative. It never waits.
func (b *Budget) Correct(n int64) { b.Give(-n) }

// Give returns n bytes here and in the parents.
func (b *Budget) Give(n int64) {
	if b == nil || n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.give(n)
}

func (b *Budget) give(n int64) {
	for a := b; a != nil; a = a.parent {
		a.used -= n
		a.held -= n
	}
	b.serve()
}

// serve lets in who waits here or above and now may. Room goes to the lines first: given to those that need none, it would never
// come to the first in line.
func (b *Budget) serve() {
	for a := b; a != nil; a = a.parent {
		for len(a.waiting) > 0 && a.fits(a.waiting[0].n) {
			t := a.waiting[0]
			a.waiting = without(a.waiting, t)
			t.enter()
			if t.next != nil {
				t.next.waiting = append(t.next.waiting, t)
			}
		}
	}
	for a := b; a != nil; a = a.parent {
		for a.held <= 0 && len(a.above) > 0 {
			t := a.above[0]
			t.next.waiting = without(t.next.waiting, t)
			t.pass()
		}
	}
}
