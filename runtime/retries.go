package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// retries is what a round remembers of whether failed messages can be sent back. A broker says SUCCESS to a send-back of a group
// that has no retry queues, or whose retry topic has none, and stores nothing (consumer-semantics.md 8.1 step 4): what was sent back
// would be lost.
type retries struct {
	topicOff bool
	brokers  map[string]*groupRetries
}

// groupRetries is what one broker's settings of the group say.
type groupRetries struct {
	off  bool
	next time.Time // when it is asked again
}

const (
	retriesLimit = time.Second      // for a broker to tell: a round waits for it
	retriesPause = 10 * time.Second // less than a round: each asks once
	// Before 5.0 a broker tells the settings of all groups or of none.
	retriesPauseOld = time.Minute
)

// lookAtRetries learns whether failed messages can be sent back; what is not told stays as it was known.
func (r *round) lookAtRetries(ctx context.Context, c *StreamConfig) {
	topic := wire.RetryTopic(c.Group)
	looking, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if off, known := r.retryOff(looking, topic); known {
		r.retries.topicOff = off
	}
	off := r.askGroupRetries(ctx, c) || r.retries.topicOff
	if r.m.s.retryOff.Swap(off) != off {
		r.m.s.log.Warn("whether failed messages can be sent back has changed", "topic", topic, "takes_messages", !off)
	}
}

// askGroupRetries asks the brokers of the group's topics whether the group has retry queues (retryQueueNums). One that has none is
// enough: which broker a message of the next pull comes from is not chosen.
func (r *round) askGroupRetries(ctx context.Context, c *StreamConfig) (off bool) {
	ctx, cancel := context.WithTimeout(ctx, retriesLimit)
	defer cancel()
	var asking sync.WaitGroup
	for name, b := range r.retryBrokers(ctx, c) {
		now := r.m.s.rt.Now()
		if now.Before(b.next) {
			continue
		}
		b.next = now.Add(retriesPause)
		if v := r.m.s.broker.Version(name); v != 0 && wire.Version(v) < wire.Version5_0_0 {
			b.next = now.Add(retriesPauseOld)
		}
		asking.Go(func() {
			if n, err := r.m.s.broker.RetryQueues(ctx, c.Group, name); err == nil {
				b.off = n <= 0
			}
		})
	}
	asking.Wait()
	for _, b := range r.retries.brokers {
		off = off || b.off
	}
	return off
}

// retryBrokers lists the brokers of the group's topics. While the queues of one topic are not known, none is forgotten.
func (r *round) retryBrokers(ctx context.Context, c *StreamConfig) map[string]*groupRetries {
	now, whole := map[string]*groupRetries{}, true
	for _, sub := range c.Subscriptions {
		queues, err := r.m.s.broker.Queues(ctx, sub.Topic)
		whole = whole && err == nil
		for _, q := range queues {
			if r.retries.brokers[q.Broker] == nil {
				r.retries.brokers[q.Broker] = &groupRetries{}
			}
			now[q.Broker] = r.retries.brokers[q.Broker]
		}
	}
	if whole {
		r.retries.brokers = now
	}
	return r.retries.brokers
}

// retryOff tells whether the retry topic is there and takes nothing. It is not known while a broker of it has no master: such
// a broker's queues do not count as writable, whatever the topic allows.
func (r *round) retryOff(ctx context.Context, topic string) (off, known bool) {
	writable, err := r.m.s.broker.WritableQueues(ctx, topic)
	if err != nil || len(writable) > 0 {
		return false, err == nil
	}
	readable, err := r.m.s.broker.Queues(ctx, topic)
	if err != nil {
		return false, false
	}
	masters := map[string]bool{}
	for _, sub := range r.m.s.config().Subscriptions {
		queues, err := r.m.s.broker.WritableQueues(ctx, sub.Topic)
		if err != nil {
			return false, false
		}
		for _, q := range queues {
			masters[q.Broker] = true
		}
		if more, err := r.m.s.broker.Queues(ctx, sub.Topic); err == nil && len(readable) == 0 {
			readable = append(readable, more...)
		}
	}
	for _, q := range readable {
		if !masters[q.Broker] {
			return false, false
		}
	}
	return true, len(readable) > 0
}
