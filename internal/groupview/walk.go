package groupview

import (
	"iter"
	"slices"

	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Walk goes over the topics of a group and the brokers that have them, each once. Members may subscribe to topics on brokers
// where the retry topic is not yet, so what is learned at a broker is added, until nothing new appears.
type Walk struct{ pending, topics, brokers []string }

// NewWalk begins at the group's retry topic and at topics that are known otherwise.
func NewWalk(group string, topics []string) *Walk {
	return &Walk{pending: append([]string{wire.RetryTopic(group)}, topics...)}
}

// Add adds topics.
func (w *Walk) Add(topics ...string) { w.pending = append(w.pending, topics...) }

// Topics yields the topics, those too that are added meanwhile.
func (w *Walk) Topics() iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(w.pending) > 0 {
			topic := w.pending[0]
			w.pending = w.pending[1:]
			if slices.Contains(w.topics, topic) {
				continue
			}
			w.topics = append(w.topics, topic)
			if !yield(topic) {
				return
			}
		}
	}
}

// Brokers are those of a topic's queues that no topic before had.
func (w *Walk) Brokers(queues []sdk.Queue) []string {
	known := len(w.brokers)
	for _, q := range queues {
		if !slices.Contains(w.brokers, q.Broker) {
			w.brokers = append(w.brokers, q.Broker)
		}
	}
	return w.brokers[known:]
}
