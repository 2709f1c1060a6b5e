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
	count int // of locks, expired ones included
	locks map[string]map[wire.MessageQueue]queueLock
}

// maxLocks bounds the locks of all groups, of which each queue of an ordered topic needs one.
const maxLocks = 1 << 17

// maxLockNames bounds a group's name and its member's id together: no real one is longer.
const maxLockNames = 1024

func newLockTable(ttl time.Duration) *lockTable {
	return &lockTable{ttl: ttl, locks: make(map[string]map[wire.MessageQueue]queueLock)}
}

func (t *lockTable) liveLocked(l queueLock) bool { return time.Since(l.renewed) <= t.ttl }

// lock takes or renews what is free or already the client's, and returns that.
func (t *lockTable) lock(group, client string, queues []wire.MessageQueue) []wire.MessageQueue {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count+len(queues) > maxLocks {
		t.sweepLocked()
	}
	held := t.locks[group]
	if held == nil {
		held = make(map[wire.MessageQueue]queueLock)
		t.locks[group] = held
	}
	granted := make([]wire.MessageQueue, 0, len(queues))
	for _, q := range queues {
		if len(q.Topic) > maxRetryTopic || len(q.BrokerName) > maxRetryTopic || len(group)+len(client) > maxLockNames {
			continue
		}
		l, taken := held[q]
		if taken && l.client != client && t.liveLocked(l) || !taken && t.count >= maxLocks {
			continue
		}
		if !taken {
			t.count++
		}
		held[q] = queueLock{client: client, renewed: time.Now()}
		granted = append(granted, q)
	}
	t.forgetLocked(group)
	return granted
}

// sweepLocked forgets the locks that have expired.
func (t *lockTable) sweepLocked() {
	for group, held := range t.locks {
		for q, l := range held {
			if !t.liveLocked(l) {
				delete(held, q)
				t.count--
			}
		}
		t.forgetLocked(group)
	}
}

// forgetLocked drops a group without locks.
func (t *lockTable) forgetLocked(group string) {
	if len(t.locks[group]) == 0 {
		delete(t.locks, group)
	}
}

func (t *lockTable) unlock(group, client string, queues []wire.MessageQueue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.locks[group]
	for _, q := range queues {
		if l, taken := held[q]; taken && l.client == client {
			delete(held, q)
			t.count--
		}
	}
	t.forgetLocked(group)
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
	t.count = 0
}
