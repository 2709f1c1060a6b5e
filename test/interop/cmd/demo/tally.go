package main

import (
	"sync"
	"time"
)

// tally counts orders by what the plugin's log says of them.
type tally struct {
	mu         sync.Mutex
	handled    map[string]struct{}
	duplicates int // orders that were handled once more
	dropped    int // lines of the plugin's log that streamd did not keep: the counts are too low by up to so many
	shown      map[string]bool
	retries    int // lines shown
	dead       int

	revoked, released, assigned map[string]time.Time // by queue, since the second member was started
	committed                   int                  // queues released with their commit confirmed
	unconfirmed                 int
}

func newTally() *tally {
	t := &tally{handled: map[string]struct{}{}, shown: map[string]bool{}}
	t.resetQueues()
	return t
}

func (t *tally) resetQueues() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revoked, t.released, t.assigned = map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	t.committed, t.unconfirmed = 0, 0
}

// moved tells how many queues changed their owner, and the longest time one had none.
func (t *tally) moved() (n int, gap time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for q, from := range t.released {
		if to, ok := t.assigned[q]; ok {
			n++
			gap = max(gap, to.Sub(from))
		}
	}
	return n, gap
}

func (t *tally) counts() (handled, duplicates, dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.handled), t.duplicates, t.dropped
}

func (t *tally) commits() (confirmed, unconfirmed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.committed, t.unconfirmed
}
