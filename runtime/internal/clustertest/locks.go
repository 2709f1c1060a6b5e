package clustertest

import (
	"context"
	"time"

	"github.com/streamd/streamd/sdk"
)

// LockTTL is how long a lock lasts that is not renewed (consumer-semantics.md 6.1).
const LockTTL = 60 * time.Second

type queueLock struct {
	client  string
	renewed time.Time
}

// Lock takes or renews a queue's lock for a client, as any member of the group does; false: another has it.
func (c *Cluster) Lock(group, client string, q sdk.Queue) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner := c.lockOwner(group, q); owner != "" && owner != client {
		return false
	}
	if c.locks[group] == nil {
		c.locks[group] = map[sdk.Queue]queueLock{}
	}
	c.locks[group][q] = queueLock{client: client, renewed: time.Now()}
	return true
}

// Unlock gives a lock back.
func (c *Cluster) Unlock(group, client string, q sdk.Queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locks[group][q].client == client {
		delete(c.locks[group], q)
	}
}

// LockOwner is who holds a queue's lock; "" = nobody.
func (c *Cluster) LockOwner(group string, q sdk.Queue) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lockOwner(group, q)
}

func (c *Cluster) lockOwner(group string, q sdk.Queue) string {
	if l, ok := c.locks[group][q]; ok && time.Since(l.renewed) <= LockTTL {
		return l.client
	}
	return ""
}

// LockQueues implements runtime.Broker.
func (b *Client) LockQueues(_ context.Context, group string, queues []sdk.Queue) (held []sdk.Queue, err error) {
	for _, q := range queues {
		if err := b.fault("LockQueues", q); err != nil {
			return held, err
		}
		if b.c.Lock(group, b.id, q) {
			held = append(held, q)
		}
	}
	return held, nil
}

// UnlockQueues implements runtime.Broker.
func (b *Client) UnlockQueues(_ context.Context, group string, queues []sdk.Queue) error {
	for _, q := range queues {
		if err := b.fault("UnlockQueues", q); err != nil {
			return err
		}
		b.c.Unlock(group, b.id, q)
	}
	return nil
}
