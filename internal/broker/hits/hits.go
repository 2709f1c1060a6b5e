// Package hits counts what a fault hits: the rule that the embedded broker's faults and the fault proxy share.
package hits

import (
	"context"
	"sync"
)

// Counter says which of those that a fault matches it hits. Its methods are safe for concurrent use.
type Counter struct {
	skip, times int

	mu      sync.Mutex
	skipped int
	hits    int
	changed chan struct{} // closed at each hit
}

// New makes a counter that lets skip pass first and then hits times; 0 = all.
func New(skip, times int) *Counter {
	return &Counter{skip: skip, times: times, changed: make(chan struct{})}
}

// Hit tells whether the next one is hit, and counts it.
func (c *Counter) Hit() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.skipped < c.skip {
		c.skipped++
		return false
	}
	if c.times > 0 && c.hits >= c.times {
		return false
	}
	c.hits++
	close(c.changed)
	c.changed = make(chan struct{})
	return true
}

// Hits is how many were hit.
func (c *Counter) Hits() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hits
}

// Wait blocks until n were hit.
func (c *Counter) Wait(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		hits, changed := c.hits, c.changed
		c.mu.Unlock()
		if hits >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
