package broker

import (
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

type queueLock struct {
	client  string
	renewed time.Time
}

// lockTable is the queue locks of ordered consumption (RebalanceLockManager; consumer-semantics.md 9.3).
type lockTable struct {
	ttl time.Duration

	mu    sync.Mutex
	locks map[string]map[wire.MessageQueue]queueLock
}

func newLockTable(ttl time.Duration) *lockTable {
	return &lockTable{ttl: ttl, locks: make(map[string]map[wire.MessageQueue]queueLock)}
}

func (t *lockTable) liveLocked(l queueLock) bool { return time.Since(l.renewed) <= t.ttl }

// lock takes or renews what is free or already the client's, and returns that.
func (t *lockTable) lock(group, client string, queues []wire.MessageQueue) []wire.MessageQueue {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.locks[group]
	if held == nil {
		held = make(map[wire.MessageQueue]queueLock)
		t.locks[group] = held
	}
	granted := make([]wire.MessageQueue, 0, len(queues))
	for _, q := range queues {
		if l, taken := held[q]; taken && l.client != client && t.liveLocked(l) {
			continue
		}
		held[q] = queueLock{client: client, renewed: time.Now()}
		granted = append(granted, q)
	}
	return granted
}

func (t *lockTable) unlock(group, client string, queues []wire.MessageQueue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.locks[group]
	for _, q := range queues {
		if held[q].client == client {
			delete(held, q)
		}
	}
}

// anyLive tells whether some queue of the group is locked, which a broker takes for an orderly consumer.
func (t *lockTable) anyLive(group string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.locks[group] {
		if t.liveLocked(l) {
			return true
		}
	}
	return false
}

// owner returns who holds a queue, "" when nobody does.
func (t *lockTable) owner(group string, q wire.MessageQueue) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l, ok := t.locks[group][q]; ok && t.liveLocked(l) {
		return l.client
	}
	return ""
}

func (t *lockTable) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.locks)
}
