package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// deadLetter is one message of the dead-letter topic.
type deadLetter struct {
	order string // its key
	trace string
}

// deadLetters reads the dead-letter topic as it grows. It joins no group and commits nothing.
type deadLetters struct {
	client *rocketmq.Client
	next   map[sdk.Queue]int64
}

// watcher is the group that its pulls name.
const watcher = "streamd-demo"

// newDeadLetters begins at the first one.
func newDeadLetters(c *rocketmq.Client) *deadLetters {
	return &deadLetters{client: c, next: map[sdk.Queue]int64{}}
}

// read calls f for each dead letter stored since the last call. A topic that is not there yet has none.
func (d *deadLetters) read(ctx context.Context, f func(*deadLetter)) error {
	queues, err := d.client.Queues(ctx, wire.DLQTopic(group))
	if errors.Is(err, rocketmq.ErrTopicNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for dead letters: %w", err)
	}
	for _, q := range queues {
		for more := true; more; {
			if more, err = d.readQueue(ctx, q, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// readQueue reads what one pull brings, and tells whether there may be more.
func (d *deadLetters) readQueue(ctx context.Context, q sdk.Queue, f func(*deadLetter)) (more bool, err error) {
	r, err := d.client.Pull(ctx, &rocketmq.PullRequest{
		Group: watcher, Queue: q, Offset: d.next[q], MaxMessages: 32, MaxBytes: 1 << 20,
		Subscription: rocketmq.Subscription{Topic: q.Topic, Expression: "*", Type: rocketmq.FilterTag},
	})
	if err != nil {
		return false, fmt.Errorf("reading dead letters: %w", err)
	}
	defer r.Release()
	if r.Status != rocketmq.PullFound {
		return false, nil
	}
	for rest := r.Body; len(rest) > 0; {
		var m wire.Message
		n, err := m.Decode(rest)
		if err != nil {
			return false, fmt.Errorf("reading dead letters: %w", err)
		}
		rest = rest[n:]
		f(&deadLetter{order: strings.Join(m.Keys(), " "), trace: traceOf(&m)})
	}
	d.next[q] = r.Next
	return true, nil
}

// traceOf is the trace that the producer began.
func traceOf(m *wire.Message) string {
	v, _ := m.Property("traceparent")
	if parts := strings.Split(string(v), "-"); len(parts) == 4 {
		return parts[1]
	}
	return ""
}
