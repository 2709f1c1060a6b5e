package runtime

import (
	"context"
	"sync"
)

// newness answers whether the group has offsets for other queues of a topic. Once it was seen to have none it counts as
// new for the queues that were there then: the queues that start first commit, and that must not make the others look
// like queues whose offsets were lost.
type newness struct {
	s  *stream
	mu sync.Mutex // guards fresh; not held over calls
	// fresh are the queues that were there when the group had no offsets of their topic.
	fresh map[Queue]bool
}

// OthersHaveOffsets implements queue.Newness.
func (n *newness) OthersHaveOffsets(ctx context.Context, q Queue) (bool, error) {
	if n.isFresh(q) {
		return false, nil
	}
	queues, err := n.s.broker.Queues(ctx, q.Topic)
	if err != nil {
		return false, err //nolint:wrapcheck // the worker says what it asked for
	}
	for _, other := range queues {
		_, has, err := n.s.broker.Committed(ctx, n.s.config().Group, other)
		if err != nil {
			return false, err //nolint:wrapcheck // as above
		}
		if has {
			return !n.isFresh(q), nil // another worker may have seen the group new, and committed, meanwhile
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, other := range queues {
		n.fresh[other] = true
	}
	return false, nil
}

func (n *newness) isFresh(q Queue) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fresh[q]
}
