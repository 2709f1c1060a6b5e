package settle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/streamd/streamd/internal/frame"
	"github.com/streamd/streamd/internal/rocketmq"
	"github.com/streamd/streamd/internal/rocketmq/wire"
)

// produce stores the outputs of a job that are not stored yet. What was stored is taken out of the items, so that the
// next try sends only the rest. Plain outputs of one topic go as one batch. Outputs with one sharding key are stored in their
// order: none goes out while an earlier one is not stored. A message one of whose outputs can be stored by nobody stores none.
func (s *Settler) produce(ctx context.Context, j *Job) error {
	order, failed := s.batches(j)
	slices.SortStableFunc(order, func(a, b *batch) int { return boolean(j.late[a.topic]) - boolean(j.late[b.topic]) })
	held := map[string]bool{} // keys with an output that is not stored
	j.late = map[string]bool{}
	for _, b := range order {
		if b.key != "" && held[b.key] {
			continue
		}
		if err := s.store(ctx, j, b); err != nil {
			failed = err
			held[b.key], j.late[b.topic] = true, true
		}
	}
	return failed
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// batches divides the outputs of a job. The error is that of the last message whose outputs nobody can store.
func (s *Settler) batches(j *Job) (order []*batch, failed error) {
	shared := make(map[string]*batch) // by topic
	for i := range j.Items {
		messages, err := s.outputs(j, i)
		if err != nil {
			j.Items[i].invalid = err.Error()
			failed = err
			continue
		}
		for k, m := range messages {
			from := place{item: i, output: j.Items[i].Outputs[k]}
			if b := shared[m.Topic]; b != nil && shares(m) {
				b.add(m, from)
				continue
			}
			b := &batch{topic: m.Topic}
			b.add(m, from)
			order = append(order, b)
			switch {
			case shares(m):
				shared[m.Topic] = b
			case m.ShardingKey != "":
				b.key = m.Topic + "\x00" + m.ShardingKey
			}
		}
	}
	return order, failed
}

// shares tells whether a message can be one of several in a batch.
func shares(m *rocketmq.OutgoingMessage) bool { return m.Delay == 0 && m.ShardingKey == "" }

// outputs are the messages of one item.
func (s *Settler) outputs(j *Job, item int) ([]*rocketmq.OutgoingMessage, error) {
	all := make([]*rocketmq.OutgoingMessage, 0, len(j.Items[item].Outputs))
	for _, o := range j.Items[item].Outputs {
		m, err := s.output(j.Results, o)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// batch is outputs that are stored together.
type batch struct {
	topic    string
	key      string // topic and sharding key of one that must not overtake others; empty = none
	messages []*rocketmq.OutgoingMessage
	from     []place
}

func (b *batch) add(m *rocketmq.OutgoingMessage, from place) {
	b.messages, b.from = append(b.messages, m), append(b.from, from)
}

type place struct{ item, output int }

func (s *Settler) store(ctx context.Context, j *Job, b *batch) error {
	done := spanOf(j.Items[b.from[0].item].D, "send", b.topic)
	var err error
	var results []rocketmq.SendResult
	if len(b.messages) == 1 {
		results = make([]rocketmq.SendResult, 1)
		results[0], err = s.cfg.Broker.Send(ctx, b.messages[0])
	} else {
		results, err = s.cfg.Broker.SendBatch(ctx, b.topic, b.messages)
	}
	done(err)
	var rest batch
	for i, p := range b.from {
		if err == nil || i < len(results) && results[i].Status != 0 {
			s.count(func(c *Counters) { c.OutputsStored++ })
			j.Items[p.item].stored(p.output)
			continue
		}
		rest.messages, rest.from = append(rest.messages, b.messages[i]), append(rest.from, p)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("storing %d outputs in %s: %w", len(b.messages), b.topic, err)
	switch {
	case !unstorable(err):
		return err
	case len(b.messages) == 1:
		j.Items[b.from[0].item].invalid = err.Error()
		return err
	}
	rest.topic = b.topic
	return s.storeEach(ctx, j, &rest) // find out which of them it is
}

func (s *Settler) storeEach(ctx context.Context, j *Job, b *batch) (failed error) {
	for i := range b.messages {
		if err := s.store(ctx, j, &batch{topic: b.topic, messages: b.messages[i : i+1], from: b.from[i : i+1]}); err != nil {
			failed = err
		}
	}
	return failed
}

// unstorable tells that the message itself is refused, by the client or by the broker: no later try can help.
func unstorable(err error) bool {
	var resp *rocketmq.ResponseError
	return errors.Is(err, rocketmq.ErrInvalidMessage) || errors.Is(err, rocketmq.ErrUnsupported) || errors.As(err, &resp) && resp.Code == wire.RespMessageIllegal
}

func (it *Item) stored(output int) {
	rest := it.Outputs[:0]
	for _, o := range it.Outputs {
		if o != output {
			rest = append(rest, o)
		}
	}
	it.Outputs = rest
}

func (s *Settler) output(r *frame.Results, i int) (*rocketmq.OutgoingMessage, error) {
	m := &rocketmq.OutgoingMessage{
		Topic: r.Outputs.TopicOf(i), Tag: r.Outputs.TagOf(i), Body: r.Outputs.Body(i),
		Properties: wire.PropertyMap(r.Outputs.Properties(i)), Traced: true,
	}
	if m.Topic == "" {
		m.Topic = s.cfg.Policy().OutputTopic
	}
	if m.Topic == "" {
		return nil, errors.New("output without a topic, and the stream's outputs.topic is not set")
	}
	m.Keys = strings.Fields(string(r.Outputs.Keys(i)))
	if len(r.OutputDelay) > i {
		m.Delay = r.OutputDelay[i]
	}
	if len(r.OutputShardingKey) > i {
		m.ShardingKey = r.OutputShardingKey[i]
	}
	return m, nil
}
