package runtime

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// newness answers whether the group has offsets for other queues of a topic. Once it was seen to have none it counts as
// new for the queues that were there then: the queues that start first commit, and that must not make the others look
// like queues whose offsets were lost. Members that join a new group at once tell each other what they saw (307).
type newness struct {
	s  *stream
	mu sync.Mutex // guards fresh and looks; not held over calls
	// fresh are the queues that were there when the group had no offsets of their topic, and until when that counts.
	fresh map[Queue]time.Time
	looks map[string]*look // by topic
}

// look is the question for a topic's offsets. One queue asks it at a time and the others wait for what it sees: each of two
// thousand would ask for two thousand.
type look struct {
	busy chan struct{} // has room for the one that asks
	has  Queue         // had an offset when it was asked last: it is asked first; whoever asks has it
}

// freshFor bounds how long a group counts as new: long enough for all its members to start, and short, since a queue that
// loses its offset afterwards would start at the stream's start position and not be held.
const freshFor = 10 * time.Minute

// OthersHaveOffsets implements queue.Newness.
func (n *newness) OthersHaveOffsets(ctx context.Context, q Queue) (bool, error) {
	if n.isFresh(q) {
		return false, nil
	}
	has, err := n.anyHasOffset(ctx, q)
	if err != nil || !has {
		return false, err
	}
	return !n.isFresh(q) && !n.freshForOthers(ctx, q), nil // another worker or member may have seen the group new, and committed, meanwhile
}

// anyHasOffset asks queue by queue, unless another queue has just found that none has. A broker that does not tell keeps nobody from
// learning what another one knows; without that nothing is known.
func (n *newness) anyHasOffset(ctx context.Context, q Queue) (bool, error) {
	l := n.look(q.Topic)
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	case <-ctx.Done():
		return false, ctx.Err() //nolint:wrapcheck // the worker says what it asked for
	}
	if n.isFresh(q) {
		return false, nil
	}
	queues, err := n.s.broker.Queues(ctx, q.Topic)
	if err != nil {
		return false, err //nolint:wrapcheck // as above
	}
	if i := slices.Index(queues, l.has); i > 0 {
		queues = slices.Clone(queues)
		queues[0], queues[i] = queues[i], queues[0]
	}
	silent := map[string]bool{}
	var failed error
	for _, other := range queues {
		if silent[other.Broker] {
			continue
		}
		_, has, err := n.s.broker.Committed(ctx, n.s.config().Group, other)
		switch {
		case err != nil:
			silent[other.Broker], failed = true, err
		case has:
			l.has = other
			return true, nil
		}
	}
	if failed != nil {
		return false, failed
	}
	n.note(queues)
	return false, nil
}

func (n *newness) look(topic string) *look {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.looks[topic] == nil {
		if n.looks == nil {
			n.looks = map[string]*look{}
		}
		n.looks[topic] = &look{busy: make(chan struct{}, 1)}
	}
	return n.looks[topic]
}

func (n *newness) note(queues []Queue) {
	n.mu.Lock()
	defer n.mu.Unlock()
	until := n.s.rt.Now().Add(freshFor)
	for _, q := range queues {
		n.fresh[q] = until
	}
}

func (n *newness) isFresh(q Queue) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.s.rt.Now().Before(n.fresh[q])
}

// names lists the queues for which the group counts as new, for other members.
func (n *newness) names() (names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.s.rt.Now()
	for q, until := range n.fresh {
		if now.Before(until) {
			names = append(names, q.String())
		}
	}
	return names
}

// freshForOthers asks the other members. Silence is no answer: the queue then counts as one whose offset is missing.
func (n *newness) freshForOthers(ctx context.Context, q Queue) bool {
	m := n.s.member
	var mu sync.Mutex
	seen := false
	m.eachPeer(ctx, m.others(), func(_ string, info *wire.ConsumerRunningInfo) {
		p, err := ParsePeerInfo(info)
		if err != nil {
			return // not a streamd
		}
		mu.Lock()
		defer mu.Unlock()
		for _, name := range p.Fresh {
			seen = seen || name == q.String()
		}
	})
	return seen
}
