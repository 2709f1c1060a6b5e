package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// turns is where the round robin of each topic stands.
type turns struct {
	mu   sync.Mutex
	next map[string]uint32
}

func (t *turns) take(topic string, start func() float64) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, ok := t.next[topic]
	if !ok {
		if t.next == nil {
			t.next = map[string]uint32{}
		}
		n = uint32(start() * (1 << 16)) // producers that start together shall not all begin at queue 0
	}
	t.next[topic] = n + 1
	return n
}

// avoided remembers brokers that failed lately; free sends go elsewhere meanwhile.
type avoided struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (a *avoided) note(broker string, now time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		delete(a.until, broker)
		return
	}
	if a.until == nil {
		a.until = map[string]time.Time{}
	}
	a.until[broker] = now.Add(avoidFor(err))
}

func (a *avoided) holds(broker string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	until, ok := a.until[broker]
	return ok && now.Before(until)
}

// avoidFor tells how long a broker is avoided: a busy one recovers in seconds, one that cannot be reached takes longer.
func avoidFor(err error) time.Duration {
	if _, refused := errors.AsType[*ResponseError](err); refused {
		return 5 * time.Second
	}
	return 30 * time.Second
}

// place is where a send goes.
type place struct {
	queue sdk.Queue
	// defaultQueues is what the broker is asked to make when the topic is new.
	defaultQueues int32
	fixed         bool // another queue would not do
	alone         bool // no other broker serves the topic
}

// autoQueues is how many queues a topic gets that a send creates (remoting-protocol.md 6.4).
const autoQueues = 4

// choose finds a queue: the caller's, that of the sharding key (as Java's SelectMessageQueueByHash, so that Java producers
// and this one agree), else the next in turn whose broker was not tried and did not fail lately.
func (c *Client) place(ctx context.Context, o *outgoing, tried map[string]bool) (place, error) {
	if o.queue != nil {
		return place{queue: *o.queue, defaultQueues: autoQueues, fixed: true}, nil
	}
	queues, err := c.targets(ctx, o.topic)
	if err != nil {
		return place{}, err
	}
	if o.sharding != "" {
		return place{queue: queues[javaIndex(o.sharding, len(queues))], defaultQueues: autoQueues, fixed: true}, nil
	}
	return place{queue: c.nextQueue(o.topic, queues, tried), defaultQueues: autoQueues, alone: oneBroker(queues)}, nil
}

// StoredBy is the broker that alone can store a message of a topic, with its sharding key if it has one. It is empty when there are
// several to choose from, and when the topic's route is not known: nobody is asked.
func (c *Client) StoredBy(topic, shardingKey string) (broker string) {
	r := c.routes.known(topic)
	switch {
	case r == nil || len(r.writable) == 0:
		return ""
	case shardingKey != "":
		return r.writable[javaIndex(shardingKey, len(r.writable))].Broker
	case oneBroker(r.writable):
		return r.writable[0].Broker
	}
	return ""
}

func oneBroker(queues []sdk.Queue) bool { return queues[0].Broker == queues[len(queues)-1].Broker }

func javaIndex(key string, n int) int {
	i := int(wire.TagHash(key)) % n
	return max(i, -i)
}

// targets lists the queues that a topic's messages can go to. A topic that no name server knows is created by the first
// message that comes to a broker, with the template topic's brokers to choose from; a template without a route means that
// the brokers do not create topics.
func (c *Client) targets(ctx context.Context, topic string) ([]sdk.Queue, error) {
	r, err := c.route(ctx, topic)
	if errors.Is(err, ErrTopicNotFound) {
		return c.newTopicTargets(ctx, topic, err)
	}
	if err != nil {
		return nil, err
	}
	if len(r.writable) == 0 {
		c.routes.expedite(topic)
		return nil, fmt.Errorf("%w: no queue of topic %s takes messages (permission, or no master)", ErrNoBroker, topic)
	}
	return r.writable, nil
}

func (c *Client) newTopicTargets(ctx context.Context, topic string, missing error) ([]sdk.Queue, error) {
	template, err := c.route(ctx, wire.DefaultTopic)
	if errors.Is(err, ErrTopicNotFound) {
		return nil, fmt.Errorf("%w; create it, brokers here do not", missing)
	}
	if err != nil {
		return nil, err
	}
	var queues []sdk.Queue
	for _, q := range template.writable {
		if q.ID < autoQueues {
			queues = append(queues, sdk.Queue{Topic: topic, Broker: q.Broker, ID: q.ID})
		}
	}
	if len(queues) == 0 {
		return nil, missing
	}
	return queues, nil
}

func (c *Client) nextQueue(topic string, queues []sdk.Queue, tried map[string]bool) sdk.Queue {
	start := int(c.turns.take(topic, c.cfg.Rand))
	now := c.cfg.Now()
	at := func(i int) sdk.Queue { return queues[(start+i)%len(queues)] }
	for i := range queues {
		if q := at(i); !tried[q.Broker] && !c.avoided.holds(q.Broker, now) {
			return q
		}
	}
	for i := range queues {
		if q := at(i); !tried[q.Broker] {
			return q
		}
	}
	return at(0)
}
