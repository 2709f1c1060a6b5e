package groupview

import (
	"context"
	"sync"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

const (
	// ageWorkers bounds the questions that run at once.
	ageWorkers = 16
	// ageTimeout bounds one question; the whole must stay quick for a person.
	ageTimeout = 3 * time.Second
)

// ages reads the store time of the message each lagging queue stands at: only the message itself tells it. It is read by the
// group of RocketMQ's tools, never by the group itself: a pull of that takes a reset that waits for a member (from 5.1).
func (r *reader) ages(ctx context.Context) {
	work := make(chan *Queue)
	var wg sync.WaitGroup
	for range ageWorkers {
		wg.Go(func() {
			for v := range work {
				v.OldestAge = r.age(ctx, v)
			}
		})
	}
	for _, v := range r.queues {
		switch {
		case v.Lag == 0:
			v.OldestAge = 0
		case v.Lag > 0:
			work <- v
		}
	}
	close(work)
	wg.Wait()
}

func (r *reader) age(ctx context.Context, v *Queue) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, ageTimeout)
	defer cancel()
	q := sdk.Queue{Topic: v.Topic, Broker: v.Broker, ID: v.ID}
	got, err := r.cluster.Pull(ctx, &rocketmq.PullRequest{
		Group: wire.ToolsGroup, Queue: q, Offset: v.Committed, MaxMessages: 1,
		Subscription: rocketmq.Subscription{Topic: q.Topic, Expression: "*", Type: rocketmq.FilterTag},
	})
	if refusal, refused := rocketmq.AccessRefused(err); refused { // one note, since it is the same for each queue of the topic
		r.note("the ages of the oldest messages in %s are not known: %v", q.Topic, refusal)
		return Unknown
	}
	if err != nil {
		r.note("the age of the oldest message in %s is not known: %v", q, err)
		return Unknown
	}
	defer got.Release()
	if got.Status == rocketmq.PullOffsetIllegal && v.Committed < got.Min {
		r.note("%s: the broker has dropped the messages from %d to %d before they were handled", q, v.Committed, got.Min-1)
		return Unknown
	}
	var m wire.Message
	if got.Status != rocketmq.PullFound {
		return Unknown
	}
	if _, err := m.Decode(got.Body); err != nil {
		r.note("the oldest message in %s cannot be read: %v", q, err)
		return Unknown
	}
	return max(r.out.Time.Sub(time.UnixMilli(m.StoreMillis)), 0)
}
