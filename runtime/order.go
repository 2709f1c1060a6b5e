package runtime

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/runtime/internal/dispatch"
	"github.com/streamd/streamd/runtime/internal/lease"
	"github.com/streamd/streamd/runtime/internal/queue"
	"github.com/streamd/streamd/runtime/internal/settle"
)

// Order says which messages of a stream bind each other.
type Order string

// What order may be; empty is none. The other two hold the broker's lock of every queue that they consume.
const (
	OrderNone  Order = "none"
	OrderQueue Order = "queue" // one message of a queue at a time
	OrderKey   Order = "key"   // one message of a key at a time: __SHARDINGKEY, else the first of KEYS, else those without any
)

// Head is a failed message that is tried again in place, and what waits behind it.
type Head = settle.Head

// Lock is what is known of a queue's lock at its broker.
type Lock = queue.Lock

func (o Order) ordered() bool { return o == OrderQueue || o == OrderKey }

func (o Order) ofQueue() queue.Order {
	switch o {
	case OrderQueue:
		return queue.OrderQueue
	case OrderKey:
		return queue.OrderKey
	default:
		return queue.OrderNone
	}
}

// lockLife is how long brokers keep a lock that is not renewed: for as long the group may hold some after the last ordered
// member went, and a send to the retry topic would be dead-lettered (design.md 7).
const lockLife = 60 * time.Second

// newKeeper makes what holds the stream's queue locks.
func (s *stream) newKeeper() *lease.Keeper {
	return lease.New(lease.Config{
		Lock: func(ctx context.Context, queues []Queue) ([]Queue, error) {
			return s.broker.LockQueues(ctx, s.config().Group, queues)
		},
		Unlock: func(ctx context.Context, queues []Queue) error {
			return s.broker.UnlockQueues(ctx, s.config().Group, queues)
		},
		Holders: func(ctx context.Context, queues []Queue) map[Queue]string { return s.member.lockHolders(ctx, queues) },
		Now:     s.rt.Now, Logger: s.log,
	})
}

// locks is what a worker asks for its queue's lock; nil: it needs none.
func (s *stream) locks(c *StreamConfig) queue.Locks {
	if !c.Order.ordered() || c.Broadcasting { // where all have all queues, no lock keeps anybody out (consumer-semantics.md 6.2)
		return nil
	}
	return s.keeper
}

// lockHolders asks the other members whose locks these are: any client lists its queues in its running info, and Java's
// marks those whose lock it has.
func (m *member) lockHolders(ctx context.Context, queues []Queue) map[Queue]string {
	held := map[Queue]string{}
	var mu sync.Mutex
	m.eachPeer(ctx, m.others(), func(id string, info *wire.ConsumerRunningInfo) {
		mu.Lock()
		defer mu.Unlock()
		for _, q := range queues {
			if info.Queues[wire.MessageQueue{Topic: q.Topic, BrokerName: q.Broker, QueueID: q.ID}].Locked {
				held[q] = id
			}
		}
	})
	return held
}

// reorder acts on a changed order: every queue is drained and begun anew, with locks or without. For as long as the group
// may hold locks of before, failed messages are tried in place. The config is the new one already.
func (s *stream) reorder(old, now Order) {
	if old.ordered() && !now.ordered() {
		until := s.rt.Now().Add(lockLife)
		s.placeUntil.Store(&until)
	}
	s.policy.Store(s.policyOf(s.config()))
	s.log.Info("the stream's order changes: its queues are drained and begun anew", "from", string(old), "to", string(now))
	s.member.reordered()
}

// policyOf is a config's policy with what an earlier one left behind.
func (s *stream) policyOf(c *StreamConfig) *settle.Policy {
	p := c.policy()
	if until := s.placeUntil.Load(); until != nil {
		p.SendBackFrom = *until
	}
	return p
}

// reordered tells the member that what its queues run with has changed. It never blocks; see changed.
func (m *member) reordered() {
	m.mu.Lock()
	m.pending.order = true
	m.mu.Unlock()
	m.changed(false, false)
}

// done tells that the settler has settled a message of a strand.
func (k *sink) done(o *queue.Ownership, strand uint32) {
	k.with(func(d *dispatch.Dispatcher) { d.Settled(o, strand) })
}

// locksHeld counts the queue locks of a stream.
func locksHeld(queues []QueueStatus) (n int) {
	for i := range queues {
		if queues[i].Lock.Held {
			n++
		}
	}
	return n
}

// showHeads tells at each queue what its first failed message holds up.
func (st *StreamStatus) showHeads(now time.Time) {
	for i := range st.Queues {
		q := &st.Queues[i]
		at := slices.IndexFunc(st.Heads, func(h Head) bool { return h.Queue == q.Queue })
		if q.Hold.Held() || at < 0 || !st.Order.ordered() && !st.Heads[at].Blocked {
			continue
		}
		h := &st.Heads[at]
		q.Hold = Hold{Kind: HoldInPlace, Message: h.Message, Since: h.Since, For: now.Sub(h.Since), Text: holdsUp(h)}
		if h.Blocked {
			q.Hold.Kind = HoldExhausted
		}
	}
}

func holdsUp(h *Head) string {
	behind := "the queue waits behind it"
	if h.Key != "" {
		behind = "the messages of key " + strconv.Quote(h.Key) + " wait behind it"
	}
	return fmt.Sprintf("the message at offset %d is tried again in place, %s: %s", h.Offset, behind, h.Text)
}
