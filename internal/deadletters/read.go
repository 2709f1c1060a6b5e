package deadletters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
	"github.com/streamd/streamd/sdk"
)

// Cluster is what reading asks. *rocketmq.Client fills it.
type Cluster interface {
	Namespace() string
	Queues(ctx context.Context, topic string) ([]sdk.Queue, error)
	WritableQueues(ctx context.Context, topic string) ([]sdk.Queue, error)
	MinOffset(ctx context.Context, q sdk.Queue) (int64, error)
	MaxOffset(ctx context.Context, q sdk.Queue) (int64, error)
	OffsetAt(ctx context.Context, q sdk.Queue, at time.Time) (int64, error)
	Pull(ctx context.Context, req *rocketmq.PullRequest) (*rocketmq.PullResult, error)
}

// ErrNone says that a group has no dead-letter topic: nothing of it ever died.
var ErrNone = errors.New("no dead letter was ever stored")

// ErrUnreadable says that brokers do not let anybody read the topic.
var ErrUnreadable = errors.New("the dead letters cannot be read")

// Box holds the dead letters of a group as they were when it was opened: later ones are not looked at.
type Box struct {
	Group  string  `json:"group"`
	Topic  string  `json:"topic"`
	Queues []Queue `json:"queues"`

	cluster Cluster
}

// Queue is one queue of the topic.
type Queue struct {
	Broker string `json:"broker"`
	ID     int32  `json:"id"`
	Min    int64  `json:"min"`
	Max    int64  `json:"max"`
	Count  int64  `json:"count"` // that can be read
}

// Open looks for the dead letters of a group. ErrNone when it has no topic for them, ErrUnreadable when that has the
// permission to be written only, as old brokers made it.
func Open(ctx context.Context, c Cluster, group string) (*Box, error) {
	if err := wire.ValidateKnownGroup(group); err != nil {
		return nil, err //nolint:wrapcheck // says which name, and why
	}
	b := &Box{Group: group, Topic: wire.DLQTopic(group), Queues: []Queue{}, cluster: c}
	queues, err := c.Queues(ctx, b.Topic)
	if errors.Is(err, rocketmq.ErrTopicNotFound) {
		return nil, fmt.Errorf("group %s has no topic %s: %w", group, b.Topic, ErrNone)
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // says which topic
	}
	if err := b.readable(ctx, queues); err != nil {
		return nil, err
	}
	for _, q := range queues {
		one := Queue{Broker: q.Broker, ID: q.ID}
		if one.Min, err = c.MinOffset(ctx, q); err != nil {
			return nil, err //nolint:wrapcheck // says which queue
		}
		if one.Max, err = c.MaxOffset(ctx, q); err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
		one.Count = max(one.Max-one.Min, 0)
		b.Queues = append(b.Queues, one)
	}
	return b, nil
}

// readable looks for brokers that take dead letters and show none. mqadmin knows no namespace: it is told the whole name.
func (b *Box) readable(ctx context.Context, queues []sdk.Queue) error {
	writable, err := b.cluster.WritableQueues(ctx, b.Topic)
	if err != nil {
		return err //nolint:wrapcheck // says which topic
	}
	var closed []string
	for _, q := range writable {
		if !slices.ContainsFunc(queues, func(r sdk.Queue) bool { return r.Broker == q.Broker }) && !slices.Contains(closed, q.Broker) {
			closed = append(closed, q.Broker)
		}
	}
	if len(closed) == 0 {
		return nil
	}
	return fmt.Errorf("%w: topic %s is write-only (perm 2) at broker %s; open it with: mqadmin updateTopicPerm -n NAMESERVER -c CLUSTER -t '%s' -p 6",
		ErrUnreadable, b.Topic, strings.Join(closed, ", "), wire.WithNamespace(b.cluster.Namespace(), b.Topic))
}

func (b *Box) queue(q *Queue) sdk.Queue { return sdk.Queue{Topic: b.Topic, Broker: q.Broker, ID: q.ID} }

// Count is how many dead letters there are.
func (b *Box) Count() (n int64) {
	for _, q := range b.Queues {
		n += q.Count
	}
	return n
}

// bounds narrows a queue to the times of a filter, with a second to spare: old brokers find the nearest entry only.
func (b *Box) bounds(ctx context.Context, q *Queue, f *Filter) (start, end int64, err error) {
	start, end = q.Min, q.Max
	if !f.From.IsZero() {
		at, err := b.cluster.OffsetAt(ctx, b.queue(q), f.From.Add(-time.Second))
		if err != nil {
			return 0, 0, err //nolint:wrapcheck // says which queue
		}
		start = max(start, at)
		if at == q.Max {
			start = max(q.Min, q.Max-1) // an old broker's answer for a time after the last one
		}
	}
	if !f.To.IsZero() {
		at, err := b.cluster.OffsetAt(ctx, b.queue(q), f.To.Add(time.Second))
		if err != nil {
			return 0, 0, err //nolint:wrapcheck // as above
		}
		end = min(end, at+1)
	}
	return start, end, nil
}

// Each calls f with each dead letter that is meant, those of one queue in the order in which they died. An error of f ends it.
func (b *Box) Each(ctx context.Context, filter Filter, f func(*Letter) error) error {
	for i := range b.Queues {
		start, end, err := b.bounds(ctx, &b.Queues[i], &filter)
		if err != nil {
			return err
		}
		err = scan(ctx, b.cluster, b.queue(&b.Queues[i]), start, end, func(m *wire.Message) error {
			l, err := letterOf(m, b.queue(&b.Queues[i]), b.cluster.Namespace())
			if err != nil || !filter.takes(l) {
				return err
			}
			return f(l)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// chunk is how many offsets are read at once from the end of a queue backward.
const chunk = 128

// Newest lists the dead letters that are meant, those that died last first, at most limit; 0 = all. Their bodies are not kept.
func (b *Box) Newest(ctx context.Context, filter Filter, limit int) ([]*Letter, error) {
	all := []*Letter{}
	for i := range b.Queues {
		q := &b.Queues[i]
		start, end, err := b.bounds(ctx, q, &filter)
		if err != nil {
			return nil, err
		}
		found := 0
		for end > start && (limit == 0 || found < limit) {
			from := max(start, end-chunk)
			err := scan(ctx, b.cluster, b.queue(q), from, end, func(m *wire.Message) error {
				l, err := letterOf(m, b.queue(q), b.cluster.Namespace())
				if err == nil && filter.takes(l) {
					l.message = wire.Message{}
					all = append(all, l)
					found++
				}
				return err
			})
			if err != nil {
				return nil, err
			}
			end = from
		}
	}
	slices.SortStableFunc(all, func(a, b *Letter) int {
		if c := b.Died.Compare(a.Died); c != 0 {
			return c
		}
		return int(b.Offset - a.Offset)
	})
	if limit > 0 {
		all = all[:min(limit, len(all))]
	}
	return all, nil
}

// Find looks for one dead letter by its id, the message's first id, or its UNIQ_KEY: the last one that has it, with its body.
func (b *Box) Find(ctx context.Context, id string) (*Letter, error) {
	var found *Letter
	err := b.Each(ctx, Filter{IDs: []string{id}}, func(l *Letter) error {
		if found == nil || found.ID != id && (l.ID == id || !l.Died.Before(found.Died)) {
			found = l
		}
		return nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("no dead letter of group %s has the id %s; it may have expired: streamd dlq list --group %s", b.Group, id, b.Group)
	}
	return found, err
}

// scan reads a queue from start to end.
func scan(ctx context.Context, c Cluster, q sdk.Queue, start, end int64, f func(*wire.Message) error) error {
	for next := start; next < end; {
		got, err := c.Pull(ctx, &rocketmq.PullRequest{
			Group: wire.ToolsGroup, Queue: q, Offset: next, MaxMessages: 32, MaxBytes: 4 << 20,
			Subscription: rocketmq.Subscription{Topic: q.Topic, Expression: wire.AllTags, Type: rocketmq.FilterTag},
		})
		if err != nil {
			return fmt.Errorf("reading %s from offset %d: %w", q, next, err)
		}
		after, err := walk(got, next, end, f)
		got.Release()
		if err != nil {
			return err
		}
		if after <= next {
			return nil // nothing is there any more
		}
		next = after
	}
	return nil
}

// walk calls f for each message of a pull, and tells where to go on.
func walk(got *rocketmq.PullResult, next, end int64, f func(*wire.Message) error) (int64, error) {
	if got.Status != rocketmq.PullFound {
		if got.Status == rocketmq.PullNoNew {
			return next, nil
		}
		return got.Next, nil // expired meanwhile: on where the broker says
	}
	for rest := got.Body; len(rest) > 0; {
		var m wire.Message
		n, err := m.Decode(rest)
		if err != nil {
			return next, fmt.Errorf("reading a stored message after offset %d: %w", next, err)
		}
		rest = rest[n:]
		if m.QueueOffset < next {
			continue
		}
		if m.QueueOffset >= end {
			return end, nil
		}
		if err := f(&m); err != nil {
			return next, err
		}
		next = m.QueueOffset + 1
	}
	return max(next, got.Next), nil
}
