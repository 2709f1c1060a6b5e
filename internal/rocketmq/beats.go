package rocketmq

import (
	"context"
	"sync"
)

// beats are the heartbeats that are on their way to a server.
type beats struct {
	mu       sync.Mutex // held for memory work only
	underway map[chan struct{}]struct{}
}

// begin notes a heartbeat before it is made, until end is called.
func (b *beats) begin() (end func()) {
	one := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.underway == nil {
		b.underway = map[chan struct{}]struct{}{}
	}
	b.underway[one] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.underway, one)
		close(one)
	}
}

// ended waits until those that are on their way now have come to their end. What begins later knows of everything that was changed
// before.
func (b *beats) ended(ctx context.Context) error {
	b.mu.Lock()
	before := make([]chan struct{}, 0, len(b.underway))
	for one := range b.underway {
		before = append(before, one)
	}
	b.mu.Unlock()
	for _, one := range before {
		select {
		case <-one:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
