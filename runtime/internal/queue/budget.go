package queue

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Budget bounds the memory of many windows: those of a stream, or with a parent, those of the process. Who waits is
// served in order, so that no queue starves (PQ-P01 of the fault list). What does not fit an empty budget passes anyway.
type Budget struct {
	name   string
	limit  int64
	parent *Budget

	mu      sync.Mutex // held for arithmetic only
	used    int64
	waiting []*ticket
}

type ticket struct {
	n       int64
	granted chan struct{}
}

// NewBudget returns a budget of limit bytes; name is for messages. parent may be nil.
func NewBudget(name string, limit int64, parent *Budget) *Budget {
	return &Budget{name: name, limit: limit, parent: parent}
}

// Acquire reserves n bytes here and in the parents, waiting in line until they are free or ctx ends.
func (b *Budget) Acquire(ctx context.Context, n int64) error {
	if b == nil {
		return nil
	}
	if err := b.acquire(ctx, n); err != nil {
		return fmt.Errorf("waiting for memory of %s: %w", b.name, err)
	}
	if err := b.parent.Acquire(ctx, n); err != nil {
		b.giveOwn(n)
		return err
	}
	return nil
}

func (b *Budget) acquire(ctx context.Context, n int64) error {
	b.mu.Lock()
	if len(b.waiting) == 0 && b.fits(n) {
		b.used += n
		b.mu.Unlock()
		return nil
	}
	t := &ticket{n: n, granted: make(chan struct{})}
	b.waiting = append(b.waiting, t)
	b.mu.Unlock()
	select {
	case <-t.granted:
		return nil
	case <-ctx.Done():
		b.cancel(t)
		return ctx.Err()
	}
}

// TryAcquire is Acquire for those who do not wait; false: it would have to, and nothing is reserved.
func (b *Budget) TryAcquire(n int64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	free := len(b.waiting) == 0 && b.fits(n)
	if free {
		b.used += n
	}
	b.mu.Unlock()
	if free && !b.parent.TryAcquire(n) {
		b.giveOwn(n)
		return false
	}
	return free
}

func (b *Budget) fits(n int64) bool { return b.used <= 0 || n <= b.limit-b.used }

func (b *Budget) cancel(t *ticket) {
	b.mu.Lock()
	i := slices.Index(b.waiting, t)
	if i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	} else {
		b.used -= t.n // granted while ctx ended
	}
	b.grant()
	b.mu.Unlock()
}

// Full tells whether somebody waits for this budget or a parent, and for which.
func (b *Budget) Full() (name string, full bool) {
	for ; b != nil; b = b.parent {
		b.mu.Lock()
		n := len(b.waiting)
		b.mu.Unlock()
		if n > 0 {
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
	b.limit = limit
	b.grant()
	b.mu.Unlock()
}

// Correct changes a reservation from an estimate to what it came to; n may be negative. It never waits.
func (b *Budget) Correct(n int64) {
	if n < 0 {
		b.Give(-n)
		return
	}
	for ; b != nil; b = b.parent {
		b.mu.Lock()
		b.used += n
		b.mu.Unlock()
	}
}

// Give returns n bytes here and in the parents.
func (b *Budget) Give(n int64) {
	for ; b != nil && n > 0; b = b.parent {
		b.giveOwn(n)
	}
}

func (b *Budget) giveOwn(n int64) {
	b.mu.Lock()
	b.used -= n
	b.grant()
	b.mu.Unlock()
}

func (b *Budget) grant() {
	for len(b.waiting) > 0 && b.fits(b.waiting[0].n) {
		t := b.waiting[0]
		b.waiting = slices.Delete(b.waiting, 0, 1)
		b.used += t.n
		close(t.granted)
	}
}
