package broker

import (
	"context"
	"sync"
)

// changes tells those who wait that something about the broker may be different now.
type changes struct {
	mu      sync.Mutex
	waiting bool
	next    chan struct{} // closed at the next change
}

func newChanges() *changes { return &changes{next: make(chan struct{})} }

func (c *changes) happened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting {
		close(c.next)
		c.next, c.waiting = make(chan struct{}), false
	}
}

func (c *changes) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = true
	return c.next
}

// Await blocks until condition is true of the broker, or ctx ends, whose cause it then returns. The condition is looked at
// now and after each request that was handled, message stored, member or connection lost; it may call any method that
// looks at the broker. It is how a test waits for a broker without polling or sleeping.
func (b *Broker) Await(ctx context.Context, condition func(*Broker) bool) error {
	for {
		next := b.changes.wait()
		if condition(b) {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
